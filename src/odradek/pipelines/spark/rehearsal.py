"""Runs a pipeline over given rows: computes the output with production's functions, and writes nothing.

It runs as a batch: watermarks drop nothing, every window is complete, and timers of keyed state do not fire.
"""

from __future__ import annotations

import functools
import json
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from odradek.pipelines.definition.graph import build_graph, used_names
from odradek.pipelines.definition.model import FileOrigin, TableTarget, TopicTarget
from odradek.pipelines.spark.compiling import Tables
from odradek.pipelines.spark.dead_letters import dead_letters
from odradek.pipelines.spark.expectations import Violations, has_quarantine, quarantined, violation_counts
from odradek.pipelines.spark.failures import PipelineError
from odradek.pipelines.spark.functions import register_functions
from odradek.pipelines.spark.hidden_columns import quoted, without_hidden
from odradek.pipelines.spark.records import rejects_of
from odradek.pipelines.spark.sinks.batches import shown, table_rows, view_rows
from odradek.pipelines.spark.sinks.topics import JSON_OPTIONS, records_of
from odradek.pipelines.spark.sources import is_topic, read_once

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

    from odradek.pipelines.definition.model import Pipeline, Sink, Source, View

RECORD_DDL = (
    "key BINARY, value BINARY, topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP, "
    "headers ARRAY<STRUCT<key: STRING, value: BINARY>>"
)


class NothingGiven(PipelineError):
    """A source for which the test must give rows."""


class Rehearsal:
    """One run over given rows: `records` of topics, and `rows` (JSON objects) of other sources and of steps."""

    def __init__(
        self,
        session: SparkSession,
        pipeline: Pipeline,
        records: Mapping[str, Sequence[tuple[Any, ...]]],
        rows: Mapping[str, Sequence[Mapping[str, Any]]],
    ) -> None:
        self._session = session
        self._pipeline = pipeline
        self._records = records
        self._rows = rows
        self._graph = build_graph(pipeline)
        register_functions(session, pipeline)
        used = used_names(pipeline, self._graph)
        self._judged = [each for each in pipeline.steps if each.expectations and each.name in used]
        self._tables = Tables(session, pipeline, self._graph, self._load)
        for step in pipeline.steps:
            if step.name in rows:
                self._tables.give_rows_before_expectations(
                    step.name, self._frame(rows[step.name], self._own_schema(step.name).toDDL())
                )

    def step_columns(self, name: str) -> list[str]:
        return self._own_schema(name).names

    def _own_schema(self, name: str) -> StructType:
        """The columns that a step computes, ignoring rows given for it."""
        tables = Tables(self._session, self._pipeline, self._graph, self._load)
        return without_hidden(tables.rows_before_expectations(name)).schema

    def step_rows(self, name: str) -> list[dict[str, Any]]:
        """The rows of a step, including the record's own columns if the step has them."""
        return as_objects(without_hidden(self._tables.rows(name)))

    def view_rows(self, view: View) -> list[dict[str, Any]]:
        return as_objects(view_rows(self._tables.rows(view.input), view, is_aggregated=False))

    def sink_rows(self, sink: Sink) -> list[dict[str, Any]]:
        """The rows of a sink that is not a topic."""
        frame, target = self._tables.rows(sink.input), sink.target
        return as_objects(table_rows(frame, target) if isinstance(target, TableTarget) else shown(frame))

    def sink_records(self, sink: Sink, target: TopicTarget) -> list[dict[str, Any]]:
        return collected(records_of(self._tables.rows(sink.input), sink, target, self._pipeline))

    def dead_letters(self) -> list[dict[str, Any]]:
        name, topic = self._pipeline.name, self._pipeline.dead_letters or ""
        frames = [
            dead_letters(rejects_of(self._tables.decoded(source.name), source), name, source.name, topic)
            for source in self._pipeline.sources
            if is_topic(source)
        ]
        for step in self._judged:
            if has_quarantine(step.expectations):
                refused = quarantined(self._tables.judged(step.name), step.expectations)
                frames.append(dead_letters(refused, name, step.name, topic))
        return collected(functools.reduce(DataFrame.unionByName, frames)) if frames else []

    def violations(self) -> tuple[Violations, ...]:
        """The violations of every expectation, computed in one job."""
        parts = [
            self._tables.judged(step.name)
            .agg(F.array(*violation_counts(step.name, step.expectations)).alias("counts"))
            .select(F.lit(step.name).alias("name"), "counts")
            for step in self._judged
        ]
        if not parts:
            return ()
        found = {row["name"]: row["counts"] for row in functools.reduce(DataFrame.unionAll, parts).collect()}
        return tuple(
            Violations(step.name, each.name, each.otherwise, found[step.name][number])
            for step in self._judged
            for number, each in enumerate(step.expectations)
        )

    def _load(self, source: Source) -> DataFrame:
        if is_topic(source):
            return self._session.createDataFrame(self._records.get(source.name, []), RECORD_DDL).coalesce(1)
        schema = source.format.schema
        if source.name in self._rows and schema is not None:
            return self._frame(self._rows[source.name], schema.ddl)
        if self._rows.get(source.name):
            return self._frame(self._rows[source.name], self._inferred(self._rows[source.name]))
        if isinstance(source.origin, FileOrigin) and not source.is_stream:
            return read_once(self._session, source, self._pipeline, lambda _topic, _origin: 0)
        if schema is not None:
            return self._frame([], schema.ddl)
        raise NothingGiven(
            f"{source.place}: source '{source.name}' has no schema; give it at least one row, or declare its columns"
        )

    def _frame(self, rows: Sequence[Mapping[str, Any]], ddl: str) -> DataFrame:
        texts = self._session.createDataFrame([(json.dumps(row),) for row in rows], "text STRING").coalesce(1)
        return texts.select(F.from_json("text", ddl, {"mode": "FAILFAST"}).alias("row")).select("row.*")

    def _inferred(self, rows: Sequence[Mapping[str, Any]]) -> str:
        schema = self._session.range(1).select(F.schema_of_json(F.lit(json.dumps(list(rows))))).collect()[0][0]
        return str(schema).removeprefix("ARRAY<").removesuffix(">")


def as_objects(frame: DataFrame) -> list[dict[str, Any]]:
    """Rows as JSON objects: timestamps as text, structs as mappings."""
    text = F.to_json(F.struct(*(F.col(name) for name in map(quoted, frame.columns))), JSON_OPTIONS)
    return [json.loads(row[0]) for row in frame.select(text).collect()]


def collected(frame: DataFrame) -> list[dict[str, Any]]:
    """The records of a frame, with keys and values as bytes."""
    return [row.asDict(recursive=True) for row in frame.collect()]
