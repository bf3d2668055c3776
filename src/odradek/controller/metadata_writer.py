"""The controller's own image, and the one way to change it: decide, commit, apply, one decision at a time.

Decisions are made on the image that the commit is conditional on. After a conflict the newer commits are read and the
decision is made again. After an exception the store is read: whether a commit happened is never guessed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar, assert_never

from odradek.controller.decisions.topics import Cluster
from odradek.host.logs import get_logger
from odradek.metadata.effective_config import effective_config
from odradek.metadata.metadata_level import FIRST_LEVEL, brokers_below, level_of
from odradek.metadata.store import CommitOutcome, CommitTooLarge, StoreError
from odradek.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from odradek.configuration.broker_configs import BrokerConfig
    from odradek.host.entropy import Entropy
    from odradek.metadata.changes import Change
    from odradek.metadata.image import MetadataImage
    from odradek.metadata.store import MetadataStore

log = get_logger(__name__)

T = TypeVar("T")
Decision = Callable[[Cluster], tuple[T, "list[Change]"]]

ATTEMPTS = 5  # of one decision, when other controllers commit first


class ControllerFenced(StoreError):
    """Another controller has claimed a higher epoch: this one must not decide any more."""


class ChangeNotMade(StoreError):
    """The change was not sent to the store, so that it cannot have been made; another attempt may succeed."""


class ChangeNotReadable(StoreError):
    """Some broker cannot read the change, or it is not known whether all can: nothing was written."""

    def __init__(self, error: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.error = error


class Decided(NamedTuple, Generic[T]):
    """`version` is that of the commit, or of the image that was decided on when there was nothing to commit."""

    result: T
    version: int


class MetadataWriter:
    def __init__(self, store: MetadataStore, config: BrokerConfig, entropy: Entropy) -> None:
        self._store = store
        self._static_config = config
        self._config = config
        self._entropy = entropy
        self._image: MetadataImage | None = None
        self._one_at_a_time = asyncio.Lock()
        self._writes: set[asyncio.Task[object]] = set()
        self._is_stopping = False
        self._is_fenced = False  # another controller has a higher epoch
        self._is_outdated = False  # the store may have commits that the image does not
        self.controller_epoch = 0
        self.known_levels: Mapping[int, int] | None = {}
        """Metadata levels of the registered brokers; None before a new controller has read the registrations."""

    @property
    def image(self) -> MetadataImage:
        if self._image is None:
            raise RuntimeError("the controller has not claimed its epoch")
        return self._image

    @property
    def is_active(self) -> bool:
        return self._image is not None and not self._is_fenced and not self._is_stopping

    async def claim(self) -> None:
        """Become the controller, whichever controller there is."""
        await self.begin(await self._store.claim_controller(self._static_config.node_id))

    async def begin(self, controller_epoch: int) -> None:
        """Write with an epoch that was claimed. The image is loaded after the claim, so that no earlier controller can
        change it."""
        async with self._one_at_a_time:
            self.controller_epoch = controller_epoch
            self._set_image(await self._store.load())
            self._is_outdated = False
            self._is_fenced = False

    async def stop_writing(self) -> None:
        """Finish the writes in progress, and accept no others."""
        self._is_stopping = True
        if self._writes:
            await asyncio.wait(self._writes)

    @property
    def waiting_count(self) -> int:
        """Writes that run or wait for their turn."""
        return len(self._writes)

    async def write(
        self, decide: Decision[T], timeout_ms: float | None = None, on_failed: Callable[[], None] = lambda: None
    ) -> Decided[T]:
        """Runs to its end even if the caller is cancelled, so that the image and the store agree. A write that does not
        begin within its timeout is not made, because its client already has the error. `on_failed` is called if the
        write raises, also after its caller was cancelled.

        `StoreError` when nothing can be committed, `ChangeNotMade` if it was not attempted, `ControllerFenced` when
        another controller took over."""
        if self._is_stopping:
            raise ChangeNotMade("the broker is stopping")
        task = asyncio.ensure_future(self._write_in_turn(decide, timeout_ms, on_failed))
        self._writes.add(task)
        task.add_done_callback(self._writes.discard)
        try:
            await asyncio.wait((task,))  # does not cancel the task with the caller
        except asyncio.CancelledError:
            task.add_done_callback(_log_failure)
            raise
        return task.result()

    async def _write_in_turn(
        self, decide: Decision[T], timeout_ms: float | None, on_failed: Callable[[], None]
    ) -> Decided[T]:
        try:
            async with asyncio.timeout(None if timeout_ms is None else timeout_ms / 1000):
                await self._one_at_a_time.acquire()
        except TimeoutError as problem:
            raise ChangeNotMade(f"earlier changes of the metadata took longer than {timeout_ms:.0f} ms") from problem
        try:
            return await self._decide_and_commit(decide)
        except BaseException:
            on_failed()
            raise
        finally:
            self._one_at_a_time.release()

    async def _decide_and_commit(self, decide: Decision[T]) -> Decided[T]:
        for _ in range(ATTEMPTS):
            if self._is_outdated:
                try:
                    await self._read_newer_commits()
                except StoreError as problem:
                    raise ChangeNotMade(str(problem)) from problem
            image = self.image
            result, changes = decide(Cluster(image, self._config, self._entropy.random_below, self._entropy.uuid))
            if not changes:
                return Decided(result, image.version)
            self._check_level(changes)
            after = image.apply_all(changes)  # changes that contradict the image raise before anything is written
            outcome = await self._commit(changes, image.version, after)
            match outcome:
                case CommitOutcome.COMMITTED:
                    self._set_image(after)
                    return Decided(result, after.version)
                case CommitOutcome.FENCED:
                    self._is_fenced = True
                    raise ControllerFenced(
                        f"another controller has taken over from controller epoch {self.controller_epoch}"
                    )
                case CommitOutcome.VERSION_CONFLICT:
                    self._is_outdated = True
                case _:
                    assert_never(outcome)
        raise ChangeNotMade(
            "the metadata store changes faster than this broker can follow; is another broker using it?"
        )

    def _check_level(self, changes: Sequence[Change]) -> None:
        level = level_of(changes)
        if level == FIRST_LEVEL:
            return
        if self.known_levels is None:
            raise ChangeNotReadable(
                ErrorCode.NOT_CONTROLLER, "the controller has not read the registrations of brokers"
            )
        if older := brokers_below(level, self.known_levels):
            raise ChangeNotReadable(
                ErrorCode.UNSUPPORTED_VERSION,
                f"brokers {', '.join(map(str, older))} run an older version of Odradek, which cannot read this change "
                f"(metadata level {level}): upgrade them first",
            )

    async def _commit(self, changes: Sequence[Change], expected_version: int, after: MetadataImage) -> CommitOutcome:
        try:
            return await self._store.commit(
                changes, expected_version=expected_version, controller_epoch=self.controller_epoch
            )
        except CommitTooLarge:
            raise
        except Exception:
            self._is_outdated = True
            if await self._has_committed(changes, expected_version, after):
                return CommitOutcome.COMMITTED
            raise

    async def _has_committed(self, changes: Sequence[Change], expected_version: int, after: MetadataImage) -> bool:
        """Whether the store shows that a commit which raised happened nevertheless. `after` is the image with it.

        The epoch alone does not identify it: an earlier commit of this controller that failed the same way may have
        reached the store late. With equal changes the effect is the same, whichever of the two arrived.
        """
        version = expected_version + 1
        try:
            commits = await self._store.changes_since(expected_version)
            if commits is None:
                newest = await self._store.load()
                if newest.version > version:
                    log.error("the outcome of a metadata commit is unknown: its history is gone", version=version)
                return newest.version == version and newest == after
        except Exception as problem:
            log.failure("the outcome of a metadata commit is unknown", problem, expected=StoreError, version=version)
            return False
        if not commits:
            return False
        first = commits[0]
        return first.controller_epoch == self.controller_epoch and [*first.changes] == [*changes]

    async def _read_newer_commits(self) -> None:
        image = self.image
        commits = await self._store.changes_since(image.version)
        if commits is None:
            image = await self._store.load()
        for commit in commits or ():
            image = image.apply_all(commit.changes)
        self._set_image(image)
        self._is_outdated = False

    def _set_image(self, image: MetadataImage) -> None:
        if self._image is None or image.configs is not self._image.configs:
            self._config = effective_config(self._static_config, image, self._config).config
        self._image = image


def _log_failure(write: asyncio.Task[Decided[T]]) -> None:
    """Report the exception of a write that nobody awaits."""
    problem = None if write.cancelled() else write.exception()
    if isinstance(problem, Exception):
        log.failure("a metadata write failed after its caller was cancelled", problem, expected=StoreError)
