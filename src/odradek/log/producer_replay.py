"""Producer state from stored batches: of a log that is opened, of what a truncation leaves, and of batches that a
follower appends. Only headers are read, and the one record of a control batch."""

from collections.abc import Sequence

from odradek.host.disk import File
from odradek.log.batch_scan import scan_headers
from odradek.log.producer_state import ProducerState
from odradek.log.segment import Segment
from odradek.log.snapshot_files import SnapshotFiles
from odradek.log.transaction_index import AbortedTransaction
from odradek.protocol.batch import BatchHeader
from odradek.protocol.control_records import LARGEST_CONTROL_BATCH_BYTES, read_end_transaction_marker
from odradek.protocol.malformed import MalformedMessage
from odradek.protocol.varints import Bytes


def rebuild_producers(
    producers: ProducerState, snapshots: SnapshotFiles, segments: Sequence[Segment], end_offset: int
) -> None:
    """Loads the newest snapshot at or before `end_offset`, and replays all batches after it; the segments must end at
    `end_offset`. Blocks."""
    snapshots.load_newest(producers, end_offset)
    start_offset = producers.end_offset
    for index, segment in enumerate(segments):
        is_last = index + 1 == len(segments)
        if start_offset >= (end_offset if is_last else segments[index + 1].base_offset):
            continue
        place = segment.locate(start_offset)
        if place is not None:
            file = segment.file
            for position, header in scan_headers(file, place[0], segment.size_bytes):
                replay_stored_batch(producers, header, file, position)
        if not segment.is_writable:
            segment.release()
    producers.end_offset = end_offset


def recover_segment(
    segment: Segment, index_interval_bytes: int, snapshots: SnapshotFiles, earlier_segments: Sequence[Segment]
) -> int:
    """Like `Segment.recover`. The transaction index follows from the batches and the producer state at the segment's
    base offset. Blocks."""
    producers = ProducerState()
    rebuild_producers(producers, snapshots, earlier_segments, segment.base_offset)
    return segment.recover(
        index_interval_bytes,
        lambda file, position, header: replay_stored_batch(producers, header, file, position),
    )


def find_aborted_transactions(
    snapshots: SnapshotFiles, earlier_segments: Sequence[Segment], segment: Segment
) -> list[AbortedTransaction]:
    """The transaction index of a segment, from its batches and the producer state at its base offset. Blocks."""
    return replay_segment(snapshots, earlier_segments, segment)[0]


def replay_segment(
    snapshots: SnapshotFiles, earlier_segments: Sequence[Segment], segment: Segment
) -> tuple[list[AbortedTransaction], bool]:
    """Like `find_aborted_transactions`; also returns whether every batch of the segment could be read."""
    producers = ProducerState()
    rebuild_producers(producers, snapshots, earlier_segments, segment.base_offset)
    file = segment.file
    found, end_position = [], 0
    for position, header in scan_headers(file, 0, segment.size_bytes):
        aborted = replay_stored_batch(producers, header, file, position)
        if aborted is not None:
            found.append(aborted)
        end_position = position + header.size_bytes
    return found, end_position == segment.size_bytes


def replay_stored_batch(
    producers: ProducerState, header: BatchHeader, file: File, position: int
) -> AbortedTransaction | None:
    """Like `replay_batch`, for a batch in a segment file."""
    if header.producer_id < 0:
        return None
    is_read = header.is_control and header.size_bytes <= LARGEST_CONTROL_BATCH_BYTES
    return replay_batch(producers, header, file.read_at(header.size_bytes, position) if is_read else b"")


def replay_batch(producers: ProducerState, header: BatchHeader, batch: Bytes) -> AbortedTransaction | None:
    """Updates the state of the batch's producer, and returns the transaction that the batch has aborted. Nothing is
    checked: the leader did that when it appended the batch. A control batch that is no end-transaction marker, or is
    damaged, says nothing about a producer."""
    if not header.is_control:
        producers.update(header, header.last_offset, header.max_timestamp)
        return None
    try:
        marker = read_end_transaction_marker(batch, header)
    except MalformedMessage:
        return None
    return None if marker is None else producers.end_transaction(marker, header.base_offset, header.max_timestamp)
