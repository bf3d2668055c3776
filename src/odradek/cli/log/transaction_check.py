"""The transaction index of a segment, compared with the markers in the segment, and rebuilt from them."""

from __future__ import annotations

import os
from bisect import bisect_right
from sys import maxsize
from typing import TYPE_CHECKING

from odradek.host.real_disk import RealDisk
from odradek.log.log_config import LogConfig
from odradek.log.producer_replay import find_aborted_transactions, recover_segment
from odradek.log.producer_snapshot import SNAPSHOT_SUFFIX
from odradek.log.segment import Segment
from odradek.log.snapshot_files import SnapshotFiles
from odradek.log.stored_segment import LOG_SUFFIX
from odradek.log.transaction_index import (
    TRANSACTION_INDEX_SUFFIX,
    checksum_path,
    decode_transaction_index,
    read_transaction_index,
)
from odradek.protocol.malformed import MalformedMessage

if TYPE_CHECKING:
    from odradek.cli.log.findings import SegmentCheck
    from odradek.log.transaction_index import AbortedTransaction


def transaction_index_problem(check: SegmentCheck, *, is_complete: bool) -> str | None:
    """`is_complete` if the index must list every aborted transaction, which a broker that was killed has not written
    for its newest segment."""
    try:
        data = read_transaction_index(RealDisk(), index_path(check.path))
    except FileNotFoundError:
        data = b""
    except MalformedMessage as problem:
        return str(problem)
    listed = {(each.producer_id, each.last_offset): each for each in decode_transaction_index(data)}
    for aborted in find_aborted_transactions(*_open_files(check.path)) if is_complete and check.markers else ():
        entry = listed.get((aborted.producer_id, aborted.last_offset))
        if entry is None or not _covers(entry, aborted):
            return (
                f"does not list the transaction of producer {aborted.producer_id} "
                f"from offset {aborted.first_offset} that was aborted at offset {aborted.last_offset}"
            )
    batches = sorted(check.batch_offsets.values())
    for producer_id, marker_offset in listed:
        batch = bisect_right(batches, (marker_offset, maxsize)) - 1
        is_in_batch = batch >= 0 and batches[batch][1] >= marker_offset  # compaction may have removed the marker
        if is_in_batch and check.markers.get(marker_offset) != producer_id:
            return f"lists a transaction of producer {producer_id}, which has no marker at offset {marker_offset}"
    return None


def _covers(entry: AbortedTransaction, found: AbortedTransaction) -> bool:
    """What follows from the batches that compaction has left may be higher than in the entry, never lower."""
    return entry.first_offset <= found.first_offset and entry.last_stable_offset <= found.last_stable_offset


def index_path(segment_path: str) -> str:
    return segment_path.removesuffix(LOG_SUFFIX) + TRANSACTION_INDEX_SUFFIX


def rebuild_indexes(segment_path: str) -> None:
    snapshots, earlier, segment = _open_files(segment_path)
    paths = (segment.transaction_index.path, checksum_path(segment.transaction_index.path))
    segment.transaction_index.has_file = any(map(os.path.exists, paths))
    recover_segment(segment, LogConfig().index_interval_bytes, snapshots, earlier)
    for file in segment.open_indexes():
        file.sync()


def _open_files(segment_path: str) -> tuple[SnapshotFiles, list[Segment], Segment]:
    """The producer snapshots of the partition, the segments before this one, and this one."""
    directory, name = os.path.split(segment_path)
    names = sorted(os.listdir(directory))
    disk = RealDisk()
    segments = []
    for each in names:
        if each.endswith(LOG_SUFFIX) and each <= name:
            segment = Segment(disk, directory, int(each.removesuffix(LOG_SUFFIX)))
            segment.size_bytes = disk.file_size(segment.path(LOG_SUFFIX))
            segments.append(segment)
    offsets = (int(each.removesuffix(SNAPSHOT_SUFFIX)) for each in names if each.endswith(SNAPSHOT_SUFFIX))
    return SnapshotFiles(disk, directory, offsets, is_read_only=True), segments[:-1], segments[-1]
