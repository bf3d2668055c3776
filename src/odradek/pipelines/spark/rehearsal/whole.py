"""The given rows of all micro-batches as one batch: the columns of steps, and rows that no streaming query writes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F  # noqa: N812 - its usual name

from odradek.pipelines.definition.graph import build_graph
from odradek.pipelines.definition.model import FileOrigin
from odradek.pipelines.spark.compiling import Tables
from odradek.pipelines.spark.functions import register_functions
from odradek.pipelines.spark.hidden_columns import quoted, without_hidden
from odradek.pipelines.spark.reading.record_files import RECORD_DDL, RECORD_SCHEMA
from odradek.pipelines.spark.reading.sources import is_topic, read_once
from odradek.pipelines.spark.sessions.failures import PipelineError
from odradek.pipelines.spark.sinks.batches import shown
from odradek.pipelines.spark.sinks.topics import JSON_OPTIONS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from odradek.pipelines.definition.model import Pipeline, Source


class NothingGiven(PipelineError):
    """A source for which the test must give rows."""


class WholeInput:
    """Rows by the name of their source, or of the step whose rows they replace; records are dictionaries of columns."""

    def __init__(self, session: SparkSession, pipeline: Pipeline, rows: Mapping[str, Sequence[Any]]) -> None:
        self._session = session
        self._pipeline = pipeline
        self._rows = rows
        self._graph = build_graph(pipeline)
        register_functions(session, pipeline)
        self._tables = Tables(session, pipeline, self._graph, self._load)
        for step in pipeline.steps:
            if step.name in rows:
                given = self._frame(rows[step.name], self.computed_schema(step.name).toDDL())
                self._tables.give_rows_before_expectations(step.name, given)

    def computed_schema(self, step: str) -> StructType:
        """The columns that a step computes, ignoring rows given for it."""
        tables = Tables(self._session, self._pipeline, self._graph, self._load)
        return without_hidden(tables.rows_before_expectations(step)).schema

    def columns(self, name: str) -> list[str]:
        return without_hidden(self._tables.rows(name)).columns

    def written_schema(self, name: str) -> StructType:
        """The columns of a sink of files."""
        return shown(self._tables.rows(name)).schema

    def rows(self, name: str) -> list[dict[str, Any]]:
        """The rows of a step, including the record's own columns if the step has them."""
        return as_objects(without_hidden(self._tables.rows(name)))

    def _load(self, source: Source) -> DataFrame:
        rows = self._rows.get(source.name, ())
        if is_topic(source):
            records = [tuple(row[name] for name in RECORD_SCHEMA.names) for row in rows]
            return self._session.createDataFrame(records, RECORD_DDL).coalesce(1)
        schema = source.format.schema
        if source.name in self._rows and schema is not None:
            return self._frame(rows, schema.ddl)
        if rows:
            return self._frame(rows, self._inferred(rows))
        if isinstance(source.origin, FileOrigin) and not source.is_stream:
            return read_once(self._session, source, self._pipeline, lambda _topic, _origin: 0)
        if schema is not None:
            return self._frame([], schema.ddl)
        raise nothing_given(source)

    def _frame(self, rows: Sequence[Mapping[str, Any]], ddl: str) -> DataFrame:
        texts = self._session.createDataFrame([(json.dumps(row),) for row in rows], "text STRING").coalesce(1)
        return texts.select(F.from_json("text", ddl, {"mode": "FAILFAST"}).alias("row")).select("row.*")

    def _inferred(self, rows: Sequence[Mapping[str, Any]]) -> str:
        schema = self._session.range(1).select(F.schema_of_json(F.lit(json.dumps(list(rows))))).collect()[0][0]
        return str(schema).removeprefix("ARRAY<").removesuffix(">")


def nothing_given(source: Source) -> NothingGiven:
    return NothingGiven(
        f"{source.place}: source '{source.name}' has no schema; give it at least one row, or declare its columns"
    )


def as_objects(frame: DataFrame) -> list[dict[str, Any]]:
    """Rows as JSON objects: timestamps as text, structs as mappings."""
    text = F.to_json(F.struct(*(F.col(name) for name in map(quoted, frame.columns))), JSON_OPTIONS)
    return [json.loads(row[0]) for row in frame.select(text).collect()]
