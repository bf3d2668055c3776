"""The aborted transactions of a range of offsets, from the transaction indexes of a log's segments. A read_committed
consumer drops their records. Segments may be removed, replaced or truncated by other threads while these functions run:
FileNotFoundError then, or the caller repeats them (`read_unchanged`)."""

from collections.abc import Sequence

from odradek.host.slices import FileSlice
from odradek.log.reading import find_segment, locate_in_segments
from odradek.log.segment import Segment
from odradek.log.transaction_index import AbortedTransaction


def collect_aborted(segments: Sequence[Segment], first_offset: int, end_offset: int) -> list[AbortedTransaction]:
    """As PartitionLog.aborted_transactions. A transaction may end in a later segment than the one that it overlaps."""
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


def collect_aborted_in(segments: Sequence[Segment], fetch_offset: int, records: FileSlice) -> list[AbortedTransaction]:
    """Those that overlap the batches of a slice that was read from `fetch_offset` on."""
    index = find_segment(segments, fetch_offset)
    if all(segment.transaction_index.is_empty for segment in segments[index:]):
        return []
    segment, _, _ = locate_in_segments(segments, fetch_offset)
    return collect_aborted(segments, fetch_offset, segment.end_offset_before(records.position + records.size_bytes))
