"""Compacts one log, as far as the memory for its keys suffices: it maps the keys of the dirty part to their latest
offsets, and then rewrites all segments up to there, a group at a time, without superseded records. Runs in a process of
its own.

The old files are only read, and the broker does not touch the new ones before they are staged."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import NamedTuple

from odradek.conventions.dataclass import dataclass
from odradek.host.background import BackgroundContext
from odradek.host.disk import Disk
from odradek.log.cleaned_segment import CleanedSegment, CleanedSegmentWriter
from odradek.log.compaction.batch_filter import BatchFilter, LastRecord, marker_key, read_section
from odradek.log.compaction.grouping import SegmentFiles, group_segments
from odradek.log.compaction.latest_offsets import LatestOffsets
from odradek.log.compaction.record_keys import read_keys, read_offset_deltas
from odradek.log.compaction.segment_reader import DamagedSegment, read_batches
from odradek.log.compaction.transactions import TransactionTracker
from odradek.log.stored_segment import (
    LOG_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    TIME_INDEX_SUFFIX,
    file_path,
)
from odradek.log.transaction_index import (
    TRANSACTION_CHECKSUM_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
    AbortedTransaction,
    decode_transaction_index,
    read_transaction_index,
)
from odradek.protocol.batch import BatchHeader
from odradek.protocol.malformed import MalformedMessage

NO_LIMIT = float("inf")
INDEX_WRITE_MS = 100.0  # far longer than writing a transaction index takes
LONGEST_PAUSE_MS = 10_000.0
BYTES_BETWEEN_REPORTS = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionJob:
    directory: str
    base_offsets: Sequence[int]
    """Base offsets of the segments that may be rewritten: all before the end offset."""
    first_dirty_offset: int
    end_offset: int
    now_ms: int
    delete_retention_ms: int
    segment_bytes: int
    segment_index_bytes: int
    index_interval_bytes: int
    last_records: Mapping[int, LastRecord]
    aborted_in_active_segment: Sequence[AbortedTransaction]
    """The transaction index of the active segment, which has no file."""
    dedupe_buffer_bytes: int
    io_bytes_per_second: float = NO_LIMIT


class CleanedGroup(NamedTuple):
    """Segments, and the staged segment that can replace them."""

    base_offsets: list[int]
    cleaned: CleanedSegment


@dataclass(slots=True)
class CompactionOutcome:
    """The result of a job: the log is clean before `clean_offset`."""

    clean_offset: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    records_read: int = 0
    records_kept: int = 0
    keys: int = 0
    seconds: float = field(default=0.0, compare=False)


def compact(context: BackgroundContext, job: CompactionJob) -> Iterator[CleanedGroup | CompactionOutcome]:
    """Yields each group when it is staged, and the outcome last. Raises OSError, or DamagedSegment for invalid data."""
    started_ms = context.monotonic_ms()
    outcome = CompactionOutcome()
    throttle = _Throttle(context, job.io_bytes_per_second)
    segments = [_segment_files(context.disk, job.directory, base_offset) for base_offset in job.base_offsets]
    aborted = {*_read_aborted(context, job.directory), *job.aborted_in_active_segment}
    later = (each for each in aborted if each.last_offset >= job.first_dirty_offset)
    latest = _map_keys(context.disk, job, segments, TransactionTracker(later), throttle.spend)
    outcome.clean_offset = latest.next_offset
    outcome.keys = len(latest)
    transactions = TransactionTracker(aborted)
    batch_filter = BatchFilter(
        latest, transactions, job.last_records, now_ms=job.now_ms, delete_retention_ms=job.delete_retention_ms
    )
    reached = [segment for segment in segments if segment.base_offset < latest.next_offset]
    for group in group_segments(
        reached, segment_bytes=job.segment_bytes, index_bytes=job.segment_index_bytes, end_offset=job.end_offset
    ):
        cleaned = _write_group(context.disk, job, group, batch_filter, transactions, outcome, throttle.spend)
        yield CleanedGroup([segment.base_offset for segment in group], cleaned)
    outcome.seconds = (context.monotonic_ms() - started_ms) / 1000
    yield outcome


def _map_keys(
    disk: Disk,
    job: CompactionJob,
    segments: Sequence[SegmentFiles],
    transactions: TransactionTracker,
    spend: Callable[[int], None],
) -> LatestOffsets:
    latest = LatestOffsets(job.first_dirty_offset, job.dedupe_buffer_bytes)
    for number, segment in enumerate(segments):
        end_offset = segments[number + 1].base_offset if number + 1 < len(segments) else job.end_offset
        if end_offset <= job.first_dirty_offset:
            continue
        if not _map_segment(disk, job, segment, latest, transactions, spend):
            break
        latest.skip_to(end_offset)
    latest.finish()
    return latest


def _map_segment(
    disk: Disk,
    job: CompactionJob,
    segment: SegmentFiles,
    latest: LatestOffsets,
    transactions: TransactionTracker,
    spend: Callable[[int], None],
) -> bool:
    """False when the memory did not suffice for the whole segment."""
    path = file_path(job.directory, segment.base_offset, LOG_SUFFIX)
    for data, position, header in read_batches(disk.open(path), path, 0, segment.size_bytes):
        if header.last_offset < job.first_dirty_offset:
            continue
        spend(header.size_bytes)
        try:
            if not _map_batch(data, position, header, latest, transactions):
                return False
        except MalformedMessage as problem:
            raise DamagedSegment(f"{path}: the batch of offset {header.base_offset}: {problem}") from problem
    return True


def _map_batch(
    data: bytes, position: int, header: BatchHeader, latest: LatestOffsets, transactions: TransactionTracker
) -> bool:
    """False when the memory does not suffice for the batch."""
    if header.is_control:
        transactions.is_marker_discardable(header, marker_key(data, position, header))
    elif not transactions.is_aborted(header) and header.record_count:
        if not latest.has_room(header):
            return False
        records, start, end = read_section(data, position, header)
        keys = read_keys(records, start, end, header.record_count)
        is_dense = header.record_count > header.last_offset_delta
        latest.add(header, keys, None if is_dense else read_offset_deltas(records, start, header.record_count))
        return True
    latest.skip_to(header.last_offset + 1)
    return True


def _write_group(
    disk: Disk,
    job: CompactionJob,
    group: Sequence[SegmentFiles],
    batch_filter: BatchFilter,
    transactions: TransactionTracker,
    outcome: CompactionOutcome,
    spend: Callable[[int], None],
) -> CleanedSegment:
    writer = CleanedSegmentWriter(disk, job.directory, group[0].base_offset, job.index_interval_bytes)
    transactions.retained = []
    last_segment = max((segment for segment in group if segment.size_bytes), default=group[0])
    for segment in group:
        path = file_path(job.directory, segment.base_offset, LOG_SUFFIX)
        position = 0
        for data, inside, header in read_batches(disk.open(path), path, 0, segment.size_bytes):
            position += header.size_bytes
            is_last = segment is last_segment and position == segment.size_bytes
            try:
                batch = batch_filter.filter(data, inside, header, is_last=is_last)
            except MalformedMessage as problem:
                raise DamagedSegment(f"{path}: the batch of offset {header.base_offset}: {problem}") from problem
            outcome.bytes_read += header.size_bytes
            outcome.records_read += header.record_count
            spent = header.size_bytes
            if batch is not None:
                writer.append(batch, header.last_offset)
                outcome.bytes_written += len(batch)
                outcome.records_kept += int.from_bytes(batch[57:61], "big")
                spent += len(batch)
            spend(spent)
    return writer.stage(transactions.retained)


def _segment_files(disk: Disk, directory: str, base_offset: int) -> SegmentFiles:
    sizes = []
    for suffix in (LOG_SUFFIX, OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX):
        try:
            sizes.append(disk.file_size(file_path(directory, base_offset, suffix)))
        except FileNotFoundError:
            if suffix == LOG_SUFFIX:
                raise
            sizes.append(0)
    return SegmentFiles(base_offset, *sizes)


def _read_aborted(context: BackgroundContext, directory: str) -> list[AbortedTransaction]:
    """The aborted transactions of all segments: a marker may lie in a later segment than the data."""
    aborted: list[AbortedTransaction] = []
    names = context.disk.list_directory(directory)
    suffixes = (TRANSACTION_INDEX_SUFFIX, TRANSACTION_CHECKSUM_SUFFIX)
    for stem in sorted({name.rpartition(".")[0] for name in names if name.endswith(suffixes)}):
        aborted += _read_transaction_index(context, f"{directory}/{stem}{TRANSACTION_INDEX_SUFFIX}")
    return aborted


def _read_transaction_index(context: BackgroundContext, path: str) -> list[AbortedTransaction]:
    """An index that is not whole may be one that the broker writes at this moment, when it rolls a segment. The job has
    the entries of that index."""
    try:
        return list(decode_transaction_index(read_transaction_index(context.disk, path)))
    except MalformedMessage:
        context.pause_ms(INDEX_WRITE_MS)
    try:
        return list(decode_transaction_index(read_transaction_index(context.disk, path)))
    except MalformedMessage as problem:
        raise DamagedSegment(f"{path}: {problem}") from problem


class _Throttle:
    """Pauses the compaction so that it reads and writes at most so many bytes per second on average. Reports its
    progress."""

    __slots__ = ("_bytes_per_ms", "_context", "_spent_bytes", "_started_ms", "_uncounted_bytes", "_unreported_bytes")

    def __init__(self, context: BackgroundContext, bytes_per_second: float) -> None:
        self._context = context
        self._bytes_per_ms = bytes_per_second / 1000
        self._started_ms = context.monotonic_ms()
        self._spent_bytes = self._uncounted_bytes = self._unreported_bytes = 0

    def spend(self, size_bytes: int) -> None:
        self._unreported_bytes += size_bytes
        if self._unreported_bytes >= BYTES_BETWEEN_REPORTS:
            self._unreported_bytes = 0
            self._context.report_progress()
        self._uncounted_bytes += size_bytes
        if self._uncounted_bytes < self._bytes_per_ms * 100:  # read the clock about ten times a second
            return
        self._spent_bytes += self._uncounted_bytes
        self._uncounted_bytes = 0
        ahead_ms = self._spent_bytes / self._bytes_per_ms - (self._context.monotonic_ms() - self._started_ms)
        while ahead_ms > 0:
            self._context.pause_ms(min(ahead_ms, LONGEST_PAUSE_MS))
            self._context.report_progress()
            ahead_ms -= LONGEST_PAUSE_MS
