"""Reads the files of a partition as they are, damaged or not, without the recovery of a broker.

Segments give their batches and a summary; indexes, producer snapshots and checkpoints give plain rows.
"""

from __future__ import annotations

import mmap
import os
import struct
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from crc32c import crc32c

from odradek.conventions.failures import Failure
from odradek.conventions.figures import iso_text
from odradek.log.checkpoints import CHECKSUM_NAME
from odradek.protocol.batch import HEADER_SIZE_BYTES, BatchHeader, read_batch_header
from odradek.protocol.compression import Compression
from odradek.protocol.records import Record, read_records

LARGEST_BATCH_BYTES = 256 * 1024 * 1024  # a larger decompressed batch counts as damaged
MOST_OBJECTS = LARGEST_BATCH_BYTES // 256  # records and headers
_OFFSET_ENTRY = struct.Struct(">II")
_TIME_ENTRY = struct.Struct(">qI")
_ABORTED_ENTRY = struct.Struct(">hqqqq")
_SNAPSHOT_HEADER = struct.Struct(">hIi")
_PRODUCER = struct.Struct(">qhiqiqiq")


class BatchAt(NamedTuple):
    """A batch and where it begins."""

    position: int
    header: BatchHeader


class TornTail(NamedTuple):
    """No batch begins at this position: the rest is an incomplete write, or damaged."""

    position: int
    problem: str


def scan_segment(data: memoryview) -> Iterator[BatchAt | TornTail]:
    """Yield every batch, damaged or not. An impossible length ends the scan."""
    position = 0
    while position < len(data):
        left = len(data) - position
        if left < HEADER_SIZE_BYTES:
            yield TornTail(position, f"{left} bytes are less than a batch header")
            return
        header = read_batch_header(data, position)
        if header.size_bytes < HEADER_SIZE_BYTES or header.magic not in (0, 1, 2):
            yield TornTail(position, f"no batch begins here (length {header.batch_length}, magic {header.magic})")
            return
        if header.size_bytes > left:
            yield TornTail(position, f"a batch of {header.size_bytes} bytes is cut off after {left}")
            return
        yield BatchAt(position, header)
        position += header.size_bytes


def records_of(data: memoryview, position: int, header: BatchHeader) -> Iterator[Record]:
    """The records of one batch; MalformedMessage if they are malformed."""
    batch = data[position : position + header.size_bytes]
    return read_records(batch, LARGEST_BATCH_BYTES, escapes_names=True, most_objects=MOST_OBJECTS)


def codec_name(header: BatchHeader) -> str:
    number = header.attributes & 0x07
    return Compression(number).name.lower() if number in Compression._value2member_map_ else f"codec {number}"


@contextmanager
def mapped(path: str) -> Iterator[memoryview]:
    """The bytes of a file, mapped into memory."""
    with open(path, "rb") as file:
        if not os.fstat(file.fileno()).st_size:
            yield memoryview(b"")
            return
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as pages, memoryview(pages) as data:
            yield data


@dataclass
class SegmentSummary:
    """Counts and ranges of one segment."""

    batches: int = 0
    records: int = 0
    size_bytes: int = 0
    first_offset: int | None = None
    last_offset: int | None = None
    min_timestamp_ms: int | None = None
    max_timestamp_ms: int | None = None
    codecs: Counter[str] = field(default_factory=Counter)
    problem: str | None = None

    @property
    def min_time(self) -> str | None:
        return None if self.min_timestamp_ms is None else iso_text(self.min_timestamp_ms)

    @property
    def max_time(self) -> str | None:
        return None if self.max_timestamp_ms is None else iso_text(self.max_timestamp_ms)

    def add(self, item: BatchAt | TornTail) -> None:
        if isinstance(item, TornTail):
            self.problem = f"position {item.position}: {item.problem}"
            return
        header = item.header
        self.batches += 1
        self.records += max(header.record_count, 0)
        self.first_offset = header.base_offset if self.first_offset is None else self.first_offset
        self.last_offset = header.last_offset
        if header.base_timestamp >= 0:
            # The delete horizon of a batch takes the place of its first timestamp.
            has_no_first = header.uses_log_append_time or header.delete_horizon_ms is not None
            earliest = header.max_timestamp if has_no_first else header.base_timestamp
            self.min_timestamp_ms = min(earliest, self.min_timestamp_ms or earliest)
            self.max_timestamp_ms = max(header.max_timestamp, self.max_timestamp_ms or header.max_timestamp)
        self.codecs[codec_name(header)] += 1


def summarise(data: memoryview) -> SegmentSummary:
    summary = SegmentSummary(size_bytes=len(data))
    for item in scan_segment(data):
        summary.add(item)
    return summary


def index_problems(
    entries: Iterable[tuple[int, int]], first_offsets: Mapping[int, int], previous_offset: int = -1
) -> Iterator[str]:
    """Problems of an offset index: entries out of order, or that do not point to the start of a batch.

    `first_offsets` has the first offset of each batch by its position.
    """
    for offset, position in entries:
        first = first_offsets.get(position)
        if offset <= previous_offset:
            yield f"offset {offset} comes after {previous_offset}"
        if first is None:
            yield f"offset {offset} points to position {position}, where no batch begins"
        elif offset < first:
            yield f"offset {offset} points to position {position}, where offset {first} begins"
        previous_offset = offset


Row = dict[str, Any]


def base_offset_of(path: str) -> int:
    """The base offset in the name of a segment's file."""
    stem = os.path.basename(path).split(".")[0]
    if not stem.isdecimal():
        raise Failure(f"{path}: the file name of a segment begins with its base offset, as in {'0' * 20}.log")
    return int(stem)


