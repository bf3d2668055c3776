"""The log of a partition that this broker follows: appends of the leader's batches, the leader's offsets, truncation.

Only a follower uses it. The caller has checked that what it applies is of the leader epoch that the partition is in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from odradek.replica.leadership import Leadership
from odradek.replica.truncating import LogTruncator

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from odradek.host.workers import DirectoryWorkers
    from odradek.log.follower_append import FollowerAppend
    from odradek.log.partition_log import PartitionLog
    from odradek.replica.flushing import LogFlusher


class FollowingPartition(Protocol):
    """The part of a partition that is used here."""

    log: PartitionLog
    leadership: Leadership
    leader_epoch: int
    high_watermark: int
    workers: DirectoryWorkers
    flusher: LogFlusher

    @property
    def must_flush(self) -> bool: ...

    def advance_high_watermark(self, offset: int) -> None: ...

    def report_failure(self, problem: OSError) -> None: ...

    def fail_directory(self, problem: OSError) -> None: ...

    def report_truncation(self, offset: int) -> None: ...

    async def finish_truncation(self) -> None: ...


class FollowerLog:
    __slots__ = ("_partition", "_truncator")

    def __init__(self, partition: FollowingPartition) -> None:
        self._partition = partition
        self.follow_exchange()

    def follow_exchange(self) -> None:
        """Another copy of the log is used, in another log directory."""
        partition = self._partition
        self._truncator = LogTruncator(
            partition.log, partition.workers.files, self._finish_truncation, partition.fail_directory
        )

    # Appending

    def append(self, batches: memoryview) -> FollowerAppend:
        """Append what a fetch from the leader returned, as it is. OSError when the disk failed."""
        partition = self._partition
        assert partition.leadership is Leadership.FOLLOWER, "only a follower appends as one"
        try:
            result = partition.log.append_as_follower(batches, partition.leader_epoch)
        except OSError as problem:
            partition.report_failure(problem)
            raise
        if partition.must_flush:
            partition.flusher.begin()
        return result

    def follow_offsets(self, leader_high_watermark: int, leader_log_start_offset: int) -> None:
        """Take over the leader's high watermark and log start, as far as this log has the records."""
        partition, log = self._partition, self._partition.log
        assert partition.leadership is Leadership.FOLLOWER
        partition.advance_high_watermark(min(leader_high_watermark, log.log_end_offset))
        if leader_log_start_offset > log.log_start_offset and leader_log_start_offset <= log.log_end_offset:
            log.advance_log_start_offset(leader_log_start_offset)
            partition.advance_high_watermark(leader_log_start_offset)  # what was deleted was committed

    # Truncating

    @property
    def is_truncating(self) -> bool:
        return self._truncator.is_running

    async def settle(self) -> None:
        """Wait for a running truncation and ignore its outcome."""
        await self._truncator.settle()

    def begin_truncation(self, offset: int) -> Awaitable[None]:
        """Remove the records at and after `offset`, on a worker. The high watermark is lowered first, so that it never
        passes the log end. `is_truncating` when this returns, so that no leader epoch begins between the decision and
        the truncation. The truncation continues if its outcome is not awaited. OSError when the disk failed."""
        self._lower_high_watermark(max(offset, self._partition.log.log_start_offset))
        self._partition.report_truncation(offset)
        return self._truncator.begin_truncation(offset)

    def begin_restart(self, offset: int) -> Awaitable[None]:
        """Remove all records and continue at `offset`: the leader's log begins after this one ends. Otherwise as
        `begin_truncation`."""
        self._lower_high_watermark(offset)
        self._partition.report_truncation(0)
        return self._truncator.begin_restart(offset)

    async def truncate_to(self, offset: int) -> None:
        await self.begin_truncation(offset)

    async def restart_at(self, offset: int) -> None:
        await self.begin_restart(offset)

    def _lower_high_watermark(self, end_offset: int) -> None:
        partition = self._partition
        assert partition.leadership is Leadership.FOLLOWER, "only a follower truncates its log"
        partition.high_watermark = min(partition.high_watermark, end_offset)

    async def _finish_truncation(self) -> None:
        partition, log = self._partition, self._partition.log
        # The log may end in an earlier batch, or begin after the high watermark.
        partition.high_watermark = min(max(partition.high_watermark, log.log_start_offset), log.log_end_offset)
        await partition.finish_truncation()
