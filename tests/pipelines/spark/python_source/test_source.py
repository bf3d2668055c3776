"""The stream reader as Spark calls it: starts at its stored offset, finds new partitions, and detects lost records."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from odradek.pipelines.spark.python_source.lookup import TopicsUnavailable
from odradek.pipelines.spark.python_source.offsets import OffsetRange, Partition
from odradek.pipelines.spark.python_source.reading import RecordsMissing
from odradek.pipelines.spark.python_source.source import TopicReader, TopicStreamReader

if TYPE_CHECKING:
    from tests.pipelines.spark.python_source.cluster import Topics

pytestmark = pytest.mark.spark
ALL = ReadAllAvailable()
FIRST_MS = 1_767_268_800_000


def ranges(reader: TopicStreamReader, start: dict[str, Any], end: dict[str, Any]) -> list[tuple[int, int, int]]:
    """Partition, first and end offset of each range, planned from offsets as a checkpoint stores them."""
    planned = reader.partitions(json.loads(json.dumps(start)), json.loads(json.dumps(end)))
    return [(each.value.partition.number, each.value.first, each.value.end) for each in planned]


def batch_ranges(reader: TopicReader) -> list[tuple[int, int]]:
    return [(each.value.first, each.value.end) for each in reader.partitions()]


def test_the_first_batch_notes_the_start_and_a_repeated_one_does_not_ask_again(topics: Topics) -> None:
    name = topics.create("t")
    topics.produce("t", [b"x"] * 5)
    reader = TopicStreamReader(topics.options(startingOffsets="latest"))
    begin = reader.latestOffset(reader.initialOffset(), ALL)
    assert begin == {name: {"0": 5}}
    topics.produce("t", [b"x"] * 2)
    again = TopicStreamReader(topics.options(startingOffsets="latest"))
    assert ranges(again, again.initialOffset(), begin) == []
    end = again.latestOffset(begin, ALL)
    assert ranges(again, begin, end) == [(0, 5, 7)]


def test_a_batch_is_as_large_as_it_may_be(topics: Topics) -> None:
    topics.create("t")
    topics.produce("t", [b"x"] * 5)
    reader = TopicStreamReader(topics.options(maxOffsetsPerTrigger="2"))
    limit = reader.getDefaultReadLimit()
    assert limit == ReadMaxRows(2)
    at = reader.latestOffset({}, limit)
    sizes = []
    while (end := reader.latestOffset(at, limit)) != at:
        sizes += [until - first for _, first, until in ranges(reader, at, end)]
        at = end
    assert sizes == [2, 2, 1]
    assert reader.reportLatestOffset() == at


def test_what_comes_later_is_not_part_of_what_is_there_now(topics: Topics) -> None:
    name = topics.create("t")
    topics.produce("t", [b"x"] * 3)
    reader = TopicStreamReader(topics.options(startingOffsets="latest"))
    reader.prepareForTriggerAvailableNow()
    topics.produce("t", [b"x"] * 3)
    assert reader.latestOffset({}, ALL) == {name: {"0": 3}}
    assert reader.latestOffset({name: {"0": 1}}, ALL) == {name: {"0": 3}}


def test_new_partitions_and_topics_are_read_from_their_first_record(topics: Topics) -> None:
    topics.create("t")
    pattern = f"{topics.prefix}-.*"
    reader = TopicStreamReader(topics.options(subscribePattern=pattern, startingOffsets="latest"))
    begin = reader.latestOffset({}, ALL)
    topics.grow("t", 2)
    topics.create("u")
    topics.produce("t", [b"x"], 1)
    topics.produce("u", [b"x"] * 2)
    give_up_at = time.monotonic() + 30
    while len(ranges(reader, begin, reader.latestOffset(begin, ALL))) < 2:
        assert time.monotonic() < give_up_at
    assert ranges(reader, begin, reader.latestOffset(begin, ALL)) == [(1, 0, 1), (0, 0, 2)]


def test_a_recreated_topic_is_not_taken_for_the_old_one(topics: Topics) -> None:
    name = topics.create("t")
    at = {name: {"0": 5}}
    with pytest.raises(RecordsMissing, match="-t-0 ends at offset 0, but the stream is at offset 5"):
        TopicStreamReader(topics.options()).latestOffset(at, ALL)
    skipping = TopicStreamReader(topics.options(failOnDataLoss="false"))
    assert skipping.latestOffset(at, ALL) == {name: {"0": 0}}
    gone = {topics.name("gone"): {"0": 1}, **at}
    with pytest.raises(RecordsMissing, match="-gone-0 does not exist"):
        TopicStreamReader(topics.options()).latestOffset(gone, ALL)


def test_a_topic_that_is_not_there_is_named(topics: Topics) -> None:
    with pytest.raises(TopicsUnavailable, match=r"topic .*-nowhere does not exist"):
        TopicReader(topics.options("nowhere")).partitions()
    with pytest.raises(TopicsUnavailable, match=r"no topic matches nothing-.*"):
        TopicReader(topics.options(subscribePattern="nothing-.*")).partitions()


def test_times_are_looked_up(topics: Topics) -> None:
    topics.create("t")
    for number in range(5):
        topics.produce("t", [b"x"], timestamp=FIRST_MS + 1000 * number)
    between = {"startingTimestamp": str(FIRST_MS + 500), "endingTimestamp": str(FIRST_MS + 3000)}
    assert batch_ranges(TopicReader(topics.options(**between))) == [(1, 3)]
    assert batch_ranges(TopicReader(topics.options(startingTimestamp=str(FIRST_MS + 9000)))) == []
    later = {"startingTimestamp": str(FIRST_MS), "endingTimestamp": str(FIRST_MS + 9000)}
    assert batch_ranges(TopicReader(topics.options(**later))) == [(0, 5)]


def test_offsets_may_be_named_for_some_partitions(topics: Topics) -> None:
    name = topics.create("t", 2)
    topics.produce("t", [b"x"] * 5)
    topics.produce("t", [b"x"] * 5, 1)
    options = topics.options(startingOffsets=f'{{"{name}": {{"0": 3}}}}', endingOffsets=f'{{"{name}": {{"1": 4}}}}')
    assert batch_ranges(TopicReader(options)) == [(3, 5), (0, 4)]
    planned = TopicReader(options).partitions()
    assert planned[0].value == OffsetRange(Partition(name, 0), 3, 5)
