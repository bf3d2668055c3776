"""A feed does not grow, however fast records arrive and however slow its reader is."""

from __future__ import annotations

from odradek.console.cluster.feeds import BATCH_RECORDS, KEPT_BYTES, Feed
from odradek.console.records.record import Record


def record(offset: int, size_bytes: int = 10) -> Record:
    return Record("t", 0, offset, 0, None, b"x" * size_bytes)


def test_the_newest_records_are_kept_and_the_others_counted() -> None:
    feed = Feed()
    for first in range(0, 10_000, 500):
        feed.add(500, [record(offset) for offset in range(first, first + 500)])
    taken = feed.take()
    assert [each.offset for each in taken.records] == list(range(10_000 - BATCH_RECORDS, 10_000))
    assert (taken.seen, taken.matched, taken.skipped) == (10_000, 10_000, 10_000 - BATCH_RECORDS)
    assert feed.take().records == []


def test_large_records_count_by_their_bytes() -> None:
    feed = Feed()
    feed.add(50, [record(offset, KEPT_BYTES // 4) for offset in range(50)])
    taken = feed.take()
    assert [each.offset for each in taken.records] == [46, 47, 48, 49]
    feed.add(1, [record(50, KEPT_BYTES * 2)])
    assert [each.offset for each in feed.take().records] == [50]


def test_the_end_is_reported_with_its_reason() -> None:
    feed = Feed()
    assert not feed.take().is_done
    feed.end("no leader")
    taken = feed.take()
    assert (taken.is_done, taken.failure) == (True, "no leader")
