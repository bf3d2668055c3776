"""One log's trips to the disk: one fsync at a time, and everybody who asked meanwhile shares the next one."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from odradek.host.disk import is_refusal

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.host.workers import Workers
    from odradek.log.partition_log import PartitionLog


class LogRetired(Exception):
    """The log is being deleted, so nothing of it is put on the disk any more."""


class LogTruncated(LogRetired):
    """The records to flush were removed because this replica follows another leader."""


class LogFlusher:
    """Group commit: fsync runs on a worker while the event loop goes on appending."""

    __slots__ = ("_is_retired", "_log", "_report_failure", "_running", "_workers", "dirty_since_ms", "has_failed")

    def __init__(self, log: PartitionLog, workers: Workers, report_failure: Callable[[OSError], None]) -> None:
        self._report_failure = report_failure
        self._log = log
        self._workers = workers
        self._running: asyncio.Future[None] | None = None
        self._is_retired = False
        self.has_failed = False
        self.dirty_since_ms: float | None = None  # when housekeeping first saw something to flush

    async def flush_to(self, end_offset: int) -> None:
        """Return when everything before this offset is on the disk. OSError when the disk failed, LogRetired when the
        log is deleted, LogTruncated when records before this offset were removed."""
        while self._log.recovery_point_offset < end_offset:
            if self._log.log_end_offset < end_offset:
                raise LogTruncated
            await self.flush()

    async def flush(self) -> None:
        """One fsync, or the one that is already running and then one more decision by the caller."""
        # A flush that is done counts for nothing, even while its callback has yet to run: awaiting it would return
        # at once, and whoever loops over that would never let the callback run.
        if self._running is None or self._running.done():
            if self._is_retired:
                raise LogRetired
            self._running = asyncio.ensure_future(self._workers.run(self._log.flush))
            self._running.add_done_callback(self._finished)
        await asyncio.shield(self._running)

    async def retire(self) -> None:
        """No flush begins any more, and none is running when this returns: by then its files may have other owners."""
        self._is_retired = True
        await self.settle()

    async def settle(self) -> None:
        """Wait for a running flush, whatever comes of it: nobody may close the log under it."""
        if self._running is not None:
            await asyncio.wait([self._running])

    def _finished(self, flush: asyncio.Future[None]) -> None:
        if self._running is flush:
            self._running = None
        self.dirty_since_ms = None
        if not flush.cancelled():
            problem = flush.exception()  # whoever waited has seen it
            self.has_failed = problem is not None
            # A full disk may refuse a file that is written beside, but what a sync has lost is lost.
            if isinstance(problem, OSError) and (self._log.has_failed or not is_refusal(problem)):
                self._report_failure(problem)
