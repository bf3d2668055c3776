"""The transaction index of a segment, compared with the markers in the segment, and rebuilt from them."""

from __future__ import annotations

import errno
import os
from bisect import bisect_left, bisect_right
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


def transaction_index_problem(check: SegmentCheck, files: PartitionFiles, *, is_complete: bool) -> str | None:
    """`is_complete` if the index must list every aborted transaction, which a broker that was killed has not written
    for its newest segment."""
    try:
        data = read_transaction_index(RealDisk(), index_path(check.path))
    except FileNotFoundError:
        data = b""
    except MalformedMessage as problem:
        return str(problem)
    listed = {(each.producer_id, each.last_offset): each for each in decode_transaction_index(data)}
    for aborted in files.find_aborted(check.path) if is_complete and check.markers else ():
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
    snapshots, earlier, segment = PartitionFiles(os.path.dirname(segment_path)).before(segment_path)
    paths = (segment.transaction_index.path, checksum_path(segment.transaction_index.path))
    segment.transaction_index.has_file = any(map(os.path.exists, paths))
    recover_segment(segment, LogConfig().index_interval_bytes, snapshots, earlier)
    for file in segment.open_indexes():
        file.sync()


class PartitionFiles:
    """The segments and producer snapshots of a partition. The directory is listed when they are first needed."""

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._segments: list[Segment] = []
        self._snapshots = SnapshotFiles(RealDisk(), directory, (), is_read_only=True)

    def forget(self) -> None:
        """A broker may have replaced files."""
        self._segments.clear()

    def before(self, segment_path: str) -> tuple[SnapshotFiles, list[Segment], Segment]:
        """The producer snapshots, the segments before this one, and this one. FileNotFoundError if it was removed."""
        if not self._segments:
            self._list()
        base_offset = int(os.path.basename(segment_path).removesuffix(LOG_SUFFIX))
        index = bisect_left(self._segments, base_offset, key=lambda segment: segment.base_offset)
        if self._segments[index : index + 1] and self._segments[index].base_offset == base_offset:
            return self._snapshots, self._segments[:index], self._segments[index]
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), segment_path)

    def find_aborted(self, segment_path: str) -> list[AbortedTransaction]:
        try:
            return self._find_aborted(segment_path)
        except FileNotFoundError:  # removed since the directory was listed
            self.forget()
            return self._find_aborted(segment_path)

    def _find_aborted(self, segment_path: str) -> list[AbortedTransaction]:
        snapshots, earlier, segment = self.before(segment_path)
        try:
            return find_aborted_transactions(snapshots, earlier, segment)
        finally:
            segment.release()

    def _list(self) -> None:
        disk = RealDisk()
        offsets = []
        for name in sorted(os.listdir(self._directory)):
            if name.endswith(LOG_SUFFIX):
                segment = Segment(disk, self._directory, int(name.removesuffix(LOG_SUFFIX)))
                segment.size_bytes = disk.file_size(segment.path(LOG_SUFFIX))
                self._segments.append(segment)
            elif name.endswith(SNAPSHOT_SUFFIX):
                offsets.append(int(name.removesuffix(SNAPSHOT_SUFFIX)))
        self._snapshots = SnapshotFiles(disk, self._directory, offsets, is_read_only=True)
