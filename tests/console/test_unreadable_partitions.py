"""Readings of partitions that cannot be read: they end by their own limits, and have the records of the others."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from odradek.console.cluster import feeds, records
from odradek.console.cluster.feeds import Feed, search, tail
from odradek.console.cluster.records import Reading, Unreadable, read_page, read_selected
from odradek.console.records.masking import DecodeAndMask
from odradek.console.records.record import RecordFilter
from odradek.conventions.failures import Failure
from tests.admin.records.test_record_fetcher import Unreadable as UnreadableLog
from tests.admin.records.test_record_fetcher import corrupt, good
from tests.admin.serving import Log, serving

if TYPE_CHECKING:
    from collections.abc import Iterator

WAIT_S = 20.0
LIMIT_S = 0.5


class Endless(UnreadableLog):
    """Grows at least as fast as it is read."""

    def __init__(self) -> None:
        super().__init__([], 10**9)
        self.stable_offset += 1

    def read(self, offset: int) -> bytes:
        self.end_offset = self.stable_offset = offset + 2_000
        return super().read(offset)


@pytest.fixture
def cluster() -> Iterator[Any]:
    with serving(Endless()) as fake:
        yield fake


def test_a_tail_shows_its_notice_and_ends_with_its_reader(cluster: Any) -> None:
    feed = Feed()
    arguments = cluster, feed, Reading("t", start="end"), DecodeAndMask(), RecordFilter()
    thread = threading.Thread(target=tail, args=arguments, daemon=True)
    thread.start()
    deadline = time.monotonic() + WAIT_S
    while not feed.notice and time.monotonic() < deadline:
        assert thread.is_alive()
        thread.join(0.02)
    feed.stop()
    thread.join(WAIT_S)
    assert not thread.is_alive()
    assert "compressed records are corrupt" in feed.notice


def test_a_page_ends_at_its_deadline(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "READ_TIMEOUT_S", LIMIT_S)
    began_at = time.monotonic()
    page = read_page(cluster, Reading("t", start="oldest"))
    assert "the records were not read within" in page.notice
    with pytest.raises(Failure, match="no records that can be read"):
        list(read_selected(cluster, "t", [(0, 0), *((0, each) for each in range(900, 10**6, 900))], Unreadable()))
    assert time.monotonic() - began_at < WAIT_S


def test_a_search_ends_at_its_limit(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feeds, "SEARCH_S", LIMIT_S)
    feed = Feed()
    began_at = time.monotonic()
    search(cluster, feed, Reading("t", start="oldest"), DecodeAndMask(), RecordFilter())
    assert "stopped after 0 records" in feed.take().failure
    assert time.monotonic() - began_at < WAIT_S


def test_a_page_has_the_records_of_the_partitions_that_can_be_read() -> None:
    with serving(corrupt(), Log([good(0)], 1)) as cluster:
        page = read_page(cluster, Reading("t", start="newest"))
    assert [each.partition for each in page.records] == [1]
    assert page.notice.count("topic t, partition 0") == 1
