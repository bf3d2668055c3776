"""The log of one shard as a coordinator sees it: records in, an error that clients of coordinators know out."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from odradek.coordinator.runtime.record_batches import NO_PRODUCER, BatchProducer, build_coordinator_batch
from odradek.host.logs import get_logger
from odradek.protocol.compression import Compression
from odradek.protocol.errors import ErrorCode
from odradek.replica.partition import ALL_IN_SYNC

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from odradek.coordinator.runtime.coordinator_record import CoordinatorRecord
    from odradek.host.clock import Clock
    from odradek.log.partition_log import PartitionLog
    from odradek.log.transaction_verification import VerificationGuard
    from odradek.protocol.control_records import EndTransactionMarker
    from odradek.replica.partition import Partition

log = get_logger(__name__)

READ_BYTES = 4 << 20

# Over the bytes of key and value: lengths, deltas and attributes of a record, and the header of a batch.
RECORD_OVERHEAD_BYTES = 32
BATCH_OVERHEAD_BYTES = 128

MOST_COMPRESSION = 4
"""Records of more than so many times `batch_limit_bytes` are refused without an attempt to compress them: building and
compressing a batch occupies the event loop, about 15 ms for each MiB."""

# The error that a client of a coordinator gets for each error of an append (as Kafka's GroupMetadataManager has it).
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
_NONE = ErrorCode.NONE


def coordinator_error(error: ErrorCode) -> ErrorCode:
    """The error that a client of a coordinator gets for one of the partition: clients look for another coordinator
    after NOT_COORDINATOR, and not after NOT_LEADER_OR_FOLLOWER."""
    return _ERRORS.get(error, error)


class TransactionalWrite(NamedTuple):
    """An append in the transaction of a client's producer. `guard` is that of the verification by which the transaction
    begins in this log; None when it has begun."""

    producer: BatchProducer
    guard: VerificationGuard | None = None


class ShardLog(Protocol):
    """One partition of an internal topic, on the broker that leads it."""

    @property
    def index(self) -> int: ...

    @property
    def name(self) -> str:
        """For messages."""

    @property
    def log_directory(self) -> Hashable:
        """Logs of different ones do not wait for each other's disk."""

    @property
    def is_leader(self) -> bool: ...

    @property
    def leader_epoch(self) -> int: ...

    def leads_in(self, leader_epoch: int) -> bool:
        """Whether this broker leads the partition in this epoch."""

    @property
    def log_start_offset(self) -> int: ...

    @property
    def log_end_offset(self) -> int: ...

    @property
    def high_watermark(self) -> int:
        """Records below it survive a leader change. Never past the log end."""

    @property
    def batch_limit_bytes(self) -> int:
        """How much one append takes, counted by `record_bytes`."""

    def append(self, records: Sequence[CoordinatorRecord], transaction: TransactionalWrite | None = None) -> ErrorCode:
        """All of them in one batch, or none; the error is one that clients of coordinators know."""

    def append_marker(self, marker: EndTransactionMarker, transaction_version: int) -> ErrorCode:
        """End the transaction of a producer in this log."""

    async def read(self, offset: int, end_offset: int) -> bytes | None:
        """Whole batches from `offset` on, or from the log start if that is later; the last batch may be cut off. None
        when the log has no batch there before `end_offset`. OSError when the log cannot be read."""

    def watch(self, on_high_watermark: Callable[[int], None], on_leadership: Callable[[], None]) -> None:
        """Call these on the event loop: with each new high watermark, and after each change of the leadership."""

    def unwatch(self) -> None: ...


def record_bytes(record: CoordinatorRecord) -> int:
    return len(record.key) + len(record.value or b"") + RECORD_OVERHEAD_BYTES


