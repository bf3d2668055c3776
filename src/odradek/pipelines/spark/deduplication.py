"""Deduplication: the first row of each key, or of each key in each period of event time.

With `within`, two operators drop the duplicates of a key: one in periods of twice that duration, one in the same
periods shifted by it. Two rows that are less than `within` apart share a period of one kind, so that one is dropped.
The periods depend on the rows alone, so that a stream drops the same rows as a batch, however it is cut into batches.
A key is forgotten when the watermark passes the end of its period, after which only late rows could belong to it.

An operator of a stream keeps the first row that reaches it. So the rows of a batch are sorted (`in_order`) if they may
be in another order than they arrived: before the first operator, rows with a record behind a union, a join or another
deduplication, and before the second one in several shuffle partitions, because the first divides the rows of a key.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from odradek.pipelines.spark.event_time import (
    WATERMARK_DELAY,
    actual_name,
    event_time_of,
    retimed,
    with_filter_barrier,
    without_mark,
)
from odradek.pipelines.spark.hidden_columns import has_origin, quoted
from odradek.pipelines.spark.row_order import PLACE, in_order, record_order
from odradek.pipelines.spark.sorted_batches import has_several_partitions, may_sort
from odradek.pipelines.spark.stateful_plans import mixes_rows

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from odradek.pipelines.definition.operations import Deduplication

PERIOD, RANK = "__period", "__rank"


def deduplicate(frame: DataFrame, operation: Deduplication, event_time: str | None) -> DataFrame:
    """Drops duplicates; `event_time` is the column of event time, for `within`."""
    key = list(operation.key)
    is_sortable = frame.isStreaming and may_sort(frame.sparkSession)
    is_mixed = is_sortable and has_origin(frame) and mixes_rows(frame)
    is_divided = is_sortable and operation.within is not None and has_several_partitions(frame.sparkSession)
    if is_mixed or is_divided or not frame.isStreaming:
        frame = frame.withColumn(PLACE, F.monotonically_increasing_id())
    order = [*(record_order(frame) if is_mixed else ()), F.col(PLACE)]
    if is_mixed:
        frame = in_order(frame, key, order)
    if operation.within is None or event_time is None:
        time = event_time_of(frame) if frame.isStreaming else None
        first = first_rows(frame, key).drop(PLACE)
        # Without its column of event time, Spark's operator would drop no late rows.
        return first if time is None else with_filter_barrier(first, time)
    name = actual_name(frame, event_time)
    within_ms = operation.within.milliseconds
    first = first_in_periods(frame, key, name, 2 * within_ms, 0)
    ordered = in_order(first, key, order) if is_divided else first
    return first_in_periods(ordered, key, name, 2 * within_ms, within_ms).drop(PLACE)


def first_in_periods(frame: DataFrame, key: list[str], time: str, size_ms: int, shift_ms: int) -> DataFrame:
    """The first row of each key in each period; the period's end is the event time of its state."""
    metadata = dict(frame.schema[time].metadata)
    delay = {each: metadata[each] for each in (WATERMARK_DELAY,) if each in metadata}
    end = period_end(F.col(quoted(time)), size_ms, shift_ms).alias(PERIOD, metadata=delay)
    # Spark refuses a stateful operator with two columns of event time, so the input's column has no mark there.
    marked = first_rows(retimed(frame, time, without_mark(metadata), end), [*key, PERIOD])
    return retimed(marked.drop(PERIOD), time, metadata)


def first_rows(frame: DataFrame, key: list[str]) -> DataFrame:
    """The first row of each key: the first to arrive. In a batch this is the one with the first record, of several rows
    of one record and of rows without a record the first that is read."""
    if frame.isStreaming:
        return frame.dropDuplicates(key)
    order = [*record_order(frame), F.col(PLACE)]
    ranked = Window.partitionBy(*(F.col(quoted(name)) for name in key)).orderBy(*order)
    return frame.withColumn(RANK, F.row_number().over(ranked)).where(F.col(RANK) == 1).drop(RANK)


def period_end(time: Column, size_ms: int, shift_ms: int) -> Column:
    """The end of the period of a row; null for a row without event time."""
    size, shift = F.lit(size_ms * 1000), F.lit(shift_ms * 1000)
    micros = F.unix_micros(time.cast("timestamp")) + shift
    return F.timestamp_micros(micros - F.pmod(micros, size) + size - shift)
