"""A shard's way into its partition: coordinator records in, batches in the log out, errors that group clients know."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.host.logs import get_logger
from odradek.protocol.compression import Compression
from odradek.protocol.errors import ErrorCode
from odradek.protocol.records import Record, build_batch
from odradek.replica.partition import ALL_IN_SYNC

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from odradek.coordinator.groups.group_records import CoordinatorRecord
    from odradek.host.clock import Clock
    from odradek.replica.partition import Partition

log = get_logger(__name__)

# Over the bytes of key and value: lengths, deltas and attributes of a record, and the header of a batch.
RECORD_OVERHEAD_BYTES = 32
BATCH_OVERHEAD_BYTES = 128

# What a failed append means to a member of a group (Kafka's GroupMetadataManager has the same table).
_ERRORS = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.INVALID_RECORD: ErrorCode.UNKNOWN_SERVER_ERROR,  # more records than a batch may have
}


class GroupJournal:
    def __init__(self, partition: Partition, clock: Clock) -> None:
        self.partition = partition
        self._clock = clock

    def append(self, records: Sequence[CoordinatorRecord]) -> ErrorCode:
        """In one batch, so that the log has all of it or nothing, whatever fails, and after a crash too. What would be
        too large is compressed, and refused when that is not enough."""
        now_ms = self._clock.now_ms()
        stamped = [Record(index, now_ms, key, value) for index, (key, value) in enumerate(records)]
        batch = build_batch(stamped)
        if len(batch) > self._limit_bytes:
            batch = build_batch(stamped, compression=Compression.ZSTD)
        partition = self.partition
        try:
            error = partition.append(memoryview(batch), ALL_IN_SYNC).error
        except OSError as problem:
            log.error("append failed", topic=partition.topic, partition=partition.index, reason=str(problem))
            error = ErrorCode.KAFKA_STORAGE_ERROR
        return _ERRORS.get(error, error)

    @property
    def _limit_bytes(self) -> int:
        config = self.partition.log.config
        return min(config.max_message_bytes, config.segment_bytes)

    def parts(self, records: Sequence[CoordinatorRecord]) -> Iterator[Sequence[CoordinatorRecord]]:
        limit_bytes = self._limit_bytes - BATCH_OVERHEAD_BYTES
        first = size_bytes = 0
        for index, record in enumerate(records):
            record_bytes = len(record.key) + len(record.value or b"") + RECORD_OVERHEAD_BYTES
            if size_bytes + record_bytes > limit_bytes and index > first:
                yield records[first:index]
                first, size_bytes = index, 0
            size_bytes += record_bytes
        yield records[first:]

    @property
    def must_flush(self) -> bool:
        return self.partition.must_flush

    async def flush(self) -> None:
        """Return when what was appended until now is on the disk."""
        await self.partition.flusher.flush_to(self.partition.log.log_end_offset)
