"""Compares the leader epochs and the producer snapshots of a partition with its batches: a file may be whole, and of
another partition, or older than its name says."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING

from odradek.log.leader_epochs import LeaderEpochs, decode_leader_epochs
from odradek.log.producer_snapshot import decode_snapshot
from odradek.protocol.malformed import MalformedMessage
from odradek.protocol.sentinels import NO_PRODUCER_ID

if TYPE_CHECKING:
    from odradek.cli.log.findings import PartitionCheck, SegmentCheck
    from odradek.log.producer_entry import ProducerEntry
    from odradek.protocol.batch import BatchHeader

_NO_OFFSETS = array("q")


def note_batch(check: SegmentCheck, header: BatchHeader) -> None:
    """Remember what other files say about an intact batch."""
    epoch, last_offset = header.partition_leader_epoch, header.last_offset
    if check.leader_epochs and check.leader_epochs[-1][0] == epoch:
        check.leader_epochs[-1] = (epoch, check.leader_epochs[-1][1], last_offset)
    else:
        check.leader_epochs.append((epoch, header.base_offset, last_offset))
    if header.is_control:
        check.markers[header.base_offset] = header.producer_id
    elif header.producer_id != NO_PRODUCER_ID:
        check.producer_offsets.setdefault(header.producer_id, array("q")).append(last_offset)


def add_segment(check: PartitionCheck, segment: SegmentCheck) -> None:
    """Keep of a segment, the next one in order, what the snapshots of the partition are compared with. Facts of single
    batches are dropped: a partition may have many millions."""
    check.segments.append(segment)
    first_inside = bisect_right(check.snapshot_offsets, segment.base_offset)
    first_behind = bisect_left(check.snapshot_offsets, segment.next_offset)
    ends = [*check.snapshot_offsets[first_inside:first_behind], segment.next_offset]
    markers: dict[int, array[int]] = {}
    for offset, producer_id in segment.markers.items():
        markers.setdefault(producer_id, array("q")).append(offset)
    for found, kept in ((segment.producer_offsets, check.last_batches), (markers, check.last_markers)):
        for producer_id, offsets in found.items():
            last = (_last_before(offsets, end) for end in ends)
            kept.setdefault(producer_id, array("q")).extend(offset for offset in last if offset is not None)
    for facts in (segment.producer_offsets, segment.markers, segment.batch_offsets):
        facts.clear()


def _last_before(offsets: array[int], end_offset: int) -> int | None:
    count = bisect_left(offsets, end_offset)
    return offsets[count - 1] if count else None


def compare_leader_epochs(data: bytes, check: PartitionCheck, *, is_complete: bool) -> None:
    """Raises MalformedMessage. The file may lack the last epochs unless `is_complete`."""
    epochs = LeaderEpochs(decode_leader_epochs(data))
    first_offset = epochs.entries[0].start_offset if epochs.entries else 0
    for epoch, *offsets in (each for segment in check.segments for each in segment.leader_epochs):
        if epoch < 0 or (epoch > epochs.latest_epoch and not is_complete):
            continue
        for offset in offsets:
            if offset >= first_offset and epochs.epoch_at(offset) != epoch:
                raise MalformedMessage(f"offset {offset} is of leader epoch {epoch}, not {epochs.epoch_at(offset)}")


def compare_snapshot(data: bytes, end_offset: int, check: PartitionCheck) -> None:
    """Raises MalformedMessage. Compaction may have removed batches, and a broker may have forgotten producers: the
    batches that are there decide."""
    for producer_id, entry in decode_snapshot(data):
        problem = _problem_of(producer_id, entry, end_offset, check)
        if problem:
            raise MalformedMessage(problem)


def _problem_of(producer_id: int, entry: ProducerEntry, end_offset: int, check: PartitionCheck) -> str | None:
    last_offset = entry.batches[-1].last_offset if entry.batches else None
    if last_offset is not None and last_offset >= end_offset:
        return f"it has offset {last_offset} of producer {producer_id}"
    first_offset = entry.current_txn_first_offset
    batch = _last_before(check.last_batches.get(producer_id, _NO_OFFSETS), end_offset)
    if batch is not None and last_offset is not None and batch > last_offset:
        return f"it lacks offset {batch} of producer {producer_id}"
    marker = _last_before(check.last_markers.get(producer_id, _NO_OFFSETS), end_offset)
    if marker is not None and 0 <= first_offset < marker:
        return f"its transaction of producer {producer_id} from offset {first_offset} on has ended"
    return None
