"""Joins of two streams: rows with equal keys whose event times differ by at most `within`."""

from __future__ import annotations

import functools
import operator
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - its usual name

from odradek.pipelines.definition.columns import RECORD_COLUMN_NAMES, shared_names
from odradek.pipelines.definition.vocabulary import StreamJoinKind
from odradek.pipelines.spark.event_time import WATERMARK_DELAY, actual_name, without_mark
from odradek.pipelines.spark.hidden_columns import quoted, without_hidden
from odradek.pipelines.spark.sessions.failures import PipelineError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from pyspark.sql import Column, DataFrame

    from odradek.pipelines.definition.operations import StreamJoin

LEFT, RIGHT = "__left_", "__right_"


class JoinRefused(PipelineError):
    """Columns that became known with the streams themselves do not allow the join."""


def join_streams(
    left: DataFrame, right: DataFrame, operation: StreamJoin, left_time: str, right_time: str
) -> DataFrame:
    """The columns to join on, then the others of the left and of the right side, without those of Kafka records."""
    left, right = without_records(left, operation.on), without_records(right, operation.on)
    check_names(left, right, operation)
    left_time, right_time = actual_name(left, left_time), actual_name(right, right_time)
    check_times(left, right, left_time, right_time)
    joined = prefixed(left, LEFT).join(
        prefixed(right, RIGHT), condition(operation, left_time, right_time), str(operation.how)
    )
    on = {name.lower() for name in operation.on}
    columns = [key(operation, name) for name in operation.on]
    for frame, prefix in ((left, LEFT), (right, RIGHT)):
        columns += [of_side(frame, prefix, name, operation) for name in frame.columns if name.lower() not in on]
    return joined.select(*columns)


def without_records(frame: DataFrame, on: Collection[str]) -> DataFrame:
    """Without the columns of a single record, which a row of two records does not have."""
    shown = without_hidden(frame)
    return shown.drop(*(name for name in shown.columns if name in RECORD_COLUMN_NAMES and name not in on))


def prefixed(frame: DataFrame, prefix: str) -> DataFrame:
    """New columns, so that a stream can be joined with itself; names in lower case."""
    return frame.select(*(F.col(quoted(name)).alias(prefix + name.lower()) for name in frame.columns))


def condition(operation: StreamJoin, left_time: str, right_time: str) -> Column:
    """Null never matches. Saying so for each side lets Spark write unmatched rows with a null at once: the watermark
    would never pass them. Spark derives from the bounds when a row of the state can match no more."""
    assert operation.within is not None  # validate refuses it
    left, right = F.col(quoted(LEFT + left_time.lower())), F.col(quoted(RIGHT + right_time.lower()))
    keys = [(F.col(quoted(LEFT + name.lower())), F.col(quoted(RIGHT + name.lower()))) for name in operation.on]
    within = F.expr(f"INTERVAL '{operation.within.milliseconds / 1000:.3f}' SECOND")
    parts = [one == other for one, other in keys]
    parts += [each.isNotNull() for pair in (*keys, (left, right)) for each in pair]
    return conjunction([*parts, left >= right - within, left <= right + within])


def conjunction(parts: Iterable[Column]) -> Column:
    return functools.reduce(operator.and_, parts)


def key(operation: StreamJoin, name: str) -> Column:
    """A column to join on, of the side that has it in every row."""
    left, right = F.col(quoted(LEFT + name.lower())), F.col(quoted(RIGHT + name.lower()))
    if operation.how is StreamJoinKind.FULL:
        return F.coalesce(left, right).alias(name)
    return (right if operation.how is StreamJoinKind.RIGHT else left).alias(name)


def of_side(frame: DataFrame, prefix: str, name: str, operation: StreamJoin) -> Column:
    """A column of one side. Event time is that of the side whose rows are all kept: Spark accepts one column of it."""
    sides = {StreamJoinKind.FULL: "", StreamJoinKind.RIGHT: RIGHT}
    metadata = dict(frame.schema[name].metadata)
    if prefix != sides.get(operation.how, LEFT) and WATERMARK_DELAY in metadata:
        metadata = without_mark(metadata)
    return F.col(quoted(prefix + name.lower())).alias(name, metadata=metadata)


def check_names(left: DataFrame, right: DataFrame, operation: StreamJoin) -> None:
    """Names that validate could not know, such as those of a Python function without a schema."""
    names = shared_names(operation, left.columns, right.columns)
    if names:
        raise JoinRefused(f"both sides of the join have the column '{names[0]}': rename it in a SQL step before")


def check_times(left: DataFrame, right: DataFrame, left_time: str, right_time: str) -> None:
    types = [frame.schema[name].dataType.simpleString() for frame, name in ((left, left_time), (right, right_time))]
    if types[0] != types[1]:
        raise JoinRefused(
            f"the event times '{left_time}' ({types[0]}) and '{right_time}' ({types[1]}) have different types: cast one"
        )