def offset_index_rows(path: str, data: bytes) -> Iterator[Row]:
    """Entries up to the zeros that Apache Kafka preallocates in an active segment's index."""
    base = base_offset_of(path)
    for relative, position in _OFFSET_ENTRY.iter_unpack(data[: len(data) // 8 * 8]):
        if not relative and not position:
            return
        yield {"kind": "offset_index_entry", "offset": base + relative, "position": position}


def time_index_rows(path: str, data: bytes) -> Iterator[Row]:
    base = base_offset_of(path)
    for timestamp_ms, relative in _TIME_ENTRY.iter_unpack(data[: len(data) // 12 * 12]):
        if not timestamp_ms and not relative:
            return
        time = {"timestamp": timestamp_ms, "time": iso_text(timestamp_ms)}
        yield {"kind": "time_index_entry", **time, "offset": base + relative}


def transaction_index_rows(_path: str, data: bytes) -> Iterator[Row]:
    names = ("producer_id", "first_offset", "last_offset", "last_stable_offset")
    for _version, *values in _ABORTED_ENTRY.iter_unpack(data[: len(data) // _ABORTED_ENTRY.size * _ABORTED_ENTRY.size]):
        yield {"kind": "aborted_transaction", **dict(zip(names, values, strict=True))}


def snapshot_rows(path: str, data: bytes) -> Iterator[Row]:
    """The producers in a snapshot, whose layout is: version, checksum of the rest, entries."""
    if len(data) < _SNAPSHOT_HEADER.size:
        raise Failure(f"{path}: {len(data)} bytes are too short for a producer snapshot")
    version, checksum, count = _SNAPSHOT_HEADER.unpack_from(data)
    if version != 1 or len(data) != _SNAPSHOT_HEADER.size + count * _PRODUCER.size:
        raise Failure(f"{path}: not a producer snapshot of version 1 with {count} entries")
    if crc32c(data[6:]) != checksum:
        yield {"kind": "problem", "file": path, "problem": "the checksum of the snapshot does not match"}
    names = ("producer_id", "producer_epoch", "last_sequence", "last_offset", "offset_delta", "timestamp")
    for *entry, coordinator_epoch, first_offset in _PRODUCER.iter_unpack(data[_SNAPSHOT_HEADER.size :]):
        yield {
            "kind": "producer",
            **dict(zip(names, entry, strict=True)),
            "time": iso_text(entry[-1]),
            "coordinator_epoch": coordinator_epoch,
            "transaction_first_offset": None if first_offset < 0 else first_offset,
        }


def leader_epoch_rows(path: str, data: bytes) -> Iterator[Row]:
    return _checkpoint_rows(path, data, "leader_epoch", {"leader_epoch": int, "start_offset": int})


def offset_checkpoint_rows(path: str, data: bytes) -> Iterator[Row]:
    rows = _checkpoint_rows(path, data, "checkpoint", {"topic": str, "partition": int, "offset": int})
    return (row for row in rows if row.get("topic") != CHECKSUM_NAME)


def _checkpoint_rows(path: str, data: bytes, kind: str, columns: Mapping[str, type[int] | type[str]]) -> Iterator[Row]:
    """Kafka's checkpoint files: a version, a count, then as many lines. A malformed line is reported as a problem."""
    lines = data.decode(errors="replace").splitlines()
    entries = [line.split() for line in lines[2:]]
    if lines[:2] != ["0", str(len(entries))] or any(len(entry) != len(columns) for entry in entries):
        raise Failure(f"{path}: not a checkpoint file of version 0")
    for number, entry in enumerate(entries, start=3):
        try:
            values = [read(text) for read, text in zip(columns.values(), entry, strict=True)]
            yield {"kind": kind, **dict(zip(columns, values, strict=True))}
        except ValueError:
            yield {"kind": "problem", "problem": f"line {number}: {' '.join(entry)!r} is not {' '.join(columns)}"}


def properties_rows(_path: str, data: bytes) -> Iterator[Row]:
    """`partition.metadata` and `meta.properties`: one pair per line."""
    for line in data.decode(errors="replace").splitlines():
        key, separator, value = line.partition(":") if ":" in line.split("=")[0] else line.partition("=")
        if separator and not line.startswith("#"):
            yield {"kind": "property", "property": key.strip(), "value": value.strip()}


RowReader = Callable[[str, bytes], Iterator[Row]]

READERS: dict[str, tuple[str, RowReader]] = {
    ".index": ("offset index", offset_index_rows),
    ".timeindex": ("time index", time_index_rows),
    ".txnindex": ("aborted transactions", transaction_index_rows),
    ".snapshot": ("producer snapshot", snapshot_rows),
    "leader-epoch-checkpoint": ("leader epochs", leader_epoch_rows),
    "recovery-point-offset-checkpoint": ("recovery points", offset_checkpoint_rows),
    "replication-offset-checkpoint": ("high watermarks", offset_checkpoint_rows),
    "log-start-offset-checkpoint": ("log start offsets", offset_checkpoint_rows),
    "cleaner-offset-checkpoint": ("cleaned up to", offset_checkpoint_rows),
    "partition.metadata": ("partition metadata", properties_rows),
    "meta.properties": ("directory metadata", properties_rows),
}


def reader_for(path: str) -> tuple[str, RowReader] | None:
    """The kind of a file and the function that reads it, by the file's name; None if unknown."""
    name = os.path.basename(path)
    return READERS.get(name) or READERS.get(os.path.splitext(name)[1])
