"""Reads the files of a partition and finds what is wrong with them.

Nothing is written, so the check may run while a broker uses the files. Then the end of the newest segment may be a
write in progress, and files may disappear."""

from __future__ import annotations

import errno
import mmap
import os
import re
import struct
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from sys import maxsize
from typing import NamedTuple

from odradek.cli.log import findings
from odradek.conventions.failures import Failure
from odradek.host.real_disk import RealDisk
from odradek.log import stored_segment, transaction_index
from odradek.log.cleaned_segment import CLEANED_SUFFIX, SWAP_SUFFIX
from odradek.log.compaction.record_keys import read_keys, read_offset_deltas
from odradek.log.leader_epochs import FILE_NAME as LEADER_EPOCHS_FILE
from odradek.log.log_config import LogConfig
from odradek.log.log_directory import CLEAN_SHUTDOWN_FILE
from odradek.log.producer_replay import find_aborted_transactions, recover_segment
from odradek.log.producer_snapshot import SNAPSHOT_SUFFIX
from odradek.log.segment import LARGEST_RELATIVE_OFFSET, Segment
from odradek.log.snapshot_files import SnapshotFiles
from odradek.protocol.batch import HEADER_SIZE_BYTES, BatchHeader, has_valid_checksum, read_batch_header
from odradek.protocol.compression import decompress
from odradek.protocol.malformed import MalformedMessage

LARGEST_BATCH_BYTES = 256 * 1024 * 1024  # a larger decompressed batch counts as damaged
_OFFSET_ENTRY = struct.Struct(">II")
_TIME_ENTRY = struct.Struct(">qI")


class BatchAt(NamedTuple):
    """A batch and where it begins."""

    position: int
    header: BatchHeader


class TornTail(NamedTuple):
    """No batch begins at this position: the rest is an incomplete write, or damaged."""

    position: int
    problem: str


def scan_segment(data: memoryview) -> Iterator[BatchAt | TornTail]:
    """Yield every batch, damaged or not. An impossible length ends the scan."""
    position = 0
    while position < len(data):
        left = len(data) - position
        if left < HEADER_SIZE_BYTES:
            yield TornTail(position, f"{left} bytes are less than a batch header")
            return
        header = read_batch_header(data, position)
        if header.size_bytes < HEADER_SIZE_BYTES or header.magic not in (0, 1, 2):
            yield TornTail(position, f"no batch begins here (length {header.batch_length}, magic {header.magic})")
            return
        if header.size_bytes > left:
            yield TornTail(position, f"a batch of {header.size_bytes} bytes is cut off after {left}")
            return
        yield BatchAt(position, header)
        position += header.size_bytes


@contextmanager
def mapped(path: str) -> Iterator[memoryview]:
    """The bytes of a file, mapped into memory."""
    with open(path, "rb") as file:
        if not os.fstat(file.fileno()).st_size:
            yield memoryview(b"")
            return
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as pages, memoryview(pages) as data:
            yield data


def base_offset_of(path: str) -> int:
    """The base offset in the name of a segment's file."""
    stem = os.path.basename(path).split(".")[0]
    if not stem.isdecimal():
        raise Failure(f"{path}: the file name of a segment begins with its base offset, as in {'0' * 20}.log")
    return int(stem)


