"""One partition as this broker holds it: its role, its log, and how far its records are committed.

Today a partition has one replica, which leads; what is appended is committed at once. The role, the leader epoch and
the high watermark are here already because every rule about reading and fencing is stated in their terms.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

from odradek.host.disk import is_refusal
from odradek.log.append_result import AppendResult
from odradek.protocol.errors import ErrorCode
from odradek.protocol.sentinels import NO_EPOCH, NO_OFFSET
from odradek.replica.flushing import LogFlusher

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    from odradek.host.host import Host
    from odradek.host.slices import FileSlice
    from odradek.log.log_directory import LogDirectory
    from odradek.log.partition_log import PartitionLog
    from odradek.metadata.image import PartitionImage
    from odradek.replica.waiting_requests import WaitingFetch

ALL_IN_SYNC = -1  # acks=all

# An attribute of an enum takes longer to look up than the comparison with it.
_NONE = ErrorCode.NONE


class Role(enum.Enum):
    LEADER = "leader"
    OFFLINE = "offline"  # its topic was deleted
    FAILED = "failed"  # its directory was


_LEADER = Role.LEADER


class FetchResult:
    """What one partition gives to one fetch."""

    __slots__ = ("diverging_end_offset", "diverging_epoch", "error", "high_watermark", "log_start_offset", "records")

    def __init__(
        self,
        error: ErrorCode,
        high_watermark: int = NO_OFFSET,
        log_start_offset: int = NO_OFFSET,
        records: FileSlice | None = None,
    ) -> None:
        self.error = error
        self.high_watermark = high_watermark
        self.log_start_offset = log_start_offset
        self.records = records
        self.diverging_epoch = NO_EPOCH
        self.diverging_end_offset = NO_OFFSET


class Partition:
    """Owned by the partition table; changed only by its own methods, never across an await."""

    __slots__ = (
        "_fail_directory",
        "directory",
        "flusher",
        "high_watermark",
        "in_sync_count",
        "index",
        "leader_epoch",
        "log",
        "replica_count",
        "role",
        "topic",
        "topic_id",
        "waiting_fetches",
    )

    def __init__(
        self,
        topic: str,
        topic_id: UUID,
        image: PartitionImage,
        log: PartitionLog,
        directory: LogDirectory,
        host: Host,
        fail_directory: Callable[[LogDirectory, OSError], None],
    ) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.index = image.index
        self.log = log
        self.directory = directory
        self._fail_directory = fail_directory
        self.flusher = LogFlusher(log, host.workers, self.fail_directory)
        self.role = Role.LEADER if directory.failure is None else Role.FAILED
        self.high_watermark = log.log_end_offset
        self.update(image)
        self.waiting_fetches: set[WaitingFetch] = set()

    def append(self, batch: memoryview, acks: int, *, is_built_here: bool = False) -> AppendResult:
        """Append one batch as the leader and advance the high watermark. `is_built_here`: see `PartitionLog.append`."""
        if self.role is not _LEADER:
            return AppendResult(self._absence)
        log = self.log
        in_sync_count = self.in_sync_count
        # A partition is never asked for more replicas than it was given: a topic with one replica on a broker with
        # `min.insync.replicas=2` works, as in Kafka.
        if (
            acks == ALL_IN_SYNC
            and in_sync_count < log.config.min_insync_replicas
            and in_sync_count < self.replica_count
        ):
            return AppendResult(ErrorCode.NOT_ENOUGH_REPLICAS)
        size_before = log.size_bytes
        try:
            result = log.append(batch, self.leader_epoch, is_built_here=is_built_here)
        except OSError as problem:
            self.report_failure(problem)
            raise
        if result.error is _NONE and not result.is_duplicate:
            self.high_watermark = log.log_end_offset
            if self.waiting_fetches:
                size_bytes = log.size_bytes - size_before  # as it is stored, which may be in another codec
                for fetch in tuple(self.waiting_fetches):
                    fetch.appended(size_bytes)
        return result

    @property
    def _absence(self) -> ErrorCode:
        return ErrorCode.KAFKA_STORAGE_ERROR if self.role is Role.FAILED else ErrorCode.NOT_LEADER_OR_FOLLOWER

    @property
    def must_flush(self) -> bool:
        """Whether `flush.messages` asks for an fsync before the last append may be acknowledged."""
        log = self.log
        return log.log_end_offset - log.recovery_point_offset >= log.config.flush_messages

    def check_epoch(self, current_leader_epoch: int) -> ErrorCode:
        """KIP-320: a client with an older view of the leadership is fenced, one with a newer view must wait for us."""
        if self.role is not _LEADER:
            return self._absence
        if current_leader_epoch in (NO_EPOCH, self.leader_epoch):
            return _NONE
        if current_leader_epoch < self.leader_epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        return ErrorCode.UNKNOWN_LEADER_EPOCH

    def fetch(
        self,
        fetch_offset: int,
        max_bytes: int,
        *,
        current_leader_epoch: int,
        last_fetched_epoch: int,
        whole_first_batch: bool,
    ) -> FetchResult:
        """Committed records from an offset, as a slice of the segment file."""
        if fetch_offset == self.high_watermark and self._is_up_to_date(current_leader_epoch, last_fetched_epoch):
            return FetchResult(_NONE, fetch_offset, self.log.log_start_offset)  # a consumer at the tail, most often
        error = self.check_epoch(current_leader_epoch)
        if error is not _NONE:
            return FetchResult(error)
        log, high_watermark = self.log, self.high_watermark
        if last_fetched_epoch not in (NO_EPOCH, self.leader_epoch):
            diverged = self._find_divergence(fetch_offset, last_fetched_epoch)
            if diverged is not None:
                return diverged
        records = log.read(fetch_offset, max_bytes, high_watermark, whole_first_batch=whole_first_batch)
        if isinstance(records, ErrorCode):
            return FetchResult(records)
        return FetchResult(_NONE, high_watermark, log.log_start_offset, records)

    def _is_up_to_date(self, current_leader_epoch: int, last_fetched_epoch: int) -> bool:
        epoch = self.leader_epoch
        return (
            self.role is _LEADER
            and current_leader_epoch in (NO_EPOCH, epoch)
            and last_fetched_epoch in (NO_EPOCH, epoch)
        )

    def needs_disk(self, fetch_offset: int) -> bool:
        """Whether `fetch` from this offset would read files to find its place."""
        return fetch_offset != self.high_watermark and self.log.needs_disk(fetch_offset)

    def _find_divergence(self, fetch_offset: int, last_fetched_epoch: int) -> FetchResult | None:
        """KIP-595: the reader's history must be a prefix of ours, otherwise it is told where they part."""
        epoch, end_offset = self.log.epoch_end_offset(last_fetched_epoch)
        if epoch == NO_EPOCH:
            return FetchResult(ErrorCode.OFFSET_OUT_OF_RANGE)
        if epoch == last_fetched_epoch and end_offset >= fetch_offset:
            return None
        result = FetchResult(ErrorCode.NONE, self.high_watermark, self.log.log_start_offset)
        result.diverging_epoch = epoch
        result.diverging_end_offset = end_offset
        return result

    def delete_records_before(self, offset: int) -> ErrorCode:
        """Move the log's start; beyond the high watermark nothing may be deleted."""
        if self.role is not Role.LEADER:
            return self._absence
        if offset > self.high_watermark or offset < 0:
            return ErrorCode.OFFSET_OUT_OF_RANGE
        if offset > self.log.log_start_offset:
            self.log.advance_log_start_offset(offset)
        return ErrorCode.NONE

    def update(self, image: PartitionImage) -> None:
        """Take over what the cluster decided about this partition; an epoch begins where the log ends."""
        self.leader_epoch = image.leader_epoch
        self.in_sync_count = len(image.in_sync_replicas)
        self.replica_count = len(image.replicas)
        self.log.leader_epochs.assign(image.leader_epoch, self.log.log_end_offset)

    def retire(self) -> None:
        """The topic is being deleted: nothing is read or written here any more, and nobody waits for it."""
        self.role = Role.OFFLINE
        self.wake_waiting_fetches()

    def report_failure(self, problem: OSError) -> None:
        """Writing has failed. A disk that is full will have room again; one that is broken is not asked again."""
        if not is_refusal(problem):
            self._fail_directory(self.directory, problem)

    def fail_directory(self, problem: OSError) -> None:
        """Whatever the reason: what is on the disk is not what was thought, and only a start can put it right."""
        self._fail_directory(self.directory, problem)

    def fail(self) -> None:
        """Its directory has failed: whatever is asked for, a storage error is the answer."""
        if self.role is Role.LEADER:
            self.role = Role.FAILED
            self.wake_waiting_fetches()

    def wake_waiting_fetches(self) -> None:
        for fetch in tuple(self.waiting_fetches):
            fetch.finish()
