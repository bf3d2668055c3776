"""The rows of a table from those of its inputs, the same for streams and batches."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from odradek.pipelines.definition.operations import (
    Aggregation,
    Deduplication,
    KeyedState,
    PythonFunction,
    StreamJoin,
)
from odradek.pipelines.planning.plan import GroupSql, PairSql, RowSql, StaticSql, UnionSql
from odradek.pipelines.spark.computing.groups import aggregated, grouped
from odradek.pipelines.spark.computing.keyed_rows import deduplicated, keyed_state
from odradek.pipelines.spark.computing.sql_steps import row_by_row, run_text, united
from odradek.pipelines.spark.computing.stream_joins import Match, join_streams, pairs_of
from odradek.pipelines.spark.frames import without_internal
from odradek.pipelines.spark.sessions.failures import (
    PipelineError,
    is_from_java,
    message_with_location,
    plain_message,
)
from odradek.pipelines.spark.sessions.user_code import load_reference

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import SparkSession

    from odradek.pipelines.planning.plan import OutputMode, Plan, Table


@contextmanager
def naming(table: Table) -> Iterator[None]:
    """Adds the declaration and its place to errors of Spark and of user code."""
    try:
        yield
    except PipelineError:
        raise
    except Exception as error:
        is_of_spark = isinstance(error, PySparkException) or is_from_java(error)
        words = plain_message(error) if is_of_spark else message_with_location(error)
        raise PipelineError(f"{table.place()}: {table.described}: {words}") from error


def frame_of(
    session: SparkSession, plan: Plan, table: Table, inputs: Mapping[str, DataFrame], mode: OutputMode
) -> DataFrame:
    """The rows of a table before its checks; `inputs` has those of the tables that it reads, by name."""
    made = table.made_by
    times = {name: plan.path(name).event_time for name in table.inputs}
    match made:
        case RowSql():
            return row_by_row(made, inputs)
        case UnionSql(parts):
            return united([inputs[each] for each in parts])
        case GroupSql(query):
            (stream,) = (each.table for each in query.tables)
            return grouped(query, inputs, plan.path(stream).event_time, table.path.event_time)
        case PairSql(_, pairs):
            left, right = pairs.left.table, pairs.right.table
            sides = (plan.path(left).event_time, plan.path(right).event_time)
            return pairs_of(inputs[plan.table(left).name], inputs[plan.table(right).name], Match.of_pairs(pairs), sides)
        case StaticSql(part):
            frames = {name: without_internal(each) for name, each in inputs.items()}
            return run_text(session, part.text, part.renamed, frames)
        case PythonFunction():
            return called(plan, table, made, inputs)
    first, *others = table.inputs
    frame, time = inputs[first], times[first]
    match made:
        case Aggregation():
            return aggregated(frame, made, time)
        case Deduplication():
            return deduplicated(frame, made, time)
        case KeyedState():
            return keyed_state(frame, made, mode, plan.pipeline.directory, time)
        case StreamJoin():
            other = others[0] if others else first
            return join_streams(frame, inputs[other], made, (time, times[other]))
    raise PipelineError(f"{table.place()}: {table.described} cannot be computed")


def called(plan: Plan, table: Table, operation: PythonFunction, inputs: Mapping[str, DataFrame]) -> DataFrame:
    function = load_reference(operation.function, plan.pipeline.directory)
    result = function(*(without_internal(inputs[plan.table(name).name]) for name in operation.inputs))
    if not isinstance(result, DataFrame):
        kind = type(result).__name__
        raise PipelineError(f"{table.place()}: {operation.function} returned {kind} instead of a DataFrame")
    return result
