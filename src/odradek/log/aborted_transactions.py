"""The aborted transactions of a range of offsets, from the transaction indexes of a log's segments. A read_committed
consumer drops their records."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from odradek.host.slices import FileSlice
from odradek.log.batch_scan import scan_headers
from odradek.log.reading import find_segment, locate_in_segments

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from odradek.log.partition_log import PartitionLog
    from odradek.log.segment import Segment
    from odradek.log.transaction_index import AbortedTransaction
    from odradek.protocol.errors import ErrorCode

T = TypeVar("T")


def read_committed(
    log: PartitionLog, fetch_offset: int, max_bytes: int, end_offset: int, *, whole_first_batch: bool
) -> tuple[FileSlice | ErrorCode | None, Sequence[AbortedTransaction]]:
    """Like `PartitionLog.read`, with the aborted transactions that overlap the returned batches. `end_offset` is at
    most the last stable offset."""

    def read(segments: Sequence[Segment]) -> tuple[FileSlice | ErrorCode | None, Sequence[AbortedTransaction]]:
        records = log.read(fetch_offset, max_bytes, end_offset, whole_first_batch=whole_first_batch)
        return records, _collect_in(segments, fetch_offset, records) if isinstance(records, FileSlice) else ()

    return _read_unchanged(log, read)


def _read_unchanged(log: PartitionLog, read: Callable[[Sequence[Segment]], T]) -> T:
    """The result of `read`, which is repeated when segments were removed, replaced or truncated while it ran: each of
    these replaces the list of segments."""
    while True:
        segments = log.segments
        try:
            result = read(segments)
        except FileNotFoundError:
            if segments is log.segments:
                raise
        else:
            if segments is log.segments:
                return result


def _collect_in(segments: Sequence[Segment], fetch_offset: int, records: FileSlice) -> Sequence[AbortedTransaction]:
    """The aborted transactions that overlap the batches of a slice that was read from `fetch_offset` on."""
    index = find_segment(segments, fetch_offset)
    if all(segment.transaction_index.is_empty for segment in segments[index:]):
        return ()
    segment, _, _ = locate_in_segments(segments, fetch_offset)
    return collect_aborted(segments, fetch_offset, _end_offset_of(segment, records))


def collect_aborted(segments: Sequence[Segment], first_offset: int, end_offset: int) -> list[AbortedTransaction]:
    """The aborted transactions that overlap these offsets, by the offsets of their markers, which may be in later
    segments. All of them, if every transaction that began before `end_offset` has ended. Reads the indexes of old
    segments from the disk."""
    found: list[AbortedTransaction] = []
    for segment in segments[find_segment(segments, first_offset) :]:
        if segment.transaction_index.is_empty:
            continue
        some, is_complete = segment.transaction_index.collect(first_offset, end_offset)
        segment.check_not_removed()
        found += some
        if is_complete:
            break
    return found


def _end_offset_of(segment: Segment, records: FileSlice) -> int:
    """The offset after the last whole batch of a slice, of which the first is whole. Blocks unless it is a recent
    one."""
    end_position = records.position + records.size_bytes
    relative_offset = segment.recent_batches.last_offset_before(end_position, segment.size_bytes)
    if relative_offset is not None:
        return segment.base_offset + relative_offset + 1
    indexed_position = segment.offset_index.lookup_position(end_position)  # of a batch that may not be whole
    for position in (max(indexed_position, records.position), records.position):
        headers = [header for _, header in scan_headers(segment.file, position, end_position)]
        if headers:
            return headers[-1].last_offset + 1
    return segment.base_offset
