"""Finding records by time: the indexes lead to one batch, and only the records of that one are parsed."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from odradek.log.batch_scan import scan_headers
from odradek.log.segment import Segment
from odradek.protocol.batch import BatchHeader
from odradek.protocol.compression import DecompressedTooLarge
from odradek.protocol.records import Pause, read_times
from odradek.protocol.sentinels import NO_TIMESTAMP


class TimestampOffset(NamedTuple):
    timestamp_ms: int
    offset: int
    leader_epoch: int


class RecordReading(NamedTuple):
    """How a search reads the records of the batch that it has found. Stored batches may decompress to any size: one of
    more than `limit_bytes` is not decompressed, and the search finds the start of the batch."""

    limit_bytes: int
    pause: Pause | None = None


def find_offset_for_timestamp(
    segments: Sequence[Segment], log_start_offset: int, timestamp_ms: int, reading: RecordReading
) -> TimestampOffset | None:
    """The first record at or after `log_start_offset` whose timestamp is at least `timestamp_ms`."""
    for index, segment in enumerate(segments):
        is_last = index + 1 == len(segments)
        if not is_last and segments[index + 1].base_offset <= log_start_offset:
            continue
        if segment.load_max_timestamp() < timestamp_ms:
            continue
        try:
            found = _search_segment(segment, timestamp_ms, log_start_offset, reading)
            segment.check_not_removed()
        finally:
            _release(segment)
        if found is not None:
            return found
    return None


def _search_segment(
    segment: Segment, timestamp_ms: int, log_start_offset: int, reading: RecordReading
) -> TimestampOffset | None:
    start_offset = max(segment.base_offset + segment.time_index.lookup(timestamp_ms), log_start_offset)
    position = segment.offset_index.lookup(start_offset - segment.base_offset)
    for batch_position, header in scan_headers(segment.file, position, segment.size_bytes):
        if header.max_timestamp < timestamp_ms or header.last_offset < log_start_offset:
            continue
        for offset, timestamp in _read_times(segment, batch_position, header, log_start_offset, reading):
            if timestamp >= timestamp_ms and offset >= log_start_offset:
                return TimestampOffset(timestamp, offset, header.partition_leader_epoch)
    return None


def find_max_timestamp(
    segments: Sequence[Segment], log_start_offset: int, reading: RecordReading
) -> TimestampOffset | None:
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
        found = _first_with_max_timestamp(newest, log_start_offset, reading)
        newest.check_not_removed()
    finally:
        _release(newest)
    return found


def _first_with_max_timestamp(newest: Segment, log_start_offset: int, reading: RecordReading) -> TimestampOffset | None:
    timestamp_ms, last_offset = newest.max_timestamp, newest.offset_of_max_timestamp
    position = newest.offset_index.lookup(last_offset - newest.base_offset)
    for batch_position, header in scan_headers(newest.file, position, newest.size_bytes):
        if header.max_timestamp == timestamp_ms:
            for offset, timestamp in _read_times(newest, batch_position, header, log_start_offset, reading):
                if timestamp == timestamp_ms:
                    return TimestampOffset(timestamp_ms, offset, header.partition_leader_epoch)
    return None


def _release(segment: Segment) -> None:
    """Keeps the indexes of a segment that is written to: a truncation, on another thread, is to write those of the
    segment that it cuts, and appends need those of the active one."""
    if not segment.is_writable:
        segment.release()


def _read_times(
    segment: Segment, position: int, header: BatchHeader, log_start_offset: int, reading: RecordReading
) -> Iterator[tuple[int, int]]:
    """Offset and timestamp of each record; of a batch over the limit, its first offset with its largest timestamp."""
    stored = segment.file.read_at(header.size_bytes, position)
    limit_bytes = reading.limit_bytes if header.compression else max(reading.limit_bytes, header.size_bytes)
    try:
        yield from read_times(stored, limit_bytes, reading.pause)
    except DecompressedTooLarge:
        yield max(header.base_offset, log_start_offset), header.max_timestamp
