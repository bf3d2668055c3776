"""Rows that are handled by key: deduplication, and processors of keyed state.

With `within`, two operators drop the duplicates of a key: one in periods of twice that duration, one in the same
periods shifted by it. Two rows that are less than `within` apart share a period of one kind, so that one is dropped.
The periods depend on the rows alone, so that a stream drops the same rows as a batch, however it is cut into batches.
A key is forgotten when the watermark passes the end of its period, after which only late rows could belong to it.

An operator of a stream keeps the first row that reaches it. With several shuffle partitions, the first of the two
operators divides the rows of a key, so they are sorted before the second one. Spark refuses to sort the rows of a
stream, because the result may depend on the batches; that of a deduplication does not. So such a query is checked by
Spark without the sort, and started without the check.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from odradek.pipelines.definition.vocabulary import StateClock, StateOrder
from odradek.pipelines.planning.plan import OutputMode
from odradek.pipelines.spark.frames import (
    ORIGIN,
    WATERMARK_DELAY,
    actual_name,
    column,
    has_origin,
    with_filter_barrier,
    with_one_event_time,
    without_internal,
)
from odradek.pipelines.spark.sessions.user_code import load_reference

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pyspark.sql import Column, DataFrame, SparkSession

    from odradek.pipelines.definition.operations import Deduplication, KeyedState

PERIOD, RANK = "__period", "__rank"
PLACE = "__place"  # the order of rows as they are read
SHUFFLE_PARTITIONS = "spark.sql.shuffle.partitions"
SORTING = "spark.odradek.sorting"  # a setting of a session: whether queries that are compiled may sort their batches


def deduplicated(frame: DataFrame, operation: Deduplication, time: str | None) -> DataFrame:
    """The first row of each key, by arrival; `time` is the event time of the rows."""
    key, within, frame = list(operation.key), operation.within, with_one_event_time(frame, time)
    if not frame.isStreaming:
        frame = frame.withColumn(PLACE, F.monotonically_increasing_id())
    if within is None or time is None:
        first = first_rows(frame, key).drop(PLACE)
        # Without its column of event time, Spark's operator would drop no late rows.
        return first if time is None or not frame.isStreaming else with_filter_barrier(first, time)
    sorts = frame.isStreaming and sorts_batches(frame.sparkSession)
    placed = frame.withColumn(PLACE, F.monotonically_increasing_id()) if sorts else frame
    name, size_ms = actual_name(frame, time), 2 * within.milliseconds
    first = first_in_periods(placed, key, name, size_ms, 0)
    ordered = in_order(first, key, [F.col(PLACE)]) if sorts else first
    return first_in_periods(ordered, key, name, size_ms, within.milliseconds).drop(PLACE)


def first_in_periods(frame: DataFrame, key: Sequence[str], time: str, size_ms: int, shift_ms: int) -> DataFrame:
    """The first row of each key in each period, whose end is the event time of the operator's state."""
    metadata = frame.schema[time].metadata
    delay = {WATERMARK_DELAY: metadata[WATERMARK_DELAY]} if WATERMARK_DELAY in metadata else {}
    end = period_end(column(time), size_ms, shift_ms).alias(PERIOD, metadata=delay)
    timed = with_one_event_time(frame.select("*", end), PERIOD)
    first = first_rows(timed, [*key, PERIOD])
    return with_one_event_time(first, time, [frame]).drop(PERIOD)


def first_rows(frame: DataFrame, key: Sequence[str]) -> DataFrame:
    """The first row of each key: the first to arrive. In a batch this is the one with the first record, of several rows
    of one record and of rows without a record the first that is read."""
    if frame.isStreaming:
        return frame.dropDuplicates(list(key))
    order = [*record_order(frame), F.col(PLACE)]
    ranked = Window.partitionBy(*map(column, key)).orderBy(*order)
    return frame.withColumn(RANK, F.row_number().over(ranked)).where(F.col(RANK) == 1).drop(RANK)


def period_end(time: Column, size_ms: int, shift_ms: int) -> Column:
    size, shift = F.lit(size_ms * 1000), F.lit(shift_ms * 1000)
    micros = F.unix_micros(time.cast("timestamp")) + shift
    return F.timestamp_micros(micros - F.pmod(micros, size) + size - shift)


def keyed_state(
    frame: DataFrame, operation: KeyedState, mode: OutputMode, directory: str, time: str | None
) -> DataFrame:
    """The rows that a processor makes of those of each key; `time` is the event time of the rows."""
    processor = load_reference(operation.processor, directory)
    made: Any = processor() if operation.timeout is None else processor(operation.timeout.milliseconds)
    columns = operation.columns
    schema: Any = made.output_schema if columns is None else ", ".join(each.ddl for each in columns)
    clock = "ProcessingTime" if operation.clock is StateClock.PROCESSING else "EventTime"
    rows = with_one_event_time(frame, time)
    if operation.order is StateOrder.ARRIVAL and not frame.isStreaming and has_origin(frame):
        placed = rows.withColumn(PLACE, F.monotonically_increasing_id())
        rows = in_order(placed, operation.key, [*record_order(placed), F.col(PLACE)]).drop(PLACE)
    keyed = without_internal(rows).groupBy(*map(column, operation.key))
    return keyed.transformWithState(made, schema, "Append" if mode is OutputMode.APPEND else "Update", clock)


def sorts_batches(session: SparkSession) -> bool:
    """Whether an exchange may divide the rows of a key, and the query that is compiled may sort its batches."""
    is_divided = int(session.conf.get(SHUFFLE_PARTITIONS) or "1") > 1
    return is_divided and session.conf.get(SORTING, "true") == "true"


def in_order(frame: DataFrame, key: Iterable[str], order: Sequence[Column]) -> DataFrame:
    """The rows of each key of a batch in this order, also behind the next exchange.

    An exchange keeps the order of the rows of one task: those of a key must be in one."""
    return frame.repartition(*map(column, key)).sortWithinPartitions(*order)


def record_order(frame: DataFrame) -> list[Column]:
    return [F.col(f"{ORIGIN}.{name}") for name in ("offset", "partition", "topic")] if has_origin(frame) else []
