"""A search shows every match among the records that it has read, whatever ends it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from odradek.cli.framework.failure import Failure
from odradek.cli.records.consume_range import PartitionRange
from odradek.console.cluster import feeds
from odradek.console.cluster.feeds import backward_windows
from odradek.console.cluster.records import Reading, ReadingRanges
from odradek.console.feed import Feed
from odradek.console.preparation import Preparation
from odradek.console.record import Record
from odradek.console.record_filter import parse_filter

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from odradek.console.feed import Taken

RECORDS = 20_000
EVERY = 1_000  # one record in as many matches


class Partitions:
    """Stands for `scan`: partitions of RECORDS records each; one may stop answering below an offset."""

    def __init__(self, silent_from: int = RECORDS) -> None:
        self.read: set[int] = set()
        self._silent_from = silent_from

    def scan(
        self, _cluster: Any, topic: str, ranges: Sequence[PartitionRange], _is_stopped: Any
    ) -> Iterator[list[Record]]:
        for each in ranges:
            for first in range(each.start_offset, each.end_offset, 100):
                if first >= self._silent_from:
                    raise Failure(f"{topic}-{each.partition} sent no records")
                offsets = range(first, min(first + 100, each.end_offset))
                self.read.update(offsets)
                yield [
                    Record(topic, each.partition, offset, offset, None, b"yes" if offset % EVERY == 0 else b"no")
                    for offset in offsets
                ]

    @property
    def matches(self) -> list[int]:
        return sorted((offset for offset in self.read if offset % EVERY == 0), reverse=True)


def search(monkeypatch: pytest.MonkeyPatch, partitions: Partitions, start: str = "newest") -> Taken:
    monkeypatch.setattr(
        feeds, "find_reading_ranges", lambda *_arguments: ReadingRanges([PartitionRange(0, 0, RECORDS)])
    )
    monkeypatch.setattr(feeds, "scan", partitions.scan)
    feed = Feed(feeds.MOST_MATCHES)
    cluster: Any = None
    wanted = parse_filter("value", "equals", "yes", "")
    feeds.search(cluster, feed, Reading("t", start=start), Preparation(), wanted)
    return feed.take()


@pytest.mark.parametrize("start", ["newest", "oldest"])
def test_matches_are_shown_when_the_limit_of_records_is_reached(monkeypatch: pytest.MonkeyPatch, start: str) -> None:
    monkeypatch.setattr(feeds, "MOST_SCANNED", RECORDS // 2)
    partitions = Partitions()
    taken = search(monkeypatch, partitions, start)
    assert len(partitions.matches) == taken.matched == 10
    assert sorted((each.offset for each in taken.records), reverse=True) == partitions.matches
    assert taken.seen == RECORDS // 2
    assert taken.failure == "stopped after 10,000 records; narrow the search for more"


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


def test_windows_go_back_to_the_start_without_a_gap() -> None:
    ranges = [PartitionRange(0, 10, 9_000), PartitionRange(1, 0, 500), PartitionRange(2, 7, 7)]
    windows = list(backward_windows(ranges, lambda: 1_000_000))
    spans = [(each.start_offset, each.end_offset) for window in windows for each in window if each.partition == 0]
    assert spans == [(8_000, 9_000), (4_000, 8_000), (10, 4_000)]
    assert [each for window in windows for each in window if each.partition == 1] == [PartitionRange(1, 0, 500)]


def test_a_window_has_no_more_offsets_than_may_be_read() -> None:
    windows = backward_windows([PartitionRange(0, 0, 9_000), PartitionRange(1, 0, 9_000)], lambda: 600)
    assert next(windows) == [PartitionRange(0, 8_700, 9_000), PartitionRange(1, 8_700, 9_000)]