def offset_entries(path: str, data: bytes) -> Iterator[tuple[int, int]]:
    """Offsets and positions, up to the zeros that Apache Kafka preallocates in an active segment's index."""
    base = base_offset_of(path)
    for relative, position in _OFFSET_ENTRY.iter_unpack(data[: len(data) // 8 * 8]):
        if not relative and not position:
            return
        yield base + relative, position


def time_entries(path: str, data: bytes) -> Iterator[tuple[int, int]]:
    """Timestamps and offsets, up to the zeros."""
    base = base_offset_of(path)
    for timestamp_ms, relative in _TIME_ENTRY.iter_unpack(data[: len(data) // 12 * 12]):
        if not timestamp_ms and not relative:
            return
        yield timestamp_ms, base + relative


_SEGMENT_FILE = re.compile(rf"(\d{{{stored_segment.NAME_DIGITS}}})(\.[a-z]+)")
_UNFINISHED = (CLEANED_SUFFIX, SWAP_SUFFIX, stored_segment.DELETED_SUFFIX)


def check_partition(
    path: str, on_progress: Callable[[int], None], *, is_live: bool, only: str | None = None
) -> findings.PartitionCheck:
    """`is_live` if a broker uses the partition; `only` is the file name of a single segment."""
    names = sorted(os.listdir(path))
    matches = [match for match in map(_SEGMENT_FILE.fullmatch, names) if match]
    segments = [match[0] for match in matches if match[2] == stored_segment.LOG_SUFFIX]
    check = findings.PartitionCheck(path, [int(name[: stored_segment.NAME_DIGITS]) for name in segments])
    check.snapshot_offsets = [int(match[1]) for match in matches if match[2] == SNAPSHOT_SUFFIX]
    files = PartitionFiles(path)
    for name in segments if only is None else [only]:
        is_last, segment_path = name == segments[-1], os.path.join(path, name)
        segment = _check_with_indexes(segment_path, files, on_progress, is_last=is_last, is_live=is_live)
        if segment is not None:
            _check_segment_order(check, segment)
            findings.add_segment(check, segment)
    if only is None:
        _check_side_files(check, names, is_live=is_live)
    check.last_batches.clear()
    check.last_markers.clear()
    return check


def _check_with_indexes(
    path: str, files: PartitionFiles, on_progress: Callable[[int], None], *, is_last: bool, is_live: bool
) -> findings.SegmentCheck | None:
    """Check a segment with its indexes; None if the segment was removed.

    A running broker may replace the segment by a compacted one meanwhile: a second check confirms what is found."""
    for attempt in range(2 if is_live else 1):
        if attempt:
            files.forget()
        try:
            segment = check_segment(path, on_progress)
        except FileNotFoundError:
            if not is_live:
                raise
            return None
        _judge_damage(segment, is_last=is_last, is_live=is_live)
        if not is_last and not segment.damaged:
            _check_indexes(segment)
        if not segment.damaged:
            is_complete = not is_last or _was_cleanly_shut_down(os.path.dirname(segment.path))
            problem = transaction_index_problem(segment, files, is_complete=is_complete)
            if problem:
                segment.findings.append(findings.Finding(index_path(segment.path), problem, findings.Remedy.REBUILD))
        if not segment.findings:
            break
    return segment


def check_segment(path: str, on_progress: Callable[[int], None]) -> findings.SegmentCheck:
    base_offset = int(os.path.basename(path)[: stored_segment.NAME_DIGITS])
    check = findings.SegmentCheck(path, base_offset, next_offset=base_offset)
    with mapped(path) as data:
        check.size_bytes = len(data)
        for item in scan_segment(data):
            if isinstance(item, TornTail):
                check.add_damage(item.position, len(data), item.problem)
                return check
            problem = batch_problem(data, item.position, item.header, check)
            if problem:
                check.add_damage(item.position, item.position + item.header.size_bytes, problem)
            else:
                check.batches += 1
                check.records += item.header.record_count
                findings.note_batch(check, item.header)
                check.next_offset = item.header.last_offset + 1
                check.max_timestamp = max(check.max_timestamp, item.header.max_timestamp)
                check.batch_offsets[item.position] = (item.header.base_offset, item.header.last_offset)
            on_progress(item.header.size_bytes)
    return check


def batch_problem(data: memoryview, position: int, header: BatchHeader, check: findings.SegmentCheck) -> str | None:
    """The first problem of a batch, or None. Each check relies on those before it."""
    if header.magic != 2:
        return f"magic {header.magic} is not supported"
    if not has_valid_checksum(data, position, header):
        return "the checksum does not match"
    if header.base_offset < check.next_offset or header.last_offset_delta < 0:
        offsets = f"offsets {header.base_offset}–{header.last_offset}"
        return f"{offsets} where offset {check.next_offset} or later was expected"
    if header.last_offset - check.base_offset > LARGEST_RELATIVE_OFFSET:
        return f"offset {header.last_offset} is too far from the segment's base offset"
    try:
        return _records_problem(data, position, header)
    except MalformedMessage as problem:
        return f"the records are malformed: {problem}"


def _records_problem(data: memoryview, position: int, header: BatchHeader) -> str | None:
    count = header.record_count
    if not count:
        return None
    section = data[position + HEADER_SIZE_BYTES : position + header.size_bytes]
    records = decompress(header.compression, section, LARGEST_BATCH_BYTES)
    read_keys(records, 0, len(records), count)
    deltas = read_offset_deltas(records, 0, count)
    if any(later <= earlier for earlier, later in zip([-1, *deltas], deltas, strict=False)):
        return "the records' offsets are out of order"
    if deltas[-1] > header.last_offset_delta:
        return f"a record at offset {header.base_offset + deltas[-1]}, after the last offset of the batch"
    return None


def _check_segment_order(check: findings.PartitionCheck, segment: findings.SegmentCheck) -> None:
    if check.segments and segment.batches and segment.base_offset < check.segments[-1].next_offset:
        earlier = check.segments[-1]
        name, last_offset = os.path.basename(earlier.path), earlier.next_offset - 1
        text = f"begins at offset {segment.base_offset}, before {name} ends at {last_offset}"
        segment.findings.append(findings.Finding(segment.path, text, findings.Remedy.ASK))


def _judge_damage(segment: findings.SegmentCheck, *, is_last: bool, is_live: bool) -> None:
    """An incomplete batch at the end of the newest segment is an interrupted write, or one in progress."""
    is_tail = len(segment.damaged) == 1 and segment.damaged[0][1] == segment.size_bytes
    if is_last and is_tail:
        (tail,) = segment.findings
        remedy = findings.Remedy.NOTHING if is_live else findings.Remedy.CUT_TAIL
        segment.findings = [findings.Finding(tail.path, tail.text, remedy, is_problem=not is_live)]


def _check_indexes(segment: findings.SegmentCheck) -> None:
    """Check the indexes of a segment that is not the newest. A broker keeps those of the newest in memory."""
    stem = segment.path.removesuffix(stored_segment.LOG_SUFFIX)
    for suffix, problems in (
        (stored_segment.OFFSET_INDEX_SUFFIX, _offset_index_problems),
        (stored_segment.TIME_INDEX_SUFFIX, _time_index_problems),
    ):
        try:
            with open(stem + suffix, "rb") as file:
                data = file.read()
        except FileNotFoundError:
            segment.findings.append(findings.Finding(stem + suffix, "is missing", findings.Remedy.REBUILD))
            continue
        problem = next(problems(stem + suffix, data, segment), None)
        if problem:
            segment.findings.append(findings.Finding(stem + suffix, problem, findings.Remedy.REBUILD))


def _was_cleanly_shut_down(partition_path: str) -> bool:
    return os.path.exists(os.path.join(os.path.dirname(partition_path), CLEAN_SHUTDOWN_FILE))


def _offset_index_problems(path: str, data: bytes, segment: findings.SegmentCheck) -> Iterator[str]:
    if len(data) % 8:
        yield f"{len(data)} bytes are not a multiple of an index entry"
    previous_offset = segment.base_offset - 1
    for offset, position in offset_entries(path, data):
        first, _last = segment.batch_offsets.get(position, (None, None))
        if offset <= previous_offset:
            yield f"offset {offset} comes after {previous_offset}"
        if first is None:
            yield f"offset {offset} points to position {position}, where no batch begins"
        elif offset < first:
            yield f"offset {offset} points to position {position}, where offset {first} begins"
        previous_offset = offset


def _time_index_problems(path: str, data: bytes, segment: findings.SegmentCheck) -> Iterator[str]:
    if len(data) % 12:
        yield f"{len(data)} bytes are not a multiple of an index entry"
    last_ms, last_offset = -1, segment.base_offset
    for timestamp_ms, offset in time_entries(path, data):
        if timestamp_ms <= last_ms or offset < last_offset:
            yield f"timestamp {timestamp_ms} at offset {offset} comes after {last_ms} at {last_offset}"
        last_ms, last_offset = timestamp_ms, offset
    if last_ms != segment.max_timestamp:
        yield f"ends with timestamp {last_ms}, and the segment's largest is {segment.max_timestamp}"


def _check_side_files(check: findings.PartitionCheck, names: list[str], *, is_live: bool) -> None:
    base_offsets = {segment.base_offset for segment in check.segments}
    for name in names:
        path = os.path.join(check.path, name)
        match = _SEGMENT_FILE.fullmatch(name)
        if name.endswith(_UNFINISHED) and not is_live:
            text = "left by an unfinished deletion or compaction"
            check.findings.append(findings.Finding(path, text, findings.Remedy.NOTHING, is_problem=False))
        elif match and match[2] in stored_segment.INDEX_SUFFIXES and int(match[1]) not in base_offsets and not is_live:
            check.findings.append(findings.Finding(path, "an index without its segment", findings.Remedy.SET_ASIDE))
        decode = _decoder(name, check, is_live=is_live)
        problem = _problem_of(path, decode) if decode else None
        is_written = is_live and name.endswith(SNAPSHOT_SUFFIX)  # a snapshot may be incomplete while it is written
        if problem and not is_written:
            check.findings.append(findings.Finding(path, problem, findings.Remedy.SET_ASIDE))


def _decoder(name: str, check: findings.PartitionCheck, *, is_live: bool) -> Callable[[bytes], object] | None:
    if name == LEADER_EPOCHS_FILE:
        is_complete = not is_live and _was_cleanly_shut_down(check.path)
        return lambda data: findings.compare_leader_epochs(data, check, is_complete=is_complete)
    if name.endswith(SNAPSHOT_SUFFIX):
        return lambda data: findings.compare_snapshot(data, int(name.removesuffix(SNAPSHOT_SUFFIX)), check)
    return None


def _problem_of(path: str, decode: Callable[[bytes], object]) -> str | None:
    try:
        with open(path, "rb") as file:
            decode(file.read())
    except FileNotFoundError:
        return None  # removed during the check
    except MalformedMessage as problem:
        return str(problem)
    return None


def transaction_index_problem(check: findings.SegmentCheck, files: PartitionFiles, *, is_complete: bool) -> str | None:
    """`is_complete` if the index must list every aborted transaction: a killed broker's newest one need not."""
    try:
        data = transaction_index.read_transaction_index(RealDisk(), index_path(check.path))
    except FileNotFoundError:
        data = b""
    except MalformedMessage as problem:
        return str(problem)
    listed = {(each.producer_id, each.last_offset): each for each in transaction_index.decode_transaction_index(data)}
    for aborted in files.find_aborted(check.path) if is_complete and check.markers else ():
        entry = listed.get((aborted.producer_id, aborted.last_offset))
        # What follows from the batches that compaction has left may be higher than in the entry, never lower.
        if (
            entry is None
            or entry.first_offset > aborted.first_offset
            or entry.last_stable_offset > aborted.last_stable_offset
        ):
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


def index_path(segment_path: str) -> str:
    return segment_path.removesuffix(stored_segment.LOG_SUFFIX) + transaction_index.TRANSACTION_INDEX_SUFFIX


def rebuild_indexes(segment_path: str) -> None:
    snapshots, earlier, segment = PartitionFiles(os.path.dirname(segment_path)).before(segment_path)
    paths = (segment.transaction_index.path, transaction_index.checksum_path(segment.transaction_index.path))
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
        base_offset = int(os.path.basename(segment_path).removesuffix(stored_segment.LOG_SUFFIX))
        index = bisect_left(self._segments, base_offset, key=lambda segment: segment.base_offset)
        if self._segments[index : index + 1] and self._segments[index].base_offset == base_offset:
            return self._snapshots, self._segments[:index], self._segments[index]
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), segment_path)

    def find_aborted(self, segment_path: str) -> list[transaction_index.AbortedTransaction]:
        try:
            return self._find_aborted(segment_path)
        except FileNotFoundError:  # removed since the directory was listed
            self.forget()
            return self._find_aborted(segment_path)

    def _find_aborted(self, segment_path: str) -> list[transaction_index.AbortedTransaction]:
        snapshots, earlier, segment = self.before(segment_path)
        try:
            return find_aborted_transactions(snapshots, earlier, segment)
        finally:
            segment.release()

    def _list(self) -> None:
        disk = RealDisk()
        offsets = []
        for name in sorted(os.listdir(self._directory)):
            if name.endswith(stored_segment.LOG_SUFFIX):
                segment = Segment(disk, self._directory, int(name.removesuffix(stored_segment.LOG_SUFFIX)))
                segment.size_bytes = disk.file_size(segment.path(stored_segment.LOG_SUFFIX))
                self._segments.append(segment)
            elif name.endswith(SNAPSHOT_SUFFIX):
                offsets.append(int(name.removesuffix(SNAPSHOT_SUFFIX)))
        self._snapshots = SnapshotFiles(disk, self._directory, offsets, is_read_only=True)
