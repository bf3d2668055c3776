"""Reads a segment batch by batch, and finds the position at which no batch follows."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from odradek.conventions.figures import count_text
from odradek.protocol.batch import HEADER_SIZE_BYTES, BatchHeader, has_valid_checksum, read_batch_header
from odradek.protocol.compression import Compression
from odradek.protocol.malformed import MalformedMessage
from odradek.protocol.records import Record, read_records

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

LARGEST_BATCH_BYTES = 256 * 1024 * 1024  # a larger decompressed batch counts as damaged
MOST_OBJECTS = LARGEST_BATCH_BYTES // 256  # records and headers


class BatchAt(NamedTuple):
    """A batch and where it begins; `problem` says what is wrong with it."""

    position: int
    header: BatchHeader
    problem: str | None


class TornTail(NamedTuple):
    """No batch begins at this position: the rest is an incomplete write, or damaged."""

    position: int
    problem: str


def scan_segment(data: memoryview, *, verify: bool) -> Iterator[BatchAt | TornTail]:
    """Yield every batch. A wrong checksum is a problem of its batch; an impossible length ends the scan."""
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
        yield BatchAt(position, header, _problem(data, position, header) if verify else None)
        position += header.size_bytes


def _problem(data: memoryview, position: int, header: BatchHeader) -> str | None:
    if header.magic != 2:
        return f"magic {header.magic} is not supported"
    if not has_valid_checksum(data, position, header):
        return "the checksum does not match"
    try:
        count = sum(1 for _record in records_of(data, position, header))
    except MalformedMessage as error:
        return f"the records are malformed: {error}"
    return None if count == header.record_count else f"{count_text(count, 'record')} instead of {header.record_count:,}"


def records_of(data: memoryview, position: int, header: BatchHeader) -> Iterator[Record]:
    """The records of one batch; MalformedMessage if they are malformed."""
    batch = data[position : position + header.size_bytes]
    return read_records(batch, LARGEST_BATCH_BYTES, escapes_names=True, most_objects=MOST_OBJECTS)


def codec_name(header: BatchHeader) -> str:
    number = header.attributes & 0x07
    return Compression(number).name.lower() if number in Compression._value2member_map_ else f"codec {number}"


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
    problems: list[str] = field(default_factory=list)

    def add(self, item: BatchAt | TornTail) -> None:
        if item.problem is not None:
            self.problems.append(f"position {item.position}: {item.problem}")
        if isinstance(item, TornTail):
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


def summarise(data: memoryview, *, verify: bool) -> SegmentSummary:
    summary = SegmentSummary(size_bytes=len(data))
    for item in scan_segment(data, verify=verify):
        summary.add(item)
    return summary


def index_problems(data: memoryview, entries: Sequence[tuple[int, int]]) -> Iterator[str]:
    """Problems of an offset index: entries out of order, or that do not point to the start of a batch."""
    starts = {item.position: item.header for item in scan_segment(data, verify=False) if isinstance(item, BatchAt)}
    previous_offset = -1
    for offset, position in entries:
        header = starts.get(position)
        if offset <= previous_offset:
            yield f"offset {offset} comes after {previous_offset}"
        if header is None:
            yield f"offset {offset} points to position {position}, where no batch begins"
        elif offset < header.base_offset:
            yield f"offset {offset} points to position {position}, where offset {header.base_offset} begins"
        previous_offset = offset
