"""Batches and logs for the tests of this room."""

from collections.abc import Iterator, Sequence

from odradek.host.host import Host
from odradek.host.slices import FileSlice
from odradek.log.log_config import LogConfig
from odradek.log.partition_log import PartitionLog
from odradek.log.transaction_verification import VerificationGuard
from odradek.protocol.batch import BatchHeader, read_batch_header
from odradek.protocol.compression import Compression
from odradek.protocol.errors import ErrorCode
from odradek.protocol.records import Record, build_batch

NOW_MS = 1_700_000_000_000
EVERYTHING = 1 << 40


def make_batch(
    values: Sequence[bytes] = (b"value",),
    *,
    timestamps: Sequence[int] | None = None,
    key: bytes | None = b"key",
    compression: Compression = Compression.NONE,
    producer: tuple[int, int, int] = (-1, -1, -1),
) -> memoryview:
    """`producer` is its id, its epoch and the sequence number of the first record."""
    records = [
        Record(offset, timestamps[offset] if timestamps else NOW_MS + offset, key, value)
        for offset, value in enumerate(values)
    ]
    producer_id, producer_epoch, base_sequence = producer
    return memoryview(
        build_batch(
            records,
            compression=compression,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=base_sequence,
        )
    )


def verify(log: PartitionLog, batch: memoryview) -> VerificationGuard | None:
    """What the append of a batch that begins a transaction needs, as if the coordinator had confirmed it."""
    header = read_batch_header(batch)
    if not header.is_transactional:
        return None
    guard = log.producers.begin_verification(
        header.producer_id, header.producer_epoch, header.base_sequence, supports_epoch_bump=False, now_ms=NOW_MS
    )
    return None if isinstance(guard, ErrorCode) else guard


def append(log: PartitionLog, batch: memoryview, leader_epoch: int = 0) -> int:
    """The base offset it was given."""
    result = log.append(batch, leader_epoch, verification=verify(log, batch))
    assert result.error is ErrorCode.NONE, result
    return result.base_offset


def open_log(
    host: Host,
    directory: str,
    config: LogConfig | None = None,
    *,
    clean_shutdown: bool = True,
    recovery_point_offset: int = 0,
    log_start_offset: int = 0,
) -> PartitionLog:
    return PartitionLog.open(
        directory,
        config or LogConfig(),
        host,
        clean_shutdown=clean_shutdown,
        recovery_point_offset=recovery_point_offset,
        log_start_offset=log_start_offset,
    )


def delete_before(log: PartitionLog, offset: int) -> None:
    """Records and, whole, their segments."""
    log.advance_log_start_offset(offset)
    log.remove_segments_before_start(EVERYTHING)


def split(data: bytes) -> Iterator[tuple[BatchHeader, bytes]]:
    """The whole batches in what a read returned; the last may be cut off."""
    position = 0
    while len(data) - position >= 61:
        header = read_batch_header(data, position)
        if position + header.size_bytes > len(data):
            return
        yield header, data[position : position + header.size_bytes]
        position += header.size_bytes


def read_all(log: PartitionLog) -> list[bytes]:
    """Every batch from the start of the log, the way a consumer gets them."""
    batches: list[bytes] = []
    offset = log.log_start_offset
    while True:
        piece = log.read(offset, 1 << 20, log.log_end_offset, whole_first_batch=True)
        if piece is None:
            return batches
        assert isinstance(piece, FileSlice)
        for header, batch in split(piece.read()):
            batches.append(batch)
            offset = header.last_offset + 1
