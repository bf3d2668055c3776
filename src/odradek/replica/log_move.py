"""One replica that is moved to another log directory, and the work on its files. What blocks says so."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from odradek.log.log_directory import MOVED_FROM_FILE, MOVED_TO_FILE, encode_uuid
from odradek.log.partition_log import PartitionLog
from odradek.protocol.batch import read_batch_header
from odradek.protocol.errors import ErrorCode
from odradek.replica.move_rules import OffsetRange, Step, must_restart, next_step

if TYPE_CHECKING:
    from odradek.host.host import Host
    from odradek.log.log_directory import LogDirectory
    from odradek.replica.flushing import LogFlusher
    from odradek.replica.partition import Partition


class MoveFailed(Exception):
    """A move cannot be continued, and the disk of its target is not the reason."""


class LogMove:
    """An `OngoingMove`, owned by `LogMoves`. `copy` is the future log; after the exchange, `old_log` is the log that it
    has replaced."""

    __slots__ = (
        "copy", "ended", "is_cancelled", "is_prepared", "is_removed", "old_flusher", "old_log", "partition", "path",
        "remove_now", "source", "target", "truncated_to", "truncation_count",
    )  # fmt: skip

    def __init__(self, partition: Partition, target: LogDirectory, path: str) -> None:
        self.partition = partition
        self.source = partition.directory
        self.target = target
        self.path = path
        self.copy: PartitionLog | None = None
        self.old_log: PartitionLog | None = None
        self.old_flusher: LogFlusher | None = None
        self.is_prepared = False  # the copy is durable enough to replace the log
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
    live_path = move.target.partition_directory(partition.topic, partition.index)
    if disk.exists(live_path):
        raise MoveFailed(f"{live_path} is an old copy, which the next start removes")
    remove_if_present(move.path, host)
    disk.make_directories(move.path)
    move.target.write_partition_metadata(partition.topic, partition.index, partition.topic_id, move.path)
    return PartitionLog.open(move.path, partition.log.config, host, clean_shutdown=False)


def remove_if_present(path: str, host: Host) -> None:
    """Blocks."""
    if host.disk.exists(path):
        host.disk.remove_tree(path)


def read_chunk(log: PartitionLog, offset: int, max_bytes: int) -> bytes | ErrorCode | None:
    """MoveFailed when the log cannot be read. Blocks."""
    try:
        found = log.read(offset, max_bytes, log.log_end_offset, whole_first_batch=True)
        return found if found is None or isinstance(found, ErrorCode) else found.read()
    except OSError as problem:
        raise MoveFailed(f"{log.directory} cannot be read: {problem}") from problem


def append_chunk(copy: PartitionLog, log: OffsetRange, chunk: bytes) -> int:
    """Append what was read of the log, which had this range; returns how many bytes. Blocks."""
    base_offset = read_batch_header(memoryview(chunk)).base_offset
    if must_restart(range_of(copy), log, base_offset):
        copy.truncate_fully_and_start_at(min(base_offset, log.start_offset))  # a compacted log may begin with a gap
    result = copy.append_as_follower(memoryview(chunk))
    if result.error is not ErrorCode.NONE:
        raise MoveFailed(f"{copy.directory} cannot take the batch at {result.refused_base_offset}: {result.error.name}")
    return result.size_bytes


def mark_copy(move: LogMove, host: Host) -> None:
    """Before the exchange: after a crash, the marker says which of the two copies is newer. Blocks."""
    host.disk.replace_file(f"{move.path}/{MOVED_FROM_FILE}", _directory_id(move.source))


def mark_old_copy(move: LogMove, host: Host) -> None:
    """When the new copy is durable: the next start deletes an old copy that has this marker. Blocks."""
    path = move.source.partition_directory(move.partition.topic, move.partition.index)
    host.disk.replace_file(f"{path}/{MOVED_TO_FILE}", _directory_id(move.target))


def _directory_id(directory: LogDirectory) -> bytes:
    assert directory.meta_properties is not None
    return encode_uuid(directory.meta_properties.directory_id).encode()


def rename_old_copy(move: LogMove, host: Host) -> str:
    """Durably. Returns the new path. Blocks."""
    renamed = move.source.schedule_delete(move.partition.topic, move.partition.index)
    host.disk.sync_directory(move.source.path)
    return renamed


def remove_mark(move: LogMove, host: Host) -> None:
    """Of the new copy, when there is no old one. Blocks."""
    directory = move.target.partition_directory(move.partition.topic, move.partition.index)
    host.disk.remove(f"{directory}/{MOVED_FROM_FILE}")
    host.disk.sync_directory(directory)
