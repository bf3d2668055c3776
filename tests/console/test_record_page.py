"""A page of records has as many records as there are, however they lie among partitions and offsets."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from confluent_kafka import Producer

from odradek.admin.cluster import Cluster
from odradek.admin.offsets import LATEST
from odradek.admin.records.record_reader import PartitionRange
from odradek.console.cluster import records
from odradek.console.cluster.records import NotAnswering, Reading, Unreadable, follow, read_page, split_range
from odradek.console.records.record import Record, RecordPage
from odradek.conventions.failures import Failure

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tests.console.conftest import Visitor

PATIENCE_S = 60.0
MIB = 1024 * 1024


class Stored(NamedTuple):
    """Stands for a topic: the offsets that have a record, by partition. Partitions begin at offset 0."""

    offsets: dict[int, Sequence[int]]
    ends: dict[int, int]
    silent_from: int = 2**63
    leaderless: tuple[int, ...] = ()
    stable: int = 2**63  # the first offset of an open transaction

    def last_stable_offsets(self, _topic: str, partitions: Sequence[int]) -> dict[int, int]:
        return {each: min(self.ends[each], self.stable) for each in partitions}

    def find(self, _cluster: Any, _topic: str, partitions: Sequence[int], _start: Any) -> list[PartitionRange]:
        return [PartitionRange(each, 0, self.ends[each]) for each in partitions]

    def batches(
        self, _cluster: Any, topic: str, ranges: Sequence[PartitionRange], *_rest: Any, **_options: Any
    ) -> Iterator[list[Record]]:
        for each in ranges:
            if each.start_offset < each.end_offset and each.start_offset > self.stable:
                raise NotAnswering(f"{topic}-{each.partition} sent neither records nor its end")
            found = [offset for offset in self.offsets[each.partition] if each.start_offset <= offset < each.end_offset]
            read = [offset for offset in found if offset < self.silent_from]
            yield [
                Record(topic, each.partition, offset, 1_000 * each.partition + offset, None, b"v") for offset in read
            ]
            if len(read) < len(found):
                raise NotAnswering(f"{topic}-{each.partition} sent no records")


def cluster_of(stored: Stored) -> Any:
    leaders = {each: None if each in stored.leaderless else 1 for each in sorted(stored.offsets)}
    partitions = [SimpleNamespace(id=each, leader=leader) for each, leader in leaders.items()]
    topic = SimpleNamespace(name="t", partitions=partitions)
    return SimpleNamespace(
        describe_topic=lambda _name: topic, last_stable_offsets=stored.last_stable_offsets, properties={}
    )


@pytest.fixture
def show(monkeypatch: pytest.MonkeyPatch) -> Callable[..., records.PageRead]:
    def read(stored: Stored, reading: Reading) -> records.PageRead:
        monkeypatch.setattr(records, "find_ranges", stored.find)
        monkeypatch.setattr(records, "_batches", stored.batches)
        return read_page(cluster_of(stored), reading, lambda record: record)  # type: ignore[arg-type, return-value]  # records stand for messages

    return read


def positions(page: records.PageRead) -> list[int]:
    return [each.offset for each in page.records]


@pytest.mark.parametrize("partition", [None, 0])
def test_records_after_a_hole_at_the_start_are_shown(show: Callable[..., Any], partition: int | None) -> None:
    """As of a topic whose first offsets were compacted away."""
    stored = Stored({0: range(1_000, 2_000)}, {0: 2_000})
    assert positions(show(stored, Reading("t", partition, "oldest", limit=50))) == list(range(1_000, 1_050))


def test_records_before_a_hole_at_the_end_are_shown(show: Callable[..., Any]) -> None:
    stored = Stored({0: range(100)}, {0: 9_000})
    assert positions(show(stored, Reading("t", limit=3))) == [99, 98, 97]


def test_a_page_is_full_although_every_second_offset_has_no_record(show: Callable[..., Any]) -> None:
    stored = Stored({0: range(0, 1_000, 2)}, {0: 1_000})
    assert positions(show(stored, Reading("t", limit=50))) == list(range(998, 898, -2))
    assert positions(show(stored, Reading("t", start="oldest", limit=50))) == list(range(0, 100, 2))


def test_the_newest_records_are_those_of_the_busy_partition(
    show: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of many partitions a few records each are read at first."""
    monkeypatch.setattr(records, "MOST_READ_FOR_PAGE", 40)
    stored = Stored({each: range(100) for each in range(10)}, dict.fromkeys(range(10), 100))
    page = show(stored, Reading("t", limit=50))
    assert [(each.partition, each.offset) for each in page.records] == [(9, offset) for offset in range(99, 49, -1)]
    page = show(stored, Reading("t", start="oldest", limit=50))
    assert [(each.partition, each.offset) for each in page.records] == [(0, offset) for offset in range(50)]


