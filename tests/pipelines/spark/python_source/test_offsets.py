"""The rules of offsets: batches follow one another without gaps, none is larger than allowed, none is planned twice."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.pipelines.spark.python_source.offsets import (
    OffsetRange,
    Partition,
    from_json,
    limited_end_offsets,
    losses,
    planned_ranges,
    to_json,
)

A, B, C = Partition("a", 0), Partition("a", 1), Partition("b", 0)
partitions = st.builds(Partition, st.sampled_from(["a", "b-1", "c.d"]), st.integers(0, 12))
offsets = st.dictionaries(partitions, st.integers(0, 1000), max_size=6)


@given(offsets)
def test_offsets_come_back_from_a_checkpoint(found: dict[Partition, int]) -> None:
    assert from_json(to_json(found)) == found


def test_they_are_written_as_sparks_connector_writes_them() -> None:
    assert to_json({B: 7, A: 5, C: 0}) == {"a": {"0": 5, "1": 7}, "b": {"0": 0}}


def test_a_batch_reads_what_is_between_its_offsets() -> None:
    assert planned_ranges({A: 3, B: 4}, {A: 5, B: 4, C: 2}) == [OffsetRange(A, 3, 5), OffsetRange(C, 0, 2)]


def test_the_first_batch_only_notes_where_the_stream_begins() -> None:
    assert planned_ranges({}, {A: 5}) == []


@given(offsets, offsets, st.integers(1, 500))
def test_every_record_is_in_one_batch(start: dict[Partition, int], waiting: dict[Partition, int], most: int) -> None:
    latest = {partition: start.get(partition, 0) + waiting.get(partition, 0) for partition in {*start, *waiting}}
    at = dict(start)
    if not at:
        return
    read: dict[Partition, list[int]] = {}
    while True:
        end = limited_end_offsets(at, latest, most)
        ranges = planned_ranges(at, end)
        assert sum(each.end - each.first for each in ranges) <= most
        for each in ranges:
            read.setdefault(each.partition, []).extend(range(each.first, each.end))
        if end == at:
            break
        assert ranges or set(end) != set(at)
        at = end
    assert at == latest
    assert {partition: found for partition, found in read.items() if found} == {
        partition: list(range(start.get(partition, 0), until))
        for partition, until in latest.items()
        if until > start.get(partition, 0)
    }


def test_a_small_partition_does_not_starve() -> None:
    assert limited_end_offsets({A: 0, B: 0}, {A: 1, B: 1_000_000}, 10) == {A: 1, B: 9}


@pytest.mark.parametrize("most", [None, 1, 100])
def test_the_place_in_a_partition_that_one_answer_lacks_is_kept(most: int | None) -> None:
    end = limited_end_offsets({A: 5, B: 700}, {A: 9}, most)
    assert end[B] == 700
    assert OffsetRange(B, 700, 702) in planned_ranges(end, {**end, B: 702})


def test_what_is_gone_is_named() -> None:
    assert losses({A: 5, B: 5, C: 5}, {A: 5, B: 3}) == [
        "b-0 does not exist",
        "a-1 ends at offset 3, but the stream is at offset 5",
    ]
