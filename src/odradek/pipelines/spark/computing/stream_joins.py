"""Joins of two streams, declared or in SQL: rows with equal keys, whose event times are bounded by each other."""

from __future__ import annotations

import functools
import operator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - its usual name

from odradek.pipelines.planning.plan import LEFT, RIGHT
from odradek.pipelines.spark.frames import (
    RECORD_NAMES,
    actual_name,
    column,
    with_filter_barrier,
    with_one_event_time,
    without_internal,
)
from odradek.pipelines.spark.sessions.failures import PipelineError
from odradek.pipelines.sql.joins import Bound
from odradek.pipelines.sql.query import Join

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from pyspark.sql import Column, DataFrame

    from odradek.pipelines.definition.operations import StreamJoin
    from odradek.pipelines.sql.joins import Pairs

SPARK_NAMES: Mapping[str, str] = {Join.SEMI: "left_semi", Join.ANTI: "left_anti"}


@dataclass(frozen=True, slots=True)
class Match:
    """Which rows of two streams match. Without bounds, rows match at any time, and all are kept."""

    keys: Sequence[tuple[str, str]]
    how: Join
    low: Bound | None = None  # of right minus left event time
    high: Bound | None = None

    @classmethod
    def of_operation(cls, operation: StreamJoin) -> Match:
        keys = [(name, name) for name in operation.on]
        if operation.within is None:
            return cls(keys, Join(operation.how))
        within_ms = operation.within.milliseconds
        return cls(keys, Join(operation.how), Bound(-within_ms), Bound(within_ms))

    @classmethod
    def of_pairs(cls, pairs: Pairs) -> Match:
        return cls(pairs.keys, pairs.how, pairs.low, pairs.high)


def pairs_of(left: DataFrame, right: DataFrame, match: Match, times: tuple[str | None, str | None]) -> DataFrame:
    """The matching rows, with the columns of both sides under their prefixes. A row has the event time of the side
    whose rows are all kept, of the left one if neither is."""
    sides = [without_internal(left), without_internal(right)]
    sides = [with_one_event_time(side, time) for side, time in zip(sides, times, strict=True)]
    names = [None if time is None else actual_name(side, time) for side, time in zip(sides, times, strict=True)]
    check_times(sides, names)
    renamed = [prefixed(side, prefix) for side, prefix in zip(sides, (LEFT, RIGHT), strict=True)]
    condition = functools.reduce(operator.and_, conditions(match, names[0], names[1]))
    joined = renamed[0].join(renamed[1], condition, SPARK_NAMES.get(match.how, str(match.how)))
    kept = {Join.RIGHT: (RIGHT, names[1]), Join.FULL: ("", None)}.get(match.how, (LEFT, names[0]))
    is_bounded = match.low is not None or match.high is not None
    timed = with_one_event_time(joined, kept[0] + kept[1] if is_bounded and kept[1] is not None else None, renamed)
    return with_filter_barrier(timed) if timed.isStreaming else timed


def prefixed(frame: DataFrame, prefix: str) -> DataFrame:
    """New columns, so that a stream can be joined with itself."""
    return frame.select(*(column(name).alias(prefix + name) for name in frame.columns))


def conditions(match: Match, left_time: str | None, right_time: str | None) -> Iterator[Column]:
    """Null never matches. Saying so for each side lets Spark write unmatched rows with a null at once: the watermark
    would never pass them. Spark derives from the bounds when a row of the state can match no more."""
    keys = [(column(LEFT + left), column(RIGHT + right)) for left, right in match.keys]
    for left, right in keys:
        yield left == right
        yield left.isNotNull()
        yield right.isNotNull()
    if left_time is None or right_time is None or (match.low is None and match.high is None):
        return
    left, right = column(LEFT + left_time), column(RIGHT + right_time)
    yield left.isNotNull()
    yield right.isNotNull()
    for bound, closed, opened in ((match.low, operator.ge, operator.gt), (match.high, operator.le, operator.lt)):
        if bound is not None:
            yield (opened if bound.is_open else closed)(right, left + interval(bound.ms))


def interval(ms: int) -> Column:
    return F.expr(f"INTERVAL '{ms / 1000:.3f}' SECOND")


def join_streams(
    left: DataFrame, right: DataFrame, operation: StreamJoin, times: tuple[str | None, str | None]
) -> DataFrame:
    """The columns to join on, then the others of the left and of the right side, without those of Kafka records."""
    sides = [without_records(each, operation.on) for each in (left, right)]
    check_names(sides[0].columns, sides[1].columns, operation.on)
    match = Match.of_operation(operation)
    joined = pairs_of(sides[0], sides[1], match, times)
    on = {name.lower() for name in operation.on}
    columns = [key(match.how, name) for name in operation.on]
    for frame, prefix in zip(sides, (LEFT, RIGHT), strict=True):
        columns += [column(prefix + name).alias(name) for name in frame.columns if name.lower() not in on]
    return joined.select(*columns)


def without_records(frame: DataFrame, on: Collection[str]) -> DataFrame:
    """Without the columns of a single record, which a row of two records does not have."""
    return without_internal(frame).drop(*(RECORD_NAMES - set(on)))


def key(how: Join, name: str) -> Column:
    """A column to join on, of the side that has it in every row."""
    left, right = column(LEFT + name), column(RIGHT + name)
    if how is Join.FULL:
        return F.coalesce(left, right).alias(name)
    return (right if how is Join.RIGHT else left).alias(name)


def check_names(left: Collection[str], right: Collection[str], on: Collection[str]) -> None:
    """Names that validate could not know, such as those of a Python function without a schema."""
    taken = {name.lower() for name in left} - {name.lower() for name in on}
    both = next((name for name in right if name.lower() in taken), None)
    if both is not None:
        raise PipelineError(f"both sides of the join have the column '{both}': rename it in a SQL step before")


def check_times(sides: Sequence[DataFrame], names: Sequence[str | None]) -> None:
    found = [(name, side.schema[name].dataType.simpleString()) for side, name in zip(sides, names, strict=True) if name]
    if len({kind for _, kind in found}) > 1:
        (left, of_left), (right, of_right) = found
        raise PipelineError(
            f"the event times '{left}' ({of_left}) and '{right}' ({of_right}) have different types: cast one"
        )
