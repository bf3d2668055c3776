"""Older and newer pages of records: each record is on one page, and every page leads to its neighbours."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.console.cluster.records import PageRead, Reading
from odradek.console.pages.records import parse_offsets
from odradek.console.records.record import Record, RecordPage
from odradek.console.views.figures import FormError
from odradek.console.views.records import MOST_OFFSETS, TOO_MANY, page_links

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tests.console.conftest import Visitor

# The times of the records of each partition: clocks of producers differ.
TOPICS = st.lists(st.lists(st.integers(0, 9), max_size=12), min_size=1, max_size=4)
BATCH = 3


def stored(times: list[list[int]], sizes: int = 0) -> dict[int, list[Record]]:
    return {
        partition: [Record("t", partition, offset, time, None, bytes(sizes)) for offset, time in enumerate(found)]
        for partition, found in enumerate(times)
    }


def pages(
    topic: Mapping[int, list[Record]], limit: int, most_bytes: int, *, is_newest_first: bool
) -> Iterator[list[Record]]:
    """Each page goes on where the last one ends. Batches arrive in the order of offsets, of any partition."""
    ends = {partition: len(found) if is_newest_first else 0 for partition, found in topic.items()}
    while True:
        page = RecordPage(limit, most_bytes, is_newest_first=is_newest_first, is_by_offset=False)
        read_until = dict(ends)
        while unread := [
            partition
            for partition, found in topic.items()
            if page.wants_more_of(partition) and read_until[partition] != (0 if is_newest_first else len(found))
        ]:
            for partition in unread:
                at = read_until[partition]
                first, last = (max(at - limit, 0), at) if is_newest_first else (at, at + limit)
                window = topic[partition][first:last]
                for number in range(0, len(window), BATCH):
                    page.add(window[number : number + BATCH])
                read_until[partition] = first if is_newest_first else min(last, len(topic[partition]))
        if not page.records:
            return
        yield page.records
        ends = {partition: page.end_in(partition, read_until[partition]) for partition in topic}


@pytest.mark.parametrize("is_newest_first", [True, False])
@given(times=TOPICS, limit=st.integers(1, 7), most_bytes=st.integers(1, 60))
def test_each_record_is_on_one_page(times: list[list[int]], limit: int, most_bytes: int, is_newest_first: bool) -> None:
    topic = stored(times, 10)
    shown = [each for page in pages(topic, limit, most_bytes, is_newest_first=is_newest_first) for each in page]
    assert len(shown) == sum(map(len, times))
    for partition, found in topic.items():
        of_partition = [each.offset for each in shown if each.partition == partition]
        assert of_partition == sorted(range(len(found)), reverse=is_newest_first)


def test_records_are_ordered_by_time_where_the_clocks_of_a_partition_agree() -> None:
    topic = stored([[1, 4, 5], [2, 3, 6]])
    (page,) = pages(topic, 10, 1_000, is_newest_first=True)
    assert [each.timestamp_ms for each in page] == [6, 5, 4, 3, 2, 1]


def links_of(reading: Reading, page: PageRead, ends: Mapping[int, int]) -> tuple[str, str]:
    links = page_links(reading, page, dict.fromkeys(ends, 0), ends, is_newest_first=True)
    return links.older.get("at", ""), links.newer.get("at", "")


def test_a_page_names_the_offsets_between_which_it_lies() -> None:
    page = PageRead([], began={0: 9, 1: 4}, ended={0: 5, 1: 0}, is_over=False)
    ends = {0: 9, 1: 4}
    assert links_of(Reading("t"), page, ends) == ("0:5", "")
    assert links_of(Reading("t", start="before", offsets={0: 9, 1: 4}), page, ends) == ("0:5", "")
    assert links_of(Reading("t", start="before", offsets={0: 9, 1: 4}), page, {0: 12, 1: 4}) == ("0:5", "0:9,1:4")
    forward = PageRead([], began={0: 3, 1: 0}, ended={0: 9, 1: 2}, is_over=False)
    assert links_of(Reading("t", start="time"), forward, ends) == ("0:3", "0:9,1:2")
    assert links_of(Reading("t", 0, "offset", offset=3), PageRead([], began={0: 3}, ended={0: 9}), {0: 9}) == ("3", "")
    assert links_of(Reading("t"), PageRead([], began={0: 0}, ended={0: 0}), {0: 0}) == ("", "")


def test_an_address_names_a_bounded_number_of_partitions() -> None:
    wide = dict.fromkeys(range(MOST_OFFSETS + 1), 5)
    links = page_links(
        Reading("t"), PageRead([], began=wide, ended=wide, is_over=False), {}, wide, is_newest_first=True
    )
    assert (links.older, links.newer, links.note) == ({}, {}, TOO_MANY)
    with pytest.raises(FormError, match="at most 200 partitions"):
        parse_offsets(",".join(f"{each}:1" for each in wide))


@pytest.mark.parametrize("text", ["", "x", "0:", ":1", "0:1,", "0:-1", "-1:0", "0:1:2"])
def test_offsets_that_cannot_be_read_are_refused(text: str) -> None:
    with pytest.raises(FormError):
        parse_offsets(text)


def test_offsets_are_of_all_partitions_or_of_each() -> None:
    assert parse_offsets("1,234") == (1234, {})
    assert parse_offsets("0:5, 7:0") == (0, {0: 5, 7: 0})


def link(page: str, name: str) -> str:
    found = re.search(rf'href="\?([^"]*)" rel="\w+">{name}</a>', page)
    return found[1] if found else ""


def values(page: str) -> list[str]:
    return re.findall(r"v\d+(?=</span>)", page)


@pytest.mark.parametrize("partition", ["", "1"])
def test_pages_go_back_to_the_oldest_record_and_return(
    visitor: Visitor, topic: str, produce: Callable[..., None], partition: str
) -> None:
    for number in range(60):
        produce(topic, f"v{number}", partition=1 if partition else number % 2)
    page = visitor.get(f"/topics/{topic}?limit=25&partition={partition}&format=text").text
    shown = [values(page)]
    assert not link(page, "Newer")
    for _ in range(2):
        fields = dict(parse_qsl(link(page, "Older")))
        assert (fields["format"], fields["limit"]) == ("text", "25")
        page = visitor.get(f"/topics/{topic}?{link(page, 'Older')}").text
        shown.append(values(page))
    assert not link(page, "Older")
    assert [each for rows in shown for each in rows] == [f"v{number}" for number in reversed(range(60))]
    page = visitor.get(f"/topics/{topic}?{link(page, 'Newer')}").text
    assert values(page) == shown[1]
    page = visitor.get(f"/topics/{topic}?{link(page, 'Newer')}").text
    assert values(page) == shown[0]


def test_pages_from_the_oldest_on_keep_their_order(visitor: Visitor, topic: str, produce: Callable[..., None]) -> None:
    for number in range(40):
        produce(topic, f"v{number}", partition=number % 2)
    first = visitor.get(f"/topics/{topic}?limit=25&start=oldest").text
    assert values(first) == [f"v{number}" for number in range(25)]
    second = visitor.get(f"/topics/{topic}?{link(first, 'Newer')}").text
    assert values(second) == [f"v{number}" for number in range(25, 40)]
    assert not link(second, "Newer")
    assert values(visitor.get(f"/topics/{topic}?{link(second, 'Older')}").text) == values(first)


def test_an_export_of_an_older_page_has_its_records(visitor: Visitor, topic: str, produce: Callable[..., None]) -> None:
    for number in range(60):
        produce(topic, f"v{number}", partition=number % 2)
    older = link(visitor.get(f"/topics/{topic}?limit=25").text, "Older")
    exported = visitor.get(f"/topics/{topic}/export?{older}").text
    assert sorted(re.findall(r'"value":"(v\d+)"', exported)) == sorted(f"v{number}" for number in range(10, 35))
