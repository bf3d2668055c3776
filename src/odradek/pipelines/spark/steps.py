"""Steps as functions of DataFrames, the same for streams and batches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from odradek.pipelines.definition.operations import (
    Aggregation,
    Deduplication,
    Join,
    KeyedState,
    PythonFunction,
    Sql,
    StreamJoin,
)
from odradek.pipelines.definition.vocabulary import SinkMode, StateClock
from odradek.pipelines.operating.backoff import Healing
from odradek.pipelines.planning.state import State, state_of
from odradek.pipelines.spark.deduplication import deduplicate
from odradek.pipelines.spark.event_time import with_filter_barrier
from odradek.pipelines.spark.hidden_columns import quoted, without_hidden
from odradek.pipelines.spark.key_values import with_one_zero
from odradek.pipelines.spark.row_order import in_order_of_records
from odradek.pipelines.spark.session_plans import selects_sessions, uses_sessions
from odradek.pipelines.spark.sessions.failures import PipelineError
from odradek.pipelines.spark.sessions.user_code import load_reference
from odradek.pipelines.spark.steps_sql import run_query
from odradek.pipelines.spark.stream_joins import join_streams

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from pyspark.sql import Column, SparkSession

    from odradek.pipelines.definition.model import Step, Watermark
    from odradek.pipelines.definition.operations import Window


ABOVE_STATE = State.AGGREGATION | State.STREAM_JOIN  # what a barrier is set above in streams


class StepBroken(PipelineError):
    """A step failed because of its definition or its code."""

    healing = Healing.NEVER


def run_step(
    session: SparkSession,
    step: Step,
    tables: Mapping[str, DataFrame],
    mode: SinkMode,
    directory: str,
    event_times: Sequence[str] = (),
    static: Collection[str] = (),
) -> DataFrame:
    """The rows of a step before its expectations. `tables` has its inputs; `mode` is used by keyed state only.

    `event_times` are the columns that `within` compares: of a deduplication's input, or of both sides of a join.
    `static` are the inputs that a stream is joined with."""
    operation = step.operation
    if isinstance(operation, Sql):
        frame = run_query(session, operation.text, tables, static)
    elif isinstance(operation, PythonFunction):
        frame = call_function(step, operation, tables, directory)
    elif isinstance(operation, Aggregation):
        frame = aggregate(tables[operation.input], operation)
    elif isinstance(operation, Deduplication):
        frame = deduplicate(tables[operation.input], operation, event_times[0] if event_times else None)
    elif isinstance(operation, StreamJoin):
        frame = join_streams(tables[operation.input], tables[operation.stream], operation, *event_times)
    elif isinstance(operation, Join):
        frame = join(tables[operation.input], tables[operation.table], operation)
    else:
        frame = keep_state(tables[operation.input], operation, mode, directory)
    return watermarked(with_state_barrier(frame, step, tables), step.watermark)


def with_state_barrier(frame: DataFrame, step: Step, tables: Mapping[str, DataFrame]) -> DataFrame:
    """The rows of a step that are behind a filter barrier if the step has state which filters must not pass.

    In a stream, a filter below the state would hide late rows from its count; steps in batches are behind it in any
    case, so that all sinks have the same count. In every engine, Spark would apply filters and sums of sessions to
    their rows, before they are merged."""
    if frame.isStreaming:
        streaming, kinds = [name for name, each in tables.items() if each.isStreaming], ABOVE_STATE
    else:
        streaming, kinds = list(tables), State.SESSIONS
    is_above = bool(state_of(step, {step.name, *streaming}) & kinds)
    if isinstance(step.operation, PythonFunction):
        is_above = is_above or selects_sessions(frame)
    return with_filter_barrier(frame) if is_above else frame


def watermarked(frame: DataFrame, watermark: Watermark | None) -> DataFrame:
    if watermark is None or not frame.isStreaming:
        return frame
    return with_filter_barrier(frame.withWatermark(quoted(watermark.column), watermark.delay.spark))


def call_function(step: Step, operation: PythonFunction, tables: Mapping[str, DataFrame], directory: str) -> DataFrame:
    function = load_reference(operation.function, directory)
    result = function(*(without_hidden(tables[name]) for name in operation.inputs))
    if not isinstance(result, DataFrame):
        raise StepBroken(f"{step.place}: {operation.function} returned {type(result).__name__} instead of a DataFrame")
    if uses_sessions(result):
        raise StepBroken(
            f"{step.place}: step '{step.name}' filters, joins or groups sessions in the function that makes them, and "
            "Spark would do so with their rows, before they are merged; return the sessions, and filter, join or group "
            "them in a step behind it"
        )
    return result


def aggregate(frame: DataFrame, operation: Aggregation) -> DataFrame:
    frame = without_hidden(frame)
    by = [F.col(quoted(name)) for name in operation.by]
    aggregates = [F.expr(each.expression).alias(each.name) for each in operation.aggregates]
    window = operation.window
    if window is None:
        return frame.groupBy(*by).agg(*aggregates)
    grouped = frame.groupBy(span_of(window).alias("__window"), *by).agg(*aggregates)
    edges = [F.col("__window.start").alias("window_start"), F.col("__window.end").alias("window_end")]
    names = [*operation.by, *(each.name for each in operation.aggregates)]
    return grouped.select(*edges, *(F.col(quoted(name)) for name in names))


def span_of(window: Window) -> Column:
    time = F.col(quoted(window.column))
    if window.gap is not None:
        return F.session_window(time, window.gap.spark)
    assert window.size is not None
    return F.window(time, window.size.spark, None if window.slide is None else window.slide.spark)


def join(frame: DataFrame, table: DataFrame, operation: Join) -> DataFrame:
    kinds = {"semi": "left_semi", "anti": "left_anti"}
    taken = {name.lower() for name in frame.columns} - {name.lower() for name in operation.on}
    joined = without_hidden(table)
    joined = joined.drop(*(name for name in joined.columns if name.lower() in taken))
    return frame.join(joined, list(operation.on), kinds.get(str(operation.how), str(operation.how)))


def keep_state(frame: DataFrame, operation: KeyedState, mode: SinkMode, directory: str) -> DataFrame:
    processor = load_reference(operation.processor, directory)
    made: Any = processor() if operation.timeout is None else processor(operation.timeout.milliseconds)
    if operation.columns is not None:
        schema: Any = ", ".join(each.ddl for each in operation.columns)
    else:
        schema = made.output_schema
    time_mode = "ProcessingTime" if operation.clock is StateClock.PROCESSING else "EventTime"
    output_mode = "Append" if mode is SinkMode.APPEND else "Update"
    keyed = with_one_zero(frame, operation.key)
    ordered = without_hidden(in_order_of_records(keyed, operation.key))
    rows = ordered.groupBy(*(F.col(quoted(name)) for name in operation.key))
    return rows.transformWithState(made, schema, output_mode, time_mode)
