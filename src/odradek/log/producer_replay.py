"""Producer state from stored batches: of a log that is opened, of what a truncation leaves, and of batches that a
follower appends. Only headers are read, and the one record of a control batch."""

from collections.abc import Sequence

from odradek.host.disk import File
from odradek.log.batch_scan import scan_headers
from odradek.log.producer_state import ProducerState
from odradek.log.segment import Segment
from odradek.log.snapshot_files import SnapshotFiles
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


def replay_stored_batch(producers: ProducerState, header: BatchHeader, file: File, position: int) -> None:
    if header.producer_id < 0:
        return
    is_read = header.is_control and header.size_bytes <= LARGEST_CONTROL_BATCH_BYTES
    replay_batch(producers, header, file.read_at(header.size_bytes, position) if is_read else b"")


def replay_batch(producers: ProducerState, header: BatchHeader, batch: Bytes) -> None:
    """Updates the state of the batch's producer. Nothing is checked: the leader did that when it appended the batch.
    A control batch that is no end-transaction marker, or is damaged, says nothing about a producer."""
    if not header.is_control:
        if header.base_sequence >= 0:
            producers.update(header, header.last_offset, header.max_timestamp)
        return
    try:
        marker = read_end_transaction_marker(batch, header)
    except MalformedMessage:
        return
    if marker is not None:
        producers.end_transaction(marker, header.max_timestamp)
