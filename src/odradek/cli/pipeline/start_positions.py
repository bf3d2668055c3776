"""Positions in topics: earliest, latest, a time, or TOPIC:PARTITION:OFFSET for each partition."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING

from odradek.cli.framework.parameter_types import quoted
from odradek.conventions.failures import Failure
from odradek.conventions.figures import INT32_MAX, INT64_MAX, iso_text, parse_time_ms
from odradek.pipelines.definition.model import Start, TopicOrigin
from odradek.pipelines.definition.vocabulary import StartAt
from odradek.pipelines.planning.streams import ranged_names
from odradek.pipelines.spark.sources import EARLIEST_OFFSET, LATEST_OFFSET, Range

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odradek.pipelines.definition.model import Pipeline

DAY = re.compile(r"\d{4}-\d{2}-\d{2}[T ]")
HINT = "write earliest, latest, a time such as 2026-01-31T12:00 or -1h, or TOPIC:PARTITION:OFFSET"


def parse_position(texts: Sequence[str], pipeline: Pipeline) -> Start:
    """One position for all topics, or offsets of partitions; Failure for anything else."""
    if len(texts) == 1 and texts[0] in {StartAt.EARLIEST, StartAt.LATEST}:
        return Start(StartAt(texts[0]))
    offsets = [parse_offset(text) for text in texts]
    if None not in offsets:
        by_topic: dict[str, dict[int, int]] = {}
        for topic, partition, offset in filter(None, offsets):
            check_topic(topic, pipeline)
            by_topic.setdefault(topic, {})[partition] = offset
        return Start(StartAt.OFFSETS, offsets=by_topic)
    if len(texts) > 1:
        raise Failure(f"{' '.join(texts)}: several positions must all be TOPIC:PARTITION:OFFSET")
    try:
        return Start(StartAt.TIME, max(0, parse_time_ms(texts[0], int(time.time() * 1000))))
    except (ValueError, OverflowError):
        raise Failure(f"{quoted(texts[0])} is no position in a topic; {HINT}") from None


def parse_range(from_texts: Sequence[str], to_texts: Sequence[str], pipeline: Pipeline) -> Range:
    """The range of a backfill. With offsets, only the named partitions are read."""
    start = parse_position(from_texts, pipeline)
    end = parse_position(to_texts, pipeline) if to_texts else Start(StartAt.LATEST)
    if start.at is StartAt.LATEST or end.at is StartAt.EARLIEST:
        raise Failure("the range is empty: it begins at the latest record, or ends at the earliest")
    if StartAt.OFFSETS not in {start.at, end.at}:
        return Range(start, end)
    if StartAt.TIME in {start.at, end.at}:
        raise Failure("a range takes times or offsets, not both")
    named = [(topic, each) for position in (start, end) for topic, found in position.offsets.items() for each in found]
    return Range(with_all(start, named, EARLIEST_OFFSET), with_all(end, named, LATEST_OFFSET), only_named=True)


def with_all(position: Start, named: Sequence[tuple[str, int]], other: int) -> Start:
    offsets: dict[str, dict[int, int]] = {}
    for topic, partition in named:
        offsets.setdefault(topic, {})[partition] = position.offsets.get(topic, {}).get(partition, other)
    return Start(StartAt.OFFSETS, offsets=offsets)


def parse_offset(text: str) -> tuple[str, int, int] | None:
    """Parse `pump:0:1200`; None for anything else, such as a time of day."""
    topic, *numbers = text.rsplit(":", 2)
    if not topic or len(numbers) != 2 or DAY.match(text) or not all(each.isdecimal() for each in numbers):
        return None
    partition, offset = int(numbers[0]), int(numbers[1])
    return (topic, partition, offset) if partition <= INT32_MAX and offset <= INT64_MAX else None


def check_topic(topic: str, pipeline: Pipeline) -> None:
    ranged = ranged_names(pipeline)
    found = {each.name: each.origin for each in pipeline.sources if isinstance(each.origin, TopicOrigin)}
    origins = [origin for name, origin in found.items() if name in ranged]
    read = [name for origin in origins for name in origin.topics]
    if topic not in read and any(topic in origin.topics for origin in found.values()):
        raise Failure(f"topic {topic} is read as a whole, because its source has stream: false; name offsets of others")
    if topic not in read:
        patterns = (
            "; offsets need topics that are named, not patterns"
            if any(each.pattern is not None for each in origins)
            else ""
        )
        raise Failure(f"{pipeline.name} does not read topic {topic}; it reads {', '.join(read) or 'none'}{patterns}")


def position_text(start: Start) -> str:
    if start.at is StartAt.TIME:
        return iso_text(start.time_ms or 0)
    if start.at is StartAt.OFFSETS:
        offsets = [f"{topic}:{each}:{at}" for topic, found in start.offsets.items() for each, at in found.items()]
        return ", ".join(offsets)
    return str(start.at)
