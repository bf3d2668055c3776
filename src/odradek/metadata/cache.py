"""The metadata as this broker has applied it, and the one applier that applies commits in order.

Handlers and coordinators read `image` and `broker_config`. The applier takes commits from the store, sets the image and
awaits each subscriber, before it takes the next commit: subscribers open, create and remove logs, and no two of them
run at the same time. A request that must see its own change awaits `wait_until_applied`.
"""

from __future__ import annotations

import asyncio
import inspect
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from odradek.host.logs import get_logger
from odradek.metadata.effective_config import effective_config
from odradek.metadata.image import MetadataImage
from odradek.metadata.store import StoreError

if TYPE_CHECKING:
    from odradek.configuration.broker_configs import BrokerConfig
    from odradek.host.clock import Clock, Timer
    from odradek.metadata.store import MetadataStore

log = get_logger(__name__)

T = TypeVar("T")
Subscriber = Callable[[MetadataImage, MetadataImage], Awaitable[None] | None]
Job = Callable[[], Awaitable[Any]]

RETRY_AFTER_MS = 1000.0


class MetadataCache:
    def __init__(self, store: MetadataStore, config: BrokerConfig, clock: Clock) -> None:
        self._store = store
        self._static_config = config
        self._clock = clock
        self._image: MetadataImage | None = None
        self._subscribers: list[Subscriber] = []
        self._behind: dict[Subscriber, MetadataImage] = {}  # that have failed, with the image that they followed last
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []
        self._jobs: deque[tuple[Job, asyncio.Future[Any]]] = deque()
        self._applier: asyncio.Task[None] | None = None
        self._retry_timer: Timer | None = None
        self._fenced_ms: dict[int, float] = {}  # when this broker has seen others being fenced
        self._unusable_settings: Mapping[str, str] = {}  # with the reasons
        self._has_new_commits = False
        self._has_failed = False
        self._is_closed = False
        self.applied_version = -1
        """The newest version that every subscriber has followed, or has failed to follow and is retrying."""
        self.broker_config = config
        """This broker's configuration with its dynamic settings; a new value after each change of them."""

    @property
    def image(self) -> MetadataImage:
        if self._image is None:
            raise RuntimeError("the metadata is not loaded")
        return self._image

    async def load(self, known: MetadataImage | None = None) -> MetadataImage:
        """Read the store, and follow it from here on. Called once, before everything else. `known` is an image of this
        store that is in memory already: the two then share their topics, and the store is not read twice."""
        self._store.watch(self._notice_commits)
        image = self._image = known or await self._store.load()
        self.applied_version = image.version
        self._configure(image)
        if known is not None:
            self._has_new_commits = True  # there may be some after it
        self._wake_applier()
        return image

    def subscribe(self, subscriber: Subscriber) -> None:
        """Call with the images before and after each commit (or several at once, when the cache was far behind). The
        next commit waits for a subscriber that returns an awaitable. Subscribers are called in the order in which they
        subscribed. One that raises is called again until it returns, with the image that it followed last. The others
        do not wait; those after it are called again when it has returned: replication needs the logs that it opens."""
        self._subscribers.append(subscriber)

    def unsubscribe(self, subscriber: Subscriber) -> None:
        self._subscribers.remove(subscriber)
        self._behind.pop(subscriber, None)

    async def wait_until_applied(self, version: int) -> None:
        """`StoreError` when the commits cannot be read, or the cache is closed before it gets there."""
        if self.applied_version >= version:
            return
        if self._is_closed:
            raise StoreError("the broker is stopping")
        applied: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((version, applied))
        await applied

    async def run_in_order(self, job: Callable[[], Awaitable[T]]) -> T:
        """Run a job between two commits, and return its result. Not to be awaited by a subscriber or another job, which
        would wait for itself. The job runs to its end even if the caller is cancelled."""
        if self._is_closed:
            raise StoreError("the broker is stopping")
        done: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._jobs.append((job, done))
        self._wake_applier()
        return await done

    async def close(self) -> None:
        """Apply everything that is committed, run the jobs, then stop following the store. A caller that does not wait
        for a store that hangs cancels this."""
        if self._image is not None:
            self._notice_commits()
        try:
            if self._applier is not None:
                await asyncio.wait([self._applier])
        finally:
            self._is_closed = True
            self._cancel_retry()
            self._fail_waiting(StoreError("the broker is stopping"))

    def _notice_commits(self) -> None:
        self._has_new_commits = True
        self._wake_applier()

    def _wake_applier(self) -> None:
        has_work = self._has_new_commits or self._jobs
        if has_work and self._applier is None and self._image is not None and not self._is_closed:
            self._applier = asyncio.ensure_future(self._run_applier())

    async def _run_applier(self) -> None:
        try:
            while self._has_new_commits or self._jobs:
                if self._jobs:
                    await _run_job(*self._jobs.popleft())
                if self._has_new_commits:
                    self._has_new_commits = False
                    await self._apply_new_commits()
        finally:
            self._applier = None

    async def _apply_new_commits(self) -> None:
        try:
            commits = await self._store.changes_since(self.image.version)
            if commits is None:
                newest = await self._store.load()
                if newest.version > self.image.version:
                    await self._apply(newest)
            for commit in commits or ():
                if commit.version != self.image.version + 1:
                    raise StoreError(f"commit {commit.version} does not follow version {self.image.version}")
                await self._apply(self.image.apply_all(commit.changes))
            if self._behind and commits == []:
                await self._call_subscribers(self.image)
            self._has_failed = False
            self._cancel_retry()
            if self._behind:
                self._retry_timer = self._clock.call_after(RETRY_AFTER_MS, self._notice_commits)
        except Exception as problem:
            if self._is_closed:
                return
            if not self._has_failed:
                event = "metadata could not be read; retrying"
                log.failure(event, problem, expected=StoreError, version=self.image.version)
            self._has_failed = True
            self._fail_waiting(problem)
            self._cancel_retry()  # each commit that is noticed while reads fail would add a timer
            self._retry_timer = self._clock.call_after(RETRY_AFTER_MS, self._notice_commits)

    def _cancel_retry(self) -> None:
        if self._retry_timer is not None:
            self._retry_timer.cancel()
            self._retry_timer = None

    async def _apply(self, after: MetadataImage) -> None:
        before, self._image = self.image, after
        if after.configs is not before.configs:
            self._configure(after)
        if after.brokers is not before.brokers:
            self._note_fencing(before, after)
        await self._call_subscribers(before)
        self.applied_version = after.version
        waiting, self._waiting = self._waiting, []
        for version, applied in waiting:
            if version > after.version:
                self._waiting.append((version, applied))
            elif not applied.done():
                applied.set_result(None)

    async def _call_subscribers(self, before: MetadataImage) -> None:
        after = self.image
        for subscriber in tuple(self._subscribers):
            followed = min(self._behind.get(subscriber, before), before, key=lambda image: image.version)
            if followed is after:
                continue
            try:
                outcome = subscriber(followed, after)
                if inspect.isawaitable(outcome):
                    await outcome
            except Exception as problem:
                if subscriber not in self._behind:
                    log.error(
                        "a subscriber failed to follow the metadata; retrying", version=after.version, exc_info=problem
                    )
                self._behind[subscriber] = followed
            else:
                before = self._behind.pop(subscriber, before)

    def _configure(self, image: MetadataImage) -> None:
        """Settings that this broker cannot use are logged when they appear; the rest of the commit is applied."""
        last = None if self.broker_config is self._static_config else self.broker_config
        self.broker_config, unusable = effective_config(self._static_config, image, last)
        for name, reason in unusable.items():
            if self._unusable_settings.get(name) != reason:
                log.error(
                    "a dynamic setting cannot be used on this broker: set another value", name=name, reason=reason
                )
        self._unusable_settings = unusable

    def _note_fencing(self, before: MetadataImage, after: MetadataImage) -> None:
        for node_id, broker in after.brokers.items():
            earlier = before.brokers.get(node_id)
            if broker.is_fenced and earlier is not None and not earlier.is_fenced:
                self._fenced_ms[node_id] = self._clock.monotonic_ms()

    def was_fenced_within(self, node_id: int, duration_ms: float) -> bool:
        """Whether this broker has learned within this time that the other one was fenced."""
        fenced_ms = self._fenced_ms.get(node_id)
        return fenced_ms is not None and self._clock.monotonic_ms() - fenced_ms < duration_ms

    def _fail_waiting(self, problem: Exception) -> None:
        waiting, self._waiting = self._waiting, []
        for _, applied in waiting:
            if not applied.done():
                applied.set_exception(problem)


async def _run_job(job: Job, done: asyncio.Future[Any]) -> None:
    try:
        result = await job()
    except Exception as problem:
        if not done.done():
            done.set_exception(problem)
    except BaseException:
        done.cancel()
        raise
    else:
        if not done.done():
            done.set_result(result)
