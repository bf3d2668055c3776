"""Analyses Python steps before a stream starts: each function is applied to a stream, and its plan shows its state."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - its usual name

from odradek.pipelines.definition.graph import build_graph
from odradek.pipelines.definition.operations import PythonFunction
from odradek.pipelines.definition.places import Problems
from odradek.pipelines.planning.arrival import check_deduplications
from odradek.pipelines.planning.end_checks import check_ends
from odradek.pipelines.planning.streams import Streams, streaming_names
from odradek.pipelines.spark.compiling import Tables, errors_naming
from odradek.pipelines.spark.event_time import WATERMARK_DELAY
from odradek.pipelines.spark.functions import register_functions
from odradek.pipelines.spark.join_plans import early_removal
from odradek.pipelines.spark.plan_determinism import random_part, reads_clock
from odradek.pipelines.spark.reading.sources import is_topic, read_source
from odradek.pipelines.spark.sessions.private_names import LOG
from odradek.pipelines.spark.stateful_plans import (
    aggregates,
    joins_streams_outer,
    keeps_state,
    mixes_rows,
    removes_groups,
    removes_rows,
    unites_static_rows,
)
from odradek.pipelines.spark.steps import StepBroken, call_function

if TYPE_CHECKING:
    from collections.abc import Collection

    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructField

    from odradek.pipelines.definition.model import Pipeline, Source, Step

RECORD_TYPES = {
    "key": "binary",
    "value": "binary",
    "topic": "string",
    "partition": "int",
    "offset": "bigint",
    "timestamp": "timestamp",
    "timestampType": "int",
    "headers": "array<struct<key: string, value: binary>>",
}


def with_analysed_functions(session: SparkSession, pipeline: Pipeline) -> Pipeline:
    """The pipeline with `keeps_state` of every function that reads a stream; StepBroken if one cannot read a stream.

    Registers the functions of SQL first, which steps may call."""
    register_functions(session, pipeline)
    graph = build_graph(pipeline)
    streaming = streaming_names(pipeline, graph)
    if not any(is_unknown(each) and each.name in streaming for each in pipeline.steps):
        return pipeline

    def load(source: Source) -> DataFrame:
        if is_topic(source):
            return empty_topic(session, is_stream=source.is_stream)
        return read_source(session, source, pipeline, lambda _topic, _origin: 1)

    tables = Tables(session, pipeline, graph, load)
    steps = tuple(
        analysed(each, tables, streaming, pipeline.directory) if is_unknown(each) and each.name in streaming else each
        for each in pipeline.steps
    )
    known = replace(pipeline, steps=steps)
    problems, streams = Problems(), Streams.with_types(known, graph)
    check_deduplications(known, graph, streams, problems)
    check_ends(known, graph, streams, problems)
    if problems.errors:
        raise StepBroken("; ".join(map(str, problems)))
    return known


def is_unknown(step: Step) -> bool:
    return isinstance(step.operation, PythonFunction) and step.operation.keeps_state is None


def analysed(step: Step, tables: Tables, streaming: Collection[str], directory: str) -> Step:
    """The step with the state of its own plan, over streams without state that have the columns of its inputs."""
    operation = step.operation
    assert isinstance(operation, PythonFunction)
    rows = {name: tables.rows(name) for name in operation.inputs}
    inputs = {name: stand_in(frame) if name in streaming else frame for name, frame in rows.items()}
    try:
        with errors_naming(step):
            frame = call_function(step, operation, inputs, directory)
    except StepBroken as error:
        raise StepBroken(f"{error}{hint_for(error)}") from error
    refuse_random(step, frame)
    refuse_outer_join(step, frame)
    refuse_early_removal(step, frame)
    refuse_static_union(step, frame)
    is_stateful = keeps_state(frame)
    known = replace(
        operation,
        keeps_state=is_stateful,
        updates_rows=is_stateful and aggregates(frame),
        removes_rows=removes_rows(frame),
        removes_groups=removes_groups(frame),
        mixes_rows=mixes_rows(frame),
    )
    return replace(step, operation=known)


def refuse_random(step: Step, frame: DataFrame) -> None:
    """Refuses what `validate` refuses in SQL: values that differ between batches, sinks and replays."""
    found = random_part(frame)
    if found is not None:
        raise StepBroken(
            f"{step.place}: step '{step.name}' uses {found}, whose value differs between batches, sinks and replays; "
            "compute it from the row, for example with xxhash64 of its key"
        )
    if reads_clock(frame):
        LOG.warning(
            "%s: step '%s' reads the clock: the value depends on when a row is processed, and differs between sinks "
            "and after a replay; use the time of the record, _timestamp, or a column of event time",
            step.place, step.name,
        )  # fmt: skip


def refuse_outer_join(step: Step, frame: DataFrame) -> None:
    """Refuses an outer join of streams: Spark never writes its rows without event time."""
    if joins_streams_outer(frame):
        raise StepBroken(
            f"{step.place}: step '{step.name}' has an outer join of streams, of which Spark never writes rows whose "
            "event time is null; use join: {stream: …, how: …} or SQL"
        )


def refuse_early_removal(step: Step, frame: DataFrame) -> None:
    """Refuses an inner join of streams that compares event time with a column that is none."""
    found = early_removal(frame)
    if found is not None:
        time, column = found
        raise StepBroken(
            f"{step.place}: step '{step.name}' joins streams and compares the event time {time} with {column}, which "
            "is none: Spark would remove rows before all that match have arrived; compare with "
            f"{time} + INTERVAL 0 SECONDS, and bound the event times of both streams"
        )


def refuse_static_union(step: Step, frame: DataFrame) -> None:
    """Refuses a union of the stream with a static table."""
    if unites_static_rows(frame):
        raise StepBroken(
            f"{step.place}: step '{step.name}' unites a stream with rows of a static table, which every batch would "
            "have again; join with the table, or write its rows once with a pipeline of engine: batch"
        )


def stand_in(frame: DataFrame) -> DataFrame:
    """A stream with the columns and the event time of another frame, which is analysed and never run."""
    rows = frame.sparkSession.readStream.format("rate").load()
    return rows.select(*map(empty_column, frame.schema.fields))


def empty_column(field: StructField) -> Column:
    marks = {key: value for key, value in field.metadata.items() if key == WATERMARK_DELAY}
    return F.lit(None).cast(field.dataType).alias(field.name, **({"metadata": marks} if marks else {}))


def hint_for(error: StepBroken) -> str:
    if "streaming sources must be executed" not in str(error):
        return ""
    return (
        "; a Python step is applied to the stream once, when the query starts: use transformations such as where, "
        "select and groupBy, and no actions such as count(), collect() or toPandas() of a whole frame"
    )


def empty_topic(session: SparkSession, *, is_stream: bool) -> DataFrame:
    """A frame with the columns of a topic, which is analysed and never run."""
    rows = session.readStream.format("rate").load() if is_stream else session.range(0)
    return rows.select(*(F.lit(None).cast(kind).alias(name) for name, kind in RECORD_TYPES.items()))
