"""The threads behind live parts of the records page: the tail of a topic, a search, an export; and the feed of each."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, NamedTuple

from odradek.console.cluster import records as source
from odradek.console.cluster.connection import trouble_of
from odradek.console.cluster.records import Unreadable, joined
from odradek.console.records.record import NewestRecords, cut_to_row, in_page_order, incomplete_line, json_line
from odradek.conventions.dataclass import dataclass
from odradek.conventions.failures import Failure
from odradek.conventions.figures import count_text

if TYPE_CHECKING:
    from odradek.admin.cluster import Cluster
    from odradek.admin.records.record_reader import PartitionRange
    from odradek.console.cluster.records import Reading
    from odradek.console.records.masking import DecodeAndMask
    from odradek.console.records.record import Record, RecordFilter

BATCH_RECORDS = 100
KEPT_BYTES = 2 * 1024 * 1024
Matching = Callable[["list[Record]"], "list[Record]"]
MOST_MATCHES = 500
TOO_MANY_MATCHES = f"stopped after {MOST_MATCHES} matches"
TOO_LARGE_MATCHES = "stopped: the matches are too large for a page"
FIRST_WINDOW = 1_000  # offsets of each partition
MOST_SCANNED = 5_000_000
SEARCH_S = 120.0
EXPORT_RECORDS = 100_000
EXPORT_BYTES = 512 * 1024 * 1024
CHUNK_BYTES = 256 * 1024
EXPORT_S = 600.0


class Taken(NamedTuple):
    """`skipped` records were dropped, because more arrived than a page shows."""

    records: list[Record]
    seen: int
    matched: int
    skipped: int
    total: int
    is_done: bool
    failure: str
    notice: str  # what is not shown; the feed goes on
    rest: Mapping[int, int]  # the offset of each partition at which another search goes on; empty without a limit


class Feed:
    """One writer, one reader. Beyond its size the oldest records are dropped, or, in a search, the writer stops."""

    def __init__(self, limit: int = BATCH_RECORDS) -> None:
        self._lock = threading.Lock()
        self._waiting = NewestRecords(limit, KEPT_BYTES)
        self._seen = self._matched = self._skipped = 0
        self.total = 0
        self.notice = ""
        self.rest: Mapping[int, int] = {}
        self._failure = ""
        self._is_done = False
        self.is_stopped = False

    def stop(self) -> None:
        """Call it when the reader has gone away."""
        self.is_stopped = True

    def add(self, seen: int, matching: list[Record], dropped: int = 0) -> None:
        """`dropped` further records match, and are older than these."""
        with self._lock:
            self._seen += seen
            self._matched += len(matching) + dropped
            self._skipped += dropped
            self._waiting.add(matching)

    def end(self, failure: str = "") -> None:
        with self._lock:
            self._failure = failure
            self._is_done = True

    def take(self) -> Taken:
        """The records since the last call; counts are of the whole time."""
        with self._lock:
            records = self._waiting.take()
            counts = self._seen, self._matched, self._skipped + self._waiting.dropped, self.total
            return Taken(records, *counts, self._is_done, self._failure, self.notice, self.rest)


def tail(cluster: Cluster, feed: Feed, reading: Reading, decode_and_mask: DecodeAndMask, wanted: RecordFilter) -> None:
    """Until the reader of the feed goes away. Without a filter only the newest records are masked and kept."""
    unreadable = Unreadable()
    try:
        for batch in source.follow(cluster, reading.topic, reading.partition, lambda: feed.is_stopped, unreadable):
            newest = batch if wanted.is_active else batch[-BATCH_RECORDS:]
            feed.notice = unreadable.notice
            feed.add(len(batch), _matching(newest, decode_and_mask, wanted), len(batch) - len(newest))
        feed.end()
    except Exception as error:
        feed.end(trouble_of(error))


def search(
    cluster: Cluster, feed: Feed, reading: Reading, decode_and_mask: DecodeAndMask, wanted: RecordFilter
) -> None:
    """From the start of the reading to the end of the topic, or from the newest records back to the oldest; until a
    limit is reached. All matches among the records that were read are shown, whatever ends the search."""
    try:
        ranges, notice, uncommitted = source.find_reading_ranges(cluster, reading)
        feed.total = sum(max(each.end_offset - each.start_offset, 0) for each in ranges)
        scanned = _Scanned(cluster, feed, reading, time.monotonic() + SEARCH_S)
        search_ranges = _search_backward if reading.is_backward else _search_forward
        limit = search_ranges(feed, ranges, scanned, lambda batch: _matching_rows(batch, decode_and_mask, wanted))
        limit = limit or scanned.limit
        feed.rest = scanned.rest if limit else {}
        feed.end(joined(limit, notice, scanned.unreadable.notice, uncommitted))
    except Exception as error:
        feed.end(trouble_of(error))


@dataclass(slots=True)
class _Scanned:
    """The records that a search has read. `limit` is the one that ended it, `rest` where another one goes on."""

    cluster: Cluster
    feed: Feed
    reading: Reading
    deadline: float
    unreadable: Unreadable = field(default_factory=Unreadable)
    records: int = 0
    limit: str = ""
    rest: dict[int, int] = field(default_factory=dict)

    def batches(self, ranges: Sequence[PartitionRange]) -> Iterator[list[Record]]:
        """The caller handles the last batch before the limit is known."""
        feed, topic = self.feed, self.reading.topic
        for batch in source.scan(self.cluster, topic, ranges, lambda: feed.is_stopped, self.unreadable):
            self.records += len(batch)
            yield batch
            if self.is_over():
                return

    def is_over(self) -> bool:
        """Whether a limit is reached, or the reader has gone away."""
        if self.records >= MOST_SCANNED or time.monotonic() > self.deadline:
            self.limit = f"stopped after {count_text(self.records, 'record')}"
        return bool(self.limit) or self.feed.is_stopped


def _search_forward(feed: Feed, ranges: Sequence[PartitionRange], scanned: _Scanned, matching: Matching) -> str:
    matched = 0
    scanned.rest = {each.partition: each.start_offset for each in ranges}
    for batch in scanned.batches(ranges):
        found = matching(batch)
        left = MOST_MATCHES - matched
        feed.add(len(batch), found[:left])
        matched += len(found)
        scanned.rest.update((each.partition, each.offset + 1) for each in batch)
        scanned.rest.update((each.partition, each.offset) for each in reversed(found[left:]))
        if matched >= MOST_MATCHES:
            return TOO_MANY_MATCHES
    return ""


def _search_backward(feed: Feed, ranges: Sequence[PartitionRange], scanned: _Scanned, matching: Matching) -> str:
    """The matches of a window are shown when it is read, or when its reading ends early or fails."""
    matched = 0
    scanned.rest = {each.partition: each.end_offset for each in ranges}
    for window in backward_windows(ranges, lambda: MOST_SCANNED - scanned.records):
        found = NewestRecords(MOST_MATCHES, KEPT_BYTES)
        reached: dict[int, int] = {}
        try:
            for batch in scanned.batches(window):
                reached.update((each.partition, each.offset + 1) for each in batch)
                found.add(matching(batch))
                feed.add(len(batch), [])
        finally:
            is_by_offset = scanned.reading.partition is not None
            newest = in_page_order(found.take(), is_newest_first=True, is_by_offset=is_by_offset)
            left = MOST_MATCHES - matched
            feed.add(0, newest[:left])
        unshown = found.dropped_until | {each.partition: each.offset + 1 for each in reversed(newest[left:])}
        for each in window:
            if not scanned.limit or reached.get(each.partition) == each.end_offset:  # otherwise it is read again
                scanned.rest[each.partition] = unshown.get(each.partition, each.start_offset)
        matched += len(newest) + found.dropped
        if matched >= MOST_MATCHES:
            return TOO_MANY_MATCHES
        if found.dropped:
            return TOO_LARGE_MATCHES  # older windows would follow a gap
        if scanned.is_over():  # windows may have no records
            break
    return ""


def backward_windows(ranges: Sequence[PartitionRange], remaining: Callable[[], int]) -> Iterator[list[PartitionRange]]:
    """The ranges in parts, the last records of each partition first. Each part is four times as long as the one before:
    Kafka reads forward only, and the newest matches should come first. A part has no more offsets than `remaining`
    records may be read: if its reading ended at that limit, its newest records would be missing."""
    unread = list(ranges)
    length = FIRST_WINDOW
    while unread := [each for each in unread if each.start_offset < each.end_offset]:
        length = max(1, min(length, remaining() // len(unread)))
        parts = [source.split_range(each, length, is_backward=True) for each in unread]
        yield [part for part, _rest in parts]
        unread = [rest for _part, rest in parts]
        length *= source.WINDOW_GROWTH


def _matching(batch: Sequence[Record], decode_and_mask: DecodeAndMask, wanted: RecordFilter) -> list[Record]:
    if not wanted.is_active and not (batch and decode_and_mask.changes(batch[0].topic)):
        return list(batch)
    return [record for record in map(decode_and_mask, batch) if wanted.matches(record)]


def _matching_rows(batch: Sequence[Record], decode_and_mask: DecodeAndMask, wanted: RecordFilter) -> list[Record]:
    """Cut to what their rows show, so that all matches of a search fit into the memory of a page."""
    return [cut_to_row(record) for record in _matching(batch, decode_and_mask, wanted)]


def export(
    cluster: Cluster, reading: Reading, decode_and_mask: DecodeAndMask, wanted: RecordFilter,
    is_stopped: Callable[[], bool],
) -> Iterator[bytes]:  # fmt: skip
    """JSON lines, in chunks. If records are missing, the last line gives the reason; Failure if the reading failed."""
    deadline = time.monotonic() + EXPORT_S
    chunk = bytearray()
    written = size_bytes = 0
    limit = failure = ""
    unreadable = Unreadable()
    try:
        for batch in _batches(cluster, reading, wanted, is_stopped, unreadable):
            for record in _matching(batch, decode_and_mask, wanted):
                limit = _limit_of(written, size_bytes)
                if limit:
                    break
                line = json_line(record)
                chunk += line
                size_bytes += len(line)
                written += 1
                if len(chunk) >= CHUNK_BYTES:
                    yield bytes(chunk)
                    chunk.clear()
            if not limit and time.monotonic() > deadline:
                limit = f"{EXPORT_S:g} seconds"
            if limit:
                break
            if chunk:
                yield bytes(chunk)
                chunk.clear()
    except Exception as error:
        failure = trouble_of(error)
    reason = failure or (f"the limit of an export was reached: {limit}" if limit else unreadable.notice)
    if reason:
        yield bytes(chunk) + incomplete_line(reason, written)
    elif chunk:
        yield bytes(chunk)
    if failure:
        raise Failure(f"export: {failure}")


def _limit_of(records: int, size_bytes: int) -> str:
    """The limit of an export that is reached; empty if none is."""
    if records >= EXPORT_RECORDS:
        return f"{EXPORT_RECORDS:,} records"
    return f"{EXPORT_BYTES:,} bytes" if size_bytes >= EXPORT_BYTES else ""


def _batches(
    cluster: Cluster, reading: Reading, wanted: RecordFilter, is_stopped: Callable[[], bool], unreadable: Unreadable
) -> Iterator[Sequence[Record]]:
    """Without a filter, an export of the newest records has those of the page."""
    if reading.is_backward and not wanted.is_active:
        for record in source.read_whole_page(cluster, reading, unreadable):
            yield [record]
            if is_stopped():
                return
    else:
        ranges, notice, _uncommitted = source.find_reading_ranges(cluster, reading)
        yield from source.scan(cluster, reading.topic, ranges, is_stopped, unreadable)
        if notice:
            raise Failure(notice)