def test_a_page_before_an_offset_has_the_newest_ones_below_it(show: Callable[..., Any]) -> None:
    stored = Stored({0: [5, 6, 900]}, {0: 1_000})
    assert positions(show(stored, Reading("t", 0, "before", offset=900, limit=2))) == [6, 5]
    assert positions(show(stored, Reading("t", 0, "before", offset=5, limit=2))) == []
    assert positions(show(stored, Reading("t", 0, "before", offset=5_000, limit=2))) == [900, 6]


def test_a_page_that_lacks_records_says_so(show: Callable[..., Any]) -> None:
    stored = Stored({0: range(100)}, {0: 100}, silent_from=97)
    page = show(stored, Reading("t", limit=5))
    assert positions(page) == [96, 95]
    assert page.notice == "records may be missing: t-0 sent no records"


@pytest.mark.parametrize(
    ("reading", "offsets", "uncommitted"),
    [
        (Reading("t", limit=3), [99, 98, 97], 60),
        (Reading("t", 0, "before", offset=150, limit=3), [99, 98, 97], 50),
        (Reading("t", 0, "before", offset=99, limit=3), [98, 97, 96], 0),
        (Reading("t", start="oldest", limit=3), [0, 1, 2], 60),
    ],
)
def test_records_before_an_open_transaction_are_shown(
    show: Callable[..., Any], reading: Reading, offsets: list[int], uncommitted: int
) -> None:
    """Behind the last stable offset a consumer receives neither records nor the end of the partition."""
    page = show(Stored({0: range(100)}, {0: 160}, stable=100), reading)
    assert positions(page) == offsets
    text = f"not shown: {uncommitted} offsets from the first record of an open transaction on" if uncommitted else ""
    assert (page.notice, page.uncommitted) == ("", text)


def test_partitions_without_a_leader_are_left_out_and_named(show: Callable[..., Any]) -> None:
    stored = Stored({each: range(2) for each in range(5)}, dict.fromkeys(range(5), 2), leaderless=(1, 2, 3))
    page = show(stored, Reading("t", start="oldest"))
    assert [each.partition for each in page.records] == [0, 0, 4, 4]
    assert page.notice == "without a leader, and not read: partition 1, 2, 3"
    with pytest.raises(Failure, match="topic t: without a leader, and not read: partition 1"):
        show(stored, Reading("t", 1))


