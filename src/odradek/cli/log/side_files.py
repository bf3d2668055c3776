"""Readers of the small files beside a segment: indexes, producer snapshots, checkpoints. Each yields plain rows.

Files are read as they are, damaged or not, without the broker's recovery.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from crc32c import crc32c

from odradek.conventions.failures import Failure
from odradek.conventions.figures import iso_text
from odradek.log.checkpoints import CHECKSUM_NAME

Row = dict[str, Any]

_OFFSET_ENTRY = struct.Struct(">II")
_TIME_ENTRY = struct.Struct(">qI")
_ABORTED_ENTRY = struct.Struct(">hqqqq")
_SNAPSHOT_HEADER = struct.Struct(">hIi")
_PRODUCER = struct.Struct(">qhiqiqiq")


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
        yield {
            "kind": "time_index_entry",
            "timestamp": timestamp_ms,
            "time": iso_text(timestamp_ms),
            "offset": base + relative,
        }


def transaction_index_rows(_path: str, data: bytes) -> Iterator[Row]:
    for entry in _ABORTED_ENTRY.iter_unpack(data[: len(data) // _ABORTED_ENTRY.size * _ABORTED_ENTRY.size]):
        _version, producer_id, first_offset, last_offset, last_stable_offset = entry
        yield {
            "kind": "aborted_transaction",
            "producer_id": producer_id,
            "first_offset": first_offset,
            "last_offset": last_offset,
            "last_stable_offset": last_stable_offset,
        }


def snapshot_rows(path: str, data: bytes) -> Iterator[Row]:
    """The producers in a snapshot, whose layout is: version, checksum of the rest, entries."""
    if len(data) < _SNAPSHOT_HEADER.size:
        raise Failure(f"{path}: {len(data)} bytes are too short for a producer snapshot")
    version, checksum, count = _SNAPSHOT_HEADER.unpack_from(data)
    if version != 1 or len(data) != _SNAPSHOT_HEADER.size + count * _PRODUCER.size:
        raise Failure(f"{path}: not a producer snapshot of version 1 with {count} entries")
    if crc32c(data[6:]) != checksum:
        yield {"kind": "problem", "file": path, "problem": "the checksum of the snapshot does not match"}
    for entry in _PRODUCER.iter_unpack(data[_SNAPSHOT_HEADER.size :]):
        producer_id, epoch, last_sequence, last_offset, delta, timestamp_ms, coordinator_epoch, first_offset = entry
        yield {
            "kind": "producer",
            "producer_id": producer_id,
            "producer_epoch": epoch,
            "last_sequence": last_sequence,
            "last_offset": last_offset,
            "offset_delta": delta,
            "timestamp": timestamp_ms,
            "time": iso_text(timestamp_ms),
            "coordinator_epoch": coordinator_epoch,
            "transaction_first_offset": None if first_offset < 0 else first_offset,
        }


def leader_epoch_rows(path: str, data: bytes) -> Iterator[Row]:
    for row in _checkpoint_rows(path, data, {"leader_epoch": int, "start_offset": int}):
        yield {"kind": "leader_epoch", **row}


def offset_checkpoint_rows(path: str, data: bytes) -> Iterator[Row]:
    for row in _checkpoint_rows(path, data, {"topic": str, "partition": int, "offset": int}):
        if row.get("topic") != CHECKSUM_NAME:
            yield {"kind": "checkpoint", **row}


def _checkpoint_rows(path: str, data: bytes, columns: Mapping[str, type[int] | type[str]]) -> Iterator[Row]:
    """Kafka's checkpoint files: a version, a count, then as many lines. A malformed line is reported as a problem."""
    lines = data.decode(errors="replace").splitlines()
    entries = [line.split() for line in lines[2:]]
    if (
        len(lines) < 2
        or lines[0] != "0"
        or lines[1] != str(len(entries))
        or any(len(e) != len(columns) for e in entries)
    ):
        raise Failure(f"{path}: not a checkpoint file of version 0")
    for number, entry in enumerate(entries, start=3):
        try:
            yield {name: kind(text) for (name, kind), text in zip(columns.items(), entry, strict=True)}
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
