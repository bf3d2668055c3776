"""One replica that is moved to another log directory, and the work on its files. What blocks says so."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from odradek.log.partition_log import PartitionLog
from odradek.protocol.batch import (
    CURRENT_MAGIC,
    HEADER_SIZE_BYTES,
    LENGTH_END_POSITION,
    BatchHeader,
    read_batch_header,
    write_batch,
)
from odradek.protocol.errors import ErrorCode
from odradek.protocol.sentinels import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE, NO_TIMESTAMP
from odradek.replica.moves.rules import CatchUp, OffsetRange, Step, must_restart, next_step

if TYPE_CHECKING:
    from odradek.host.host import Host
    from odradek.log.log_directory import LogDirectory
    from odradek.replica.flushing import LogFlusher
    from odradek.replica.partition import Partition

LARGEST_OFFSET_DELTA = 2**31 - 1


class MoveFailed(Exception):
    """A move cannot be continued, and the disk of its target is not the reason."""


class LogMove:
    """An `OngoingMove`, owned by `LogMoves`. `copy` is the future log; after the exchange, `old_log` is the log that it
    has replaced."""

    __slots__ = (
        "catch_up", "copy", "ended", "failed_exchanges", "is_cancelled", "is_prepared", "is_removed", "old_flusher",
        "old_log", "partition", "path", "remove_now", "source", "target", "truncated_to", "truncation_count",
    )  # fmt: skip

    def __init__(self, partition: Partition, target: LogDirectory, path: str) -> None:
        self.partition = partition
        self.source = partition.directory
        self.target = target
        self.path = path
        self.copy: PartitionLog | None = None
        self.catch_up = CatchUp()
        self.old_log: PartitionLog | None = None
        self.old_flusher: LogFlusher | None = None
        self.is_prepared = False  # the copy is durable enough to replace the log
        self.failed_exchanges = 0  # in how many turns a prepared copy was not at the log end
        self.is_cancelled = False
        self.is_removed = False  # the old copy has lost its name
        self.truncated_to: int | None = None
        self.truncation_count = 0
        self.remove_now = asyncio.Event()  # the old copy is to be removed without delay
        self.ended = asyncio.Event()

    @property
    def is_copying(self) -> bool:
        return self.old_log is None

    @property
    def old_path(self) -> str:
        """The partition's directory in the source."""
        return self.source.partition_directory(self.partition.topic, self.partition.index)

    @property
    def new_path(self) -> str:
        """The partition's directory in the target."""
        return self.target.partition_directory(self.partition.topic, self.partition.index)

    @property
    def lag(self) -> int:
        """How many offsets the copy is behind."""
        return self.partition.log.log_end_offset - (0 if self.copy is None else self.copy.log_end_offset)

    @property
    def size_bytes(self) -> int:
        return 0 if self.copy is None else self.copy.size_bytes

    def note_truncation(self, offset: int) -> None:
        """The log is about to be truncated: what was read of it, and what was copied after `offset`, may be wrong."""
        self.truncation_count += 1
        self.truncated_to = offset if self.truncated_to is None else min(self.truncated_to, offset)

    def step(self, copy: PartitionLog) -> Step:
        return next_step(range_of(copy), range_of(self.partition.log), self.truncated_to)


def range_of(log: PartitionLog) -> OffsetRange:
    return OffsetRange(log.log_start_offset, log.log_end_offset)


def open_copy(move: LogMove, host: Host) -> PartitionLog:
    """Create an empty copy. The copy of an earlier run is removed: what was truncated from the log since it was written
    is not known. Blocks."""
    partition, disk = move.partition, host.disk
    if disk.exists(move.new_path):
        raise MoveFailed(f"{move.new_path} is an old copy, which the next start removes")
    remove_if_present(move.path, host)
    disk.make_directories(move.path)
    move.target.write_partition_metadata(partition.topic, partition.index, partition.topic_id, move.path)
    return PartitionLog.open(move.path, partition.log.config, host, clean_shutdown=False)


def remove_if_present(path: str, host: Host) -> None:
    """Blocks."""
    if host.disk.exists(path):
        host.disk.remove_tree(path)


def read_chunk(log: PartitionLog, offset: int, max_bytes: int) -> bytes | None:
    """Reads from the batch that holds `offset` on. Empty if the offset is not in the log, and None if the log has no
    batch from it to its end. MoveFailed when the log cannot be read. Blocks."""
    try:
        found = log.read(offset, max_bytes, log.log_end_offset, whole_first_batch=True)
        if found is ErrorCode.CORRUPT_MESSAGE:
            raise MoveFailed(f"{log.directory} has damaged records at offset {offset}: run `odradek log verify`")
        if isinstance(found, ErrorCode):
            return b""
        return None if found is None else found.read()
    except OSError as problem:
        raise MoveFailed(f"{log.directory} cannot be read: {problem}") from problem


def batch_for_gap(log: PartitionLog, offset: int, end_offset: int) -> bytearray:
    """A batch without records for offsets that the log has no batch of. Apache Kafka's compaction leaves such gaps,
    also at the end of a log."""
    last_offset = min(end_offset - 1, offset + LARGEST_OFFSET_DELTA)
    header = BatchHeader(
        base_offset=offset,
        batch_length=HEADER_SIZE_BYTES - LENGTH_END_POSITION,
        partition_leader_epoch=log.leader_epochs.epoch_at(last_offset),
        magic=CURRENT_MAGIC,
        crc=0,
        attributes=0,
        last_offset_delta=last_offset - offset,
        base_timestamp=NO_TIMESTAMP,
        max_timestamp=NO_TIMESTAMP,
        producer_id=NO_PRODUCER_ID,
        producer_epoch=NO_PRODUCER_EPOCH,
        base_sequence=NO_SEQUENCE,
        record_count=0,
    )
    return write_batch(header, b"")


def append_chunk(copy: PartitionLog, log: OffsetRange, chunk: bytes | bytearray) -> int:
    """Append what was read of the log, which had this range; returns how many bytes. Blocks."""
    base_offset = read_batch_header(memoryview(chunk)).base_offset
    if must_restart(range_of(copy), log, base_offset):
        copy.truncate_fully_and_start_at(min(base_offset, log.start_offset))  # a compacted log may begin with a gap
    result = copy.append_as_follower(memoryview(chunk))
    if result.error is not ErrorCode.NONE:
        raise MoveFailed(f"{copy.directory} cannot take the batch at {result.refused_base_offset}: {result.error.name}")
    return result.size_bytes


def rename_old_copy(move: LogMove, host: Host) -> str:
    """Durably. Returns the new path. Blocks."""
    renamed = move.source.schedule_delete(move.partition.topic, move.partition.index)
    host.disk.sync_directory(move.source.path)
    return renamed
