"""The stream reader as PySpark 4.1 calls it: `latestOffset` without arguments, and no limits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from odradek.pipelines.spark.python_source import source
from odradek.pipelines.spark.python_source.offsets import Partition
from odradek.pipelines.spark.python_source.options import TopicOptions

if TYPE_CHECKING:
    from collections.abc import Iterable

    from odradek.pipelines.spark.python_source.options import Edge

FIRST = Partition("t", 0)


class Log:
    """A lookup of one partition, from offset 2 to `end`."""

    end = 10

    def partitions(self) -> list[Partition]:
        return [FIRST]

    def at(self, _edge: Edge, partitions: Iterable[Partition]) -> dict[Partition, int]:
        return dict.fromkeys(partitions, 2)

    def latest(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        return dict.fromkeys(partitions, self.end)


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Log:
    monkeypatch.setattr(source, "HAS_LIMITS", False)
    found = Log()
    monkeypatch.setattr(source, "Lookup", lambda _options: found)
    return found


def reader() -> source.TopicStreamReader:
    return source.TopicStreamReader(TopicOptions.of({"subscribe": "t", "maxOffsetsPerTrigger": "3"}))


def ranges(stream: source.TopicStreamReader, start: dict[str, Any], end: dict[str, Any]) -> list[tuple[int, int]]:
    return [(each.value.first, each.value.end) for each in stream.partitions(start, end)]


def test_the_first_batch_has_everything_and_later_ones_are_limited(log: Log) -> None:
    stream = reader()
    end = stream.latestOffset()
    assert ranges(stream, stream.initialOffset(), end) == [(2, 10)]
    log.end = 20
    following = stream.latestOffset()
    assert ranges(stream, end, following) == [(10, 13)]


def test_a_stream_continues_at_the_offset_that_spark_has_seen(log: Log) -> None:
    """Spark plans an empty range at a restart."""
    stream = reader()
    seen = {"t": {"0": 9}}
    assert ranges(stream, seen, seen) == []
    assert ranges(stream, seen, stream.latestOffset()) == [(9, 10)]


def test_a_replayed_first_batch_has_the_same_end(log: Log) -> None:
    end = {"t": {"0": 7}}
    assert ranges(reader(), {}, end) == [(2, 7)]
