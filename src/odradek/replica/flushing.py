"""Flushing one log: one fsync at a time, and all callers that ask during an fsync share the next one."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from odradek.host.disk import is_refusal

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.host.workers import WorkerPool
    from odradek.log.partition_log import PartitionLog


class LogRetired(Exception):
    """The log is being deleted: no flush of it begins."""


class LogTruncated(LogRetired):
    """The records to flush were removed because this replica follows another leader."""


class LogFlusher:
    """Group commit: fsync runs on a worker while the event loop continues to append."""

    __slots__ = (
        "_flush_ended",
        "_is_retired",
        "_log",
        "_report_failure",
        "_running",
        "_workers",
        "dirty_since_ms",
        "has_failed",
    )

    def __init__(
        self,
        log: PartitionLog,
        workers: WorkerPool,
        report_failure: Callable[[OSError], None],
        flush_ended: Callable[[BaseException | None], None] | None = None,
    ) -> None:
        """`flush_ended` is called on the event loop after each flush, with the problem if it failed."""
        self._report_failure = report_failure
        self._flush_ended = flush_ended
        self._log = log
        self._workers = workers
        self._running: asyncio.Future[None] | None = None
        self._is_retired = False
        self.has_failed = False
        self.dirty_since_ms: float | None = None  # when housekeeping first saw something to flush

    async def flush_to(self, end_offset: int) -> None:
        """Return when all records before this offset are durable. OSError when the disk failed, LogRetired when the
        log is deleted, LogTruncated when records before this offset were removed."""
        while self._log.recovery_point_offset < end_offset:
            if self._log.log_end_offset < end_offset:
                raise LogTruncated
            await self.flush()

    async def flush(self) -> None:
        """Wait for the running flush, or for a new one. A running flush may not cover the newest appends: the caller
        decides whether it needs another one."""
        if self._is_idle and self._is_retired:
            raise LogRetired
        self.begin()
        assert self._running is not None
        await asyncio.shield(self._running)

    def begin(self) -> None:
        """Start a flush unless one is running or the log is retired."""
        if self._is_idle and not self._is_retired:
            self._running = asyncio.ensure_future(self._workers.run(self._log.flush))
            self._running.add_done_callback(self._finished)

    @property
    def _is_idle(self) -> bool:
        # A flush that is done does not count, also before its callback has run: awaiting it would return at once, and
        # a loop around that would never let the callback run.
        return self._running is None or self._running.done()

    def disconnect(self) -> None:
        """Another log has replaced this one: its flushes commit nothing, and their failures refuse nothing."""
        self._flush_ended = None

    async def retire(self) -> None:
        """Begin no more flushes, and wait for the running one: afterwards the files may have another owner."""
        self._is_retired = True
        await self.settle()

    async def settle(self) -> None:
        """Wait for a running flush and ignore its outcome: the log must not be closed during a flush."""
        if self._running is not None:
            await asyncio.wait([self._running])

    def _finished(self, flush: asyncio.Future[None]) -> None:
        if self._running is flush:
            self._running = None
        self.dirty_since_ms = None
        if flush.cancelled():
            return
        problem = flush.exception()  # callers that awaited the flush have it, too
        self.has_failed = problem is not None
        # A full disk may refuse another file (a checkpoint), but writes that a failed fsync has lost are lost.
        if isinstance(problem, OSError) and (self._log.has_failed or not is_refusal(problem)):
            self._report_failure(problem)
        if self._flush_ended is not None:
            self._flush_ended(problem)
