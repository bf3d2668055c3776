"""A search shows every match among the records that it has read, whatever ends it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from odradek.admin.records.record_reader import PartitionRange
from odradek.console.cluster import feeds
from odradek.console.cluster.feeds import KEPT_BYTES, Feed, backward_windows
from odradek.console.cluster.records import Reading, ReadingRanges
from odradek.console.records.masking import DecodeAndMask
from odradek.console.records.record import Record, cut_to_row, parse_filter
from odradek.console.views.records import FORMATS, row
from odradek.conventions.failures import Failure

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from odradek.console.cluster.feeds import Taken

RECORDS = 20_000
EVERY = 1_000  # one record in as many matches


class Partitions:
    """Stands for `scan`: partitions of RECORDS records each; one may stop answering below an offset."""

    def __init__(self, silent_from: int = RECORDS, value: bytes = b"yes", headers: int = 0) -> None:
        self.read: set[int] = set()
        self._value = value
        self._headers = (("h", b""),) * headers
        self._silent_from = silent_from

    def scan(
        self, _cluster: Any, topic: str, ranges: Sequence[PartitionRange], _is_stopped: Any, _unreadable: Any
    ) -> Iterator[list[Record]]:
        for each in ranges:
            for first in range(each.start_offset, each.end_offset, 100):
                if first >= self._silent_from:
                    raise Failure(f"{topic}-{each.partition} sent no records")
                offsets = range(first, min(first + 100, each.end_offset))
                self.read.update(offsets)
                yield [self._record(topic, each.partition, offset) for offset in offsets]

    def _record(self, topic: str, partition: int, offset: int) -> Record:
        value = self._value if offset % EVERY == 0 else b"no"
        return Record(topic, partition, offset, offset, None, value, self._headers)

    @property
    def matches(self) -> list[int]:
        return sorted((offset for offset in self.read if offset % EVERY == 0), reverse=True)


def search(monkeypatch: pytest.MonkeyPatch, partitions: Partitions, start: str = "newest") -> Taken:
    monkeypatch.setattr(
        "odradek.console.cluster.records.find_reading_ranges",
        lambda *_arguments: ReadingRanges([PartitionRange(0, 0, RECORDS)]),
    )
    monkeypatch.setattr("odradek.console.cluster.records.scan", partitions.scan)
    feed = Feed(feeds.MOST_MATCHES)
    cluster: Any = None
    wanted = parse_filter("value", "contains", "yes", "")
    feeds.search(cluster, feed, Reading("t", start=start), DecodeAndMask(), wanted)
    return feed.take()


@pytest.mark.parametrize("start", ["newest", "oldest"])
def test_matches_are_shown_when_the_limit_of_records_is_reached(monkeypatch: pytest.MonkeyPatch, start: str) -> None:
    monkeypatch.setattr(feeds, "MOST_SCANNED", RECORDS // 2)
    partitions = Partitions()
    taken = search(monkeypatch, partitions, start)
    assert len(partitions.matches) == taken.matched == 10
    assert sorted((each.offset for each in taken.records), reverse=True) == partitions.matches
    assert taken.seen == RECORDS // 2
    assert taken.failure == "stopped after 10,000 records"


def test_the_newest_records_are_read_up_to_the_limit_without_a_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feeds, "MOST_SCANNED", RECORDS // 2)
    partitions = Partitions()
    taken = search(monkeypatch, partitions)
    assert partitions.read == set(range(RECORDS // 2, RECORDS))
    assert [each.offset for each in taken.records] == partitions.matches


def test_matches_are_shown_when_the_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feeds, "SEARCH_S", -1.0)
    partitions = Partitions()
    monkeypatch.setattr(feeds, "FIRST_WINDOW", RECORDS)
    taken = search(monkeypatch, partitions)
    assert [each.offset for each in taken.records] == partitions.matches == [0]
    assert taken.failure.startswith("stopped after 100 records")


def test_matches_are_shown_when_a_partition_stops_answering(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feeds, "FIRST_WINDOW", RECORDS)
    partitions = Partitions(silent_from=3_500)
    taken = search(monkeypatch, partitions)
    assert [each.offset for each in taken.records] == partitions.matches == [3_000, 2_000, 1_000, 0]
    assert taken.failure == "t-0 sent no records"


def test_a_search_ends_with_the_number_of_matches_that_a_page_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feeds, "MOST_MATCHES", 5)
    taken = search(monkeypatch, Partitions())
    assert [each.offset for each in taken.records] == [19_000, 18_000, 17_000, 16_000, 15_000]
    assert taken.failure == feeds.TOO_MANY_MATCHES


@pytest.mark.parametrize("start", ["newest", "oldest"])
def test_large_matches_are_all_shown(monkeypatch: pytest.MonkeyPatch, start: str) -> None:
    """Together they have more bytes than a page keeps: it keeps those of their rows."""
    partitions = Partitions(value=b"yes" + bytes(KEPT_BYTES // 4))
    taken = search(monkeypatch, partitions, start)
    assert sorted((each.offset for each in taken.records), reverse=True) == partitions.matches
    assert (len(partitions.matches), taken.matched, taken.skipped, taken.failure) == (20, 20, 0, "")


def test_a_search_does_not_go_on_behind_matches_that_it_cannot_show(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feeds, "FIRST_WINDOW", RECORDS // 2)
    taken = search(monkeypatch, Partitions(headers=KEPT_BYTES // 2 - 3))
    assert [each.offset for each in taken.records] == [19_000, 18_000]
    assert taken.failure == feeds.TOO_LARGE_MATCHES


def test_a_record_that_is_cut_has_the_same_row() -> None:
    for value in (None, b"", "ä".encode() * 480, b"x" * 241, b"\xff" * 961, b"x" * 959 + "ä".encode()):
        record = Record("t", 0, 0, 0, value, value, (("name", b"value"),) * 3)
        for form in FORMATS:
            assert row(cut_to_row(record), form) == row(record, form)


class EmptyWindows:
    """Stands for `scan` of offsets without records. The reader goes away after some windows."""

    def __init__(self, feed: Feed, stopped_after: int = 2**63) -> None:
        self.windows = 0
        self._feed = feed
        self._stopped_after = stopped_after

    def scan(self, *_arguments: Any) -> Iterator[list[Record]]:
        self.windows += 1
        self._feed.is_stopped = self.windows >= self._stopped_after
        return iter(())


def search_empty_windows(monkeypatch: pytest.MonkeyPatch, feed: Feed, windows: EmptyWindows) -> Taken:
    monkeypatch.setattr(feeds, "MOST_SCANNED", 10)
    ranges = ReadingRanges([PartitionRange(0, 0, RECORDS)])
    monkeypatch.setattr("odradek.console.cluster.records.find_reading_ranges", lambda *_arguments: ranges)
    monkeypatch.setattr("odradek.console.cluster.records.scan", windows.scan)
    cluster: Any = None
    feeds.search(cluster, feed, Reading("t"), DecodeAndMask(), parse_filter("value", "equals", "yes", ""))
    return feed.take()


def test_windows_without_records_are_read_until_the_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feeds, "SEARCH_S", -1.0)
    feed = Feed()
    windows = EmptyWindows(feed)
    assert search_empty_windows(monkeypatch, feed, windows).failure.startswith("stopped after 0 records")
    assert windows.windows == 1


def test_windows_without_records_are_read_until_nobody_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    feed = Feed()
    windows = EmptyWindows(feed, stopped_after=3)
    search_empty_windows(monkeypatch, feed, windows)
    assert windows.windows == 3


def test_windows_go_back_to_the_start_without_a_gap() -> None:
    ranges = [PartitionRange(0, 10, 9_000), PartitionRange(1, 0, 500), PartitionRange(2, 7, 7)]
    windows = list(backward_windows(ranges, lambda: 1_000_000))
    spans = [(each.start_offset, each.end_offset) for window in windows for each in window if each.partition == 0]
    assert spans == [(8_000, 9_000), (4_000, 8_000), (10, 4_000)]
    assert [each for window in windows for each in window if each.partition == 1] == [PartitionRange(1, 0, 500)]


def test_a_window_has_no_more_offsets_than_may_be_read() -> None:
    windows = backward_windows([PartitionRange(0, 0, 9_000), PartitionRange(1, 0, 9_000)], lambda: 600)
    assert next(windows) == [PartitionRange(0, 8_700, 9_000), PartitionRange(1, 8_700, 9_000)]


class ManyPartitions:
    """Stands for `scan`: each second record of three partitions matches. Those of partition 2 are the newest."""

    def scan(
        self, _cluster: Any, topic: str, ranges: Sequence[PartitionRange], _is_stopped: Any, _unreadable: Any
    ) -> Iterator[list[Record]]:
        for each in ranges:
            for first in range(each.start_offset, each.end_offset, 10):
                yield [
                    Record(
                        topic, each.partition, offset, offset + 40 * (each.partition == 2), None, b"yny"[offset % 2 :]
                    )
                    for offset in range(first, min(first + 10, each.end_offset))
                ]


def matches_of_searches(monkeypatch: pytest.MonkeyPatch, start: str) -> list[tuple[int, int]]:
    """Each search goes on where the last one has stopped."""
    monkeypatch.setattr("odradek.console.cluster.records.scan", ManyPartitions().scan)
    cluster: Any = None
    wanted = parse_filter("value", "equals", "yny", "")
    found: list[tuple[int, int]] = []
    ranges = {partition: PartitionRange(partition, 0, 120) for partition in range(3)}
    for _ in range(200):
        given = ReadingRanges(list(ranges.values()))
        monkeypatch.setattr(
            "odradek.console.cluster.records.find_reading_ranges", lambda *_arguments, given=given: given
        )
        feed = Feed(feeds.MOST_MATCHES)
        feeds.search(cluster, feed, Reading("t", start=start), DecodeAndMask(), wanted)
        taken = feed.take()
        found += [(each.partition, each.offset) for each in taken.records]
        if not taken.rest:
            assert taken.failure == ""
            return found
        for partition, offset in taken.rest.items():
            whole = ranges[partition]
            ranges[partition] = (
                PartitionRange(partition, whole.start_offset, offset)
                if start == "newest"
                else PartitionRange(partition, offset, whole.end_offset)
            )
    raise AssertionError("the searches do not end")


@pytest.mark.parametrize("start", ["newest", "oldest"])
@pytest.mark.parametrize(("most_matches", "most_scanned"), [(7, 1_000), (500, 25), (7, 25)])
def test_a_search_goes_on_where_the_last_one_has_stopped(
    monkeypatch: pytest.MonkeyPatch, start: str, most_matches: int, most_scanned: int
) -> None:
    monkeypatch.setattr(feeds, "FIRST_WINDOW", 16)
    monkeypatch.setattr(feeds, "MOST_MATCHES", most_matches)
    monkeypatch.setattr(feeds, "MOST_SCANNED", most_scanned)
    found = matches_of_searches(monkeypatch, start)
    assert sorted(found) == [(partition, offset) for partition in range(3) for offset in range(0, 120, 2)]