class PartitionShardLog:
    """A `ShardLog` on a partition that this broker hosts."""

    def __init__(self, partition: Partition, clock: Clock) -> None:
        self.partition = partition
        self.index = partition.index
        self._clock = clock
        self._subscriptions: list[Callable[[], None]] = []

    @property
    def name(self) -> str:
        return f"{self.partition.topic}-{self.index}"

    @property
    def log_directory(self) -> Hashable:
        return self.partition.directory

    @property
    def is_leader(self) -> bool:
        return self.partition.is_leader

    @property
    def leader_epoch(self) -> int:
        return self.partition.leader_epoch

    def leads_in(self, leader_epoch: int) -> bool:
        partition = self.partition
        return partition.is_leader and partition.leader_epoch == leader_epoch

    @property
    def log_start_offset(self) -> int:
        return self.partition.log.log_start_offset

    @property
    def log_end_offset(self) -> int:
        return self.partition.log.log_end_offset

    @property
    def high_watermark(self) -> int:
        return self.partition.high_watermark

    @property
    def batch_limit_bytes(self) -> int:
        config = self.partition.log.config
        return min(config.max_message_bytes, config.segment_bytes) - BATCH_OVERHEAD_BYTES

    def _is_too_large(self, batch: bytearray) -> bool:
        config = self.partition.log.config
        return len(batch) > config.max_message_bytes or len(batch) > config.segment_bytes

    def append(self, records: Sequence[CoordinatorRecord], transaction: TransactionalWrite | None = None) -> ErrorCode:
        """Appends the records in one batch, so that the log has all or none of them, even after a crash. A batch over
        the topic's limit is compressed, and refused when that is not enough."""
        now_ms = self._clock.now_ms()
        producer, guard = (NO_PRODUCER, None) if transaction is None else transaction
        batch = build_coordinator_batch(records, now_ms, producer=producer)
        if self._is_too_large(batch):
            if len(batch) > MOST_COMPRESSION * self.batch_limit_bytes:
                return ErrorCode.UNKNOWN_SERVER_ERROR
            batch = build_coordinator_batch(records, now_ms, Compression.ZSTD, producer)
            if self._is_too_large(batch):
                return ErrorCode.UNKNOWN_SERVER_ERROR
        try:
            result = self.partition.append(memoryview(batch), ALL_IN_SYNC, is_built_here=True, verification=guard)
        except OSError as problem:
            return self._storage_error(problem)
        error = result.error
        return _NONE if error is _NONE else coordinator_error(error)

    def append_marker(self, marker: EndTransactionMarker, transaction_version: int) -> ErrorCode:
        try:
            error = self.partition.append_marker(marker, transaction_version=transaction_version).error
        except OSError as problem:
            return self._storage_error(problem)
        return coordinator_error(error)

    def _storage_error(self, problem: OSError) -> ErrorCode:
        log.error("append failed", topic=self.partition.topic, partition=self.index, reason=problem)
        return _ERRORS[ErrorCode.KAFKA_STORAGE_ERROR]

    async def read(self, offset: int, end_offset: int) -> bytes | None:
        return await self.partition.workers.files.run(_read, self.partition.log, offset, end_offset)

    def watch(self, on_high_watermark: Callable[[int], None], on_leadership: Callable[[], None]) -> None:
        self._subscriptions = [
            self.partition.on_high_watermark(on_high_watermark),
            self.partition.on_leadership(on_leadership),
        ]

    def unwatch(self) -> None:
        for unsubscribe in self._subscriptions:
            unsubscribe()
        self._subscriptions = []


def _read(partition_log: PartitionLog, offset: int, end_offset: int) -> bytes | None:
    while True:
        records = partition_log.read(offset, READ_BYTES, end_offset, whole_first_batch=True)
        if not isinstance(records, ErrorCode):
            return None if records is None else records.read()
        if records is ErrorCode.OFFSET_OUT_OF_RANGE and offset < partition_log.log_start_offset:
            offset = partition_log.log_start_offset  # moved since the caller read it
        else:
            raise OSError(f"records at offset {offset} cannot be read: {records.name}")
