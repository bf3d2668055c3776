"""The transaction index of a segment, compared with the markers in the segment, and rebuilt from them."""

from __future__ import annotations

import os

from odradek.host.real_disk import RealDisk
from odradek.log.log_config import LogConfig
from odradek.log.producer_replay import find_aborted_transactions, recover_segment
from odradek.log.producer_snapshot import SNAPSHOT_SUFFIX
from odradek.log.segment import Segment
from odradek.log.snapshot_files import SnapshotFiles
from odradek.log.stored_segment import LOG_SUFFIX, TRANSACTION_INDEX_SUFFIX
from odradek.log.transaction_index import decode_transaction_index
from odradek.protocol.malformed import MalformedMessage


def transaction_index_problem(segment_path: str, *, is_complete: bool) -> str | None:
    """`is_complete` if the index must list every aborted transaction, which a broker that was killed has not written
    for its newest segment. It may list others: compaction removes their batches first."""
    path = segment_path.removesuffix(LOG_SUFFIX) + TRANSACTION_INDEX_SUFFIX
    try:
        with open(path, "rb") as file:
            listed = {(each.producer_id, each.last_offset): each for each in decode_transaction_index(file.read())}
    except FileNotFoundError:
        listed = {}
    except MalformedMessage as problem:
        return str(problem)
    for aborted in find_aborted_transactions(*_open_files(segment_path)) if is_complete else ():
        entry = listed.get((aborted.producer_id, aborted.last_offset))
        if entry is None or entry.first_offset > aborted.first_offset:
            return (
                f"does not list the transaction of producer {aborted.producer_id} "
                f"from offset {aborted.first_offset} that was aborted at offset {aborted.last_offset}"
            )
    return None


def rebuild_indexes(segment_path: str) -> None:
    snapshots, earlier, segment = _open_files(segment_path)
    segment.transaction_index.has_file = os.path.exists(segment.transaction_index.path)
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
