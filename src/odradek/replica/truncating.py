"""Truncating the log of a follower, on a worker: one truncation at a time, each to its end."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Generic, TypeVar

from odradek.host.disk import is_refusal

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from odradek.host.workers import WorkerPool
    from odradek.log.partition_log import PartitionLog


P = TypeVar("P")


class Truncations(Generic[P]):
    """Reports the truncations of a broker's partitions to those that work on their files or keep offsets of them."""

    def __init__(self) -> None:
        self._begin_listeners: list[Callable[[P, int], None]] = []
        self._end_listeners: list[Callable[[P], Awaitable[None]]] = []

    def on_begin(self, listener: Callable[[P, int], None]) -> None:
        """Call the listener, before anything changes, with the partition and the offset to which its log is cut: work
        on the records at and after it ends, and may not touch the log again."""
        self._begin_listeners.append(listener)

    def on_end(self, listener: Callable[[P], Awaitable[None]]) -> None:
        """Await the listener when the log is cut and before the next append: what the listener keeps on the disk must
        not describe records that are gone. OSError fails the log directory."""
        self._end_listeners.append(listener)

    def begin(self, partition: P, offset: int) -> None:
        for listener in self._begin_listeners:
            listener(partition, offset)

    async def end(self, partition: P) -> None:
        for listener in self._end_listeners:
            await listener(partition)


class LogTruncator:
    """A truncation continues when its caller is cancelled: a worker cannot be stopped, and a log whose truncation never
    runs would refuse appends for good."""

    __slots__ = ("_after_truncation", "_log", "_report_failure", "_running", "_workers")

    def __init__(
        self,
        log: PartitionLog,
        workers: WorkerPool,
        after_truncation: Callable[[], Awaitable[None]],
        report_failure: Callable[[OSError], None],
    ) -> None:
        """`after_truncation` is awaited before a truncation counts as ended. An OSError of it is always reported, one
        of the truncation unless the disk only refused it."""
        self._log = log
        self._workers = workers
        self._after_truncation = after_truncation
        self._report_failure = report_failure
        self._running: asyncio.Future[None] | None = None

    @property
    def is_running(self) -> bool:
        return self._running is not None and not self._running.done()

    def begin_truncation(self, offset: int) -> asyncio.Future[None]:
        """`is_running` when this returns. The result is done when the truncation has ended; OSError when the disk
        failed."""
        return self._begin(self._log.truncate_to, offset)

    def begin_restart(self, offset: int) -> asyncio.Future[None]:
        """Remove all records; the log continues at `offset`. Otherwise as `begin_truncation`."""
        return self._begin(self._log.truncate_fully_and_start_at, offset)

    def _begin(self, truncate: Callable[[int], None], offset: int) -> asyncio.Future[None]:
        assert not self.is_running, "two truncations of one log"
        self._log.begin_truncation()
        self._running = asyncio.ensure_future(self._truncate(truncate, offset))
        outcome = asyncio.shield(self._running)
        for each in (self._running, outcome):
            each.add_done_callback(_retrieve_exception)
        return outcome

    async def _truncate(self, truncate: Callable[[int], None], offset: int) -> None:
        try:
            await self._workers.run(truncate, offset)
        except OSError as problem:
            if self._log.has_failed or not is_refusal(problem):
                self._report_failure(problem)
            raise
        try:
            await self._after_truncation()
        except OSError as problem:
            self._report_failure(problem)
            raise

    async def settle(self) -> None:
        """Wait for a running truncation and ignore its outcome."""
        if self._running is not None:
            await asyncio.wait([self._running])


def _retrieve_exception(truncation: asyncio.Future[None]) -> None:
    """It is reported; if the caller was cancelled, nothing else retrieves it."""
    if not truncation.cancelled():
        truncation.exception()
