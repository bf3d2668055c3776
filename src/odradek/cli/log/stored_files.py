"""Reads the segments and indexes of a partition as they are, damaged or not, without the recovery of a broker."""

from __future__ import annotations

import mmap
import os
import struct
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from odradek.conventions.failures import Failure
from odradek.protocol.batch import HEADER_SIZE_BYTES, BatchHeader, read_batch_header

if TYPE_CHECKING:
    from collections.abc import Iterator

LARGEST_BATCH_BYTES = 256 * 1024 * 1024  # a larger decompressed batch counts as damaged
_OFFSET_ENTRY = struct.Struct(">II")
_TIME_ENTRY = struct.Struct(">qI")


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


@contextmanager
def mapped(path: str) -> Iterator[memoryview]:
    """The bytes of a file, mapped into memory."""
    with open(path, "rb") as file:
        if not os.fstat(file.fileno()).st_size:
            yield memoryview(b"")
            return
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as pages, memoryview(pages) as data:
            yield data


def base_offset_of(path: str) -> int:
    """The base offset in the name of a segment's file."""
    stem = os.path.basename(path).split(".")[0]
    if not stem.isdecimal():
        raise Failure(f"{path}: the file name of a segment begins with its base offset, as in {'0' * 20}.log")
    return int(stem)


def offset_entries(path: str, data: bytes) -> Iterator[tuple[int, int]]:
    """Offsets and positions, up to the zeros that Apache Kafka preallocates in an active segment's index."""
    base = base_offset_of(path)
    for relative, position in _OFFSET_ENTRY.iter_unpack(data[: len(data) // 8 * 8]):
        if not relative and not position:
            return
        yield base + relative, position


def time_entries(path: str, data: bytes) -> Iterator[tuple[int, int]]:
    """Timestamps and offsets, up to the zeros."""
    base = base_offset_of(path)
    for timestamp_ms, relative in _TIME_ENTRY.iter_unpack(data[: len(data) // 12 * 12]):
        if not timestamp_ms and not relative:
            return
        yield timestamp_ms, base + relative
