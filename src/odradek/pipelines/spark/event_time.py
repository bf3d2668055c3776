"""Columns of event time in frames: Spark marks them in the metadata of the column."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F  # noqa: N812 - its usual name

from odradek.pipelines.spark.hidden_columns import quoted

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from pyspark.sql import Column, DataFrame

# Spark's mark of a column of event time: state whose key has one is removed when the watermark has passed it. Without
# it, or by another name, deduplication has the same results and forgets no key, and windows over windows are refused.
WATERMARK_DELAY = "spark.watermarkDelayMs"


UNMARKED = "odradek.unmarked"  # metadata of a column whose mark is removed


def without_mark(metadata: dict[str, Any]) -> dict[str, Any]:
    """The metadata of a column that is not event time. They are not empty, because Spark's optimizer gives a column
    without metadata those of the column that it is computed from."""
    return {**{key: value for key, value in metadata.items() if key != WATERMARK_DELAY}, UNMARKED: True}


def actual_name(frame: DataFrame, name: str) -> str:
    """The column's name as the frame spells it."""
    return next(each for each in frame.columns if each.lower() == name.lower())


def retimed(frame: DataFrame, time: str, metadata: dict[str, Any], *more: Column) -> DataFrame:
    """The frame with other metadata of its column of event time, and with more columns."""
    columns = [F.col(quoted(each)) for each in frame.columns]
    columns[frame.columns.index(time)] = F.col(quoted(time)).alias(time, metadata=metadata)
    return frame.select(*columns, *more)


def with_filter_barrier(frame: DataFrame, time: str | None = None) -> DataFrame:
    """The same rows behind a filter that all of them pass, and that Spark moves no other filter below.

    Directly above a watermark, it is the watermark of all rows, also of those that a later filter removes. Above an
    operator with state, late rows are counted likewise. With `time`, that column is read by the filter, so that Spark
    does not remove it from the rows of the operator below."""
    least = F.lit(0) if time is None else F.least(F.lit(0), F.hash(F.col(quoted(time))))
    # The id is not deterministic for Spark, so that its optimizer leaves the filter where it is.
    return frame.where(F.spark_partition_id() >= least)


def event_time_of(frame: DataFrame) -> str | None:
    """The column that Spark has marked as event time."""
    return next((each.name for each in frame.schema.fields if WATERMARK_DELAY in each.metadata), None)


def with_window_ends(frame: DataFrame, inputs: Iterable[DataFrame], names: Collection[str]) -> DataFrame:
    """Marks the ends of windows of a stream as event time, so that operators behind an aggregation can use them.

    Spark marks the window, not its end: the row of a window is final when the watermark passes the end."""
    delays = [
        field.metadata[WATERMARK_DELAY]
        for each in inputs
        for field in each.schema.fields
        if WATERMARK_DELAY in field.metadata
    ]
    for name in sorted(names) if delays else ():
        frame = retimed(frame, actual_name(frame, name), {WATERMARK_DELAY: max(delays)})
    return frame
