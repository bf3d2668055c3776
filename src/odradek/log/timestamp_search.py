"""Finding records by time: the indexes lead to one batch, and only the records of that one are parsed."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from odradek.log.batch_scan import scan_headers
from odradek.log.segment import Segment
from odradek.protocol.batch import BatchHeader
from odradek.protocol.records import Record, read_records
from odradek.protocol.sentinels import NO_TIMESTAMP

# Searches run on a worker, and stored batches may decompress to more than the topic's limit for new batches.
DECOMPRESSED_LIMIT_BYTES = 128 << 20


class TimestampOffset(NamedTuple):
    timestamp_ms: int
    offset: int
    leader_epoch: int


def find_offset_for_timestamp(
    segments: Sequence[Segment], log_start_offset: int, timestamp_ms: int
) -> TimestampOffset | None:
    """The first record at or after `log_start_offset` whose timestamp is at least `timestamp_ms`."""
    for index, segment in enumerate(segments):
        is_last = index + 1 == len(segments)
        if not is_last and segments[index + 1].base_offset <= log_start_offset:
            continue
        if segment.load_max_timestamp() < timestamp_ms:
            continue
        try:
            found = _search_segment(segment, timestamp_ms, log_start_offset)
            segment.check_not_removed()
        finally:
            _release(segment)
        if found is not None:
            return found
    return None


def _search_segment(segment: Segment, timestamp_ms: int, log_start_offset: int) -> TimestampOffset | None:
    start_offset = max(segment.base_offset + segment.time_index.lookup(timestamp_ms), log_start_offset)
    position = segment.offset_index.lookup(start_offset - segment.base_offset)
    for batch_position, header in scan_headers(segment.file, position, segment.size_bytes):
        if header.max_timestamp < timestamp_ms or header.last_offset < log_start_offset:
            continue
        for record in _parse(segment, batch_position, header):
            if record.timestamp >= timestamp_ms and record.offset >= log_start_offset:
                return TimestampOffset(record.timestamp, record.offset, header.partition_leader_epoch)
    return None


def find_max_timestamp(segments: Sequence[Segment], log_start_offset: int) -> TimestampOffset | None:
    """The first record of the first batch that has the largest timestamp of all."""
    newest: Segment | None = None
    for index, segment in enumerate(segments):
        if index + 1 < len(segments) and segments[index + 1].base_offset <= log_start_offset:
            continue
        if segment.load_max_timestamp() > (newest.max_timestamp if newest else NO_TIMESTAMP):
            newest = segment
    if newest is None:
        return None
    try:
        found = _first_with_max_timestamp(newest)
        newest.check_not_removed()
    finally:
        _release(newest)
    return found


def _first_with_max_timestamp(newest: Segment) -> TimestampOffset | None:
    timestamp_ms, last_offset = newest.max_timestamp, newest.offset_of_max_timestamp
    position = newest.offset_index.lookup(last_offset - newest.base_offset)
    for batch_position, header in scan_headers(newest.file, position, newest.size_bytes):
        if header.max_timestamp == timestamp_ms:
            for record in _parse(newest, batch_position, header):
                if record.timestamp == timestamp_ms:
                    return TimestampOffset(timestamp_ms, record.offset, header.partition_leader_epoch)
    return None


def _release(segment: Segment) -> None:
    """Not the indexes of a segment that is written to: a truncation, on another thread, has yet to write those of the
    segment that it cuts, and appends need those of the active one."""
    if not segment.is_writable:
        segment.release()


def _parse(segment: Segment, position: int, header: BatchHeader) -> Iterator[Record]:
    return read_records(segment.file.read_at(header.size_bytes, position), DECOMPRESSED_LIMIT_BYTES)