def test_a_tail_waits_for_partitions_without_a_leader(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are assigned, so that the tail shows their records when they have one."""
    stored = Stored({0: range(2), 1: range(2)}, {0: 2, 1: 2}, leaderless=(1,))
    followed: list[PartitionRange] = []

    def read(_cluster: Any, ranges: dict[str, list[PartitionRange]], **_options: Any) -> Any:
        followed.extend(ranges["t"])
        return nullcontext()

    monkeypatch.setattr(records, "find_ranges", stored.find)
    monkeypatch.setattr(records, "RecordReader", read)
    assert not [*follow(cluster_of(stored), "t", None, lambda: True, Unreadable())]
    assert [(each.partition, each.start_offset) for each in followed] == [(0, 0), (1, LATEST)]
    with pytest.raises(Failure, match="topic t: without a leader, and not read: partition 1"):
        next(follow(cluster_of(stored), "t", 1, lambda: True, Unreadable()))


def test_a_page_is_bounded_in_bytes_and_keeps_its_first_records() -> None:
    page = RecordPage(50, 4 * MIB, is_newest_first=True, is_by_offset=False)
    for offset in range(20):
        page.add([Record("t", 0, offset, offset, None, bytes(MIB))])
    assert [each.offset for each in page.records] == [19, 18, 17, 16]
    assert page.is_cut
    page = RecordPage(50, MIB, is_newest_first=False, is_by_offset=False)
    page.add([Record("t", 0, 0, 0, None, bytes(2 * MIB))])
    assert [each.offset for each in page.records] == [0]


def test_a_range_is_split_from_either_end() -> None:
    whole = PartitionRange(3, 10, 100)
    assert split_range(whole, 20, is_backward=True) == (PartitionRange(3, 80, 100), PartitionRange(3, 10, 80))
    assert split_range(whole, 20, is_backward=False) == (PartitionRange(3, 10, 30), PartitionRange(3, 30, 100))
    assert split_range(whole, 500, is_backward=True) == (whole, PartitionRange(3, 10, 10))


def test_aborted_records_do_not_hide_those_around_them(
    visitor: Visitor, bootstrap_server: str, topic: str, new_name: Callable[[], str]
) -> None:
    """More offsets without a record than a page has rows, before and after the only record."""
    producer = Producer({"bootstrap.servers": bootstrap_server, "transactional.id": new_name()})
    producer.init_transactions(PATIENCE_S)
    for values in (["aborted"] * 60, ["the only one"], ["aborted"] * 60):
        producer.begin_transaction()
        for value in values:
            producer.produce(topic, value, partition=0)
        assert producer.flush(PATIENCE_S) == 0
        if len(values) == 1:
            producer.commit_transaction(PATIENCE_S)
        else:
            producer.abort_transaction(PATIENCE_S)
    assert Cluster(bootstrap_server, {}).latest_offsets(topic, [0]) == {0: 124}
    for query in ("", "start=oldest", "start=offset&at=10&partition=0", "start=before&at=110&partition=0"):
        page = visitor.get(f"/topics/{topic}?limit=25&{query}")
        assert (page.status, "the only one" in page.text) == (200, True), query
        assert "aborted" not in page.text
    assert "nothing before this offset" in visitor.get(f"/topics/{topic}?start=before&at=61&partition=0").text


def test_an_open_transaction_does_not_hide_the_records_before_it(
    visitor: Visitor, bootstrap_server: str, topic: str, produce: Callable[..., None], new_name: Callable[[], str]
) -> None:
    produce(topic, *(f"committed-{number}" for number in range(5)), partition=0)
    producer = Producer({"bootstrap.servers": bootstrap_server, "transactional.id": new_name()})
    producer.init_transactions(PATIENCE_S)
    producer.begin_transaction()
    for _ in range(60):
        producer.produce(topic, "open", partition=0)
    assert producer.flush(PATIENCE_S) == 0
    page = visitor.get(f"/topics/{topic}?limit=25")
    assert page.text.count("committed-") >= 5
    assert "Not shown: 60 offsets from the first record of an open transaction on." in page.text
    assert len(visitor.get(f"/topics/{topic}/export?limit=25").body.splitlines()) == 5
    producer.abort_transaction(PATIENCE_S)


def test_an_export_of_the_newest_records_has_those_of_the_page(
    visitor: Visitor, topic: str, produce: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    produce(topic, *(f"old-{number}" for number in range(5)), partition=0)
    produce(topic, *(f"new-{number}-{'x' * 1_000}" for number in range(5)), partition=1)
    monkeypatch.setattr(records, "PAGE_BYTES", 2_000)
    page = visitor.get(f"/topics/{topic}?limit=4")
    assert "The page is cut after 0 MB of records." in page.text
    exported = visitor.get(f"/topics/{topic}/export?limit=4").body.splitlines()
    assert [line[:300].count(b"new-") for line in exported] == [1, 1, 1, 1]
