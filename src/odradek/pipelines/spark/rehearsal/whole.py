"""The given rows of all micro-batches as one batch: the columns of steps, and rows that no streaming query writes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F  # noqa: N812 - its usual name

from odradek.pipelines.definition.ddl import parse_ddl
from odradek.pipelines.definition.model import FileOrigin, TopicOrigin
from odradek.pipelines.spark.computing.frames import quoted, shows_records, visible_names, without_internal
from odradek.pipelines.spark.computing.tables import Tables
from odradek.pipelines.spark.functions import register_functions
from odradek.pipelines.spark.reading.record_files import RECORD_DDL, RECORD_SCHEMA
from odradek.pipelines.spark.reading.sources import read_once
from odradek.pipelines.spark.sessions.failures import PipelineError
from odradek.pipelines.spark.writing.stored_values import JSON_OPTIONS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from odradek.pipelines.definition.column_types import Column
    from odradek.pipelines.definition.model import Source
    from odradek.pipelines.planning.plan import Plan


class NothingGiven(PipelineError):
    """A source for which the test must give rows."""


class WholeInput:
    """Rows by the name of their source, or of the step whose rows they replace; records are dictionaries of columns."""

    def __init__(self, session: SparkSession, plan: Plan, rows: Mapping[str, Sequence[Any]]) -> None:
        self._session, self._plan, self._rows = session, plan, rows
        register_functions(session, plan.pipeline)
        self._tables = Tables(session, plan, self._load)
        for step in plan.pipeline.steps:
            if step.name in rows:
                ddl = ", ".join(each.ddl for each in self.computed_columns(step.name))
                self._tables.give_before_checks(step.name, self._frame(rows[step.name], ddl))

    def computed_columns(self, step: str) -> tuple[Column, ...]:
        """The columns that a step computes, ignoring rows given for it."""
        computed = Tables(self._session, self._plan, self._load).before_checks(step)
        return parse_ddl(without_internal(computed).schema.toDDL())

    def columns(self, name: str) -> list[str]:
        return without_internal(self._tables.rows(name)).columns

    def written_schema(self, name: str) -> StructType:
        """The columns of a sink of files."""
        frame = self._tables.rows(name)
        names = visible_names(frame.columns, shows_records=shows_records(frame))
        return frame.select(*map(quoted, names)).schema

    def rows(self, name: str) -> list[dict[str, Any]]:
        """The rows of a step, including the record's own columns if the step has them."""
        return as_objects(without_internal(self._tables.rows(name)))

    def _load(self, source: Source) -> DataFrame:
        rows, schema = self._rows.get(source.name, ()), source.format.schema
        if isinstance(source.origin, TopicOrigin):
            records = [tuple(row[name] for name in RECORD_SCHEMA.names) for row in rows]
            return self._session.createDataFrame(records, RECORD_DDL).coalesce(1)
        if schema is not None and source.name in self._rows:
            return self._frame(rows, schema.ddl)
        if rows:
            return self._frame(rows, self._inferred(rows))
        if isinstance(source.origin, FileOrigin) and not source.is_stream:
            return read_once(self._session, source, self._plan.pipeline, lambda _topic, _origin: 0)
        if schema is None:
            raise nothing_given(source)
        return self._frame([], schema.ddl)

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
