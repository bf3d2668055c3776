"""Reads what a rehearsal wrote: records, files and tables."""

from __future__ import annotations

import base64
import datetime
import decimal
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from odradek.pipelines.definition.model import FilesTarget, TableTarget, TopicTarget
from odradek.pipelines.letters.letter import ID_HEADER
from odradek.pipelines.spark.frames import column
from odradek.pipelines.spark.reading.record_files import written_records
from odradek.pipelines.spark.writing.databases import database_url, reading
from odradek.pipelines.spark.writing.stored_values import JSON_OPTIONS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from odradek.pipelines.definition.model import Pipeline, Sink


class Results:
    """The outputs of a pipeline whose ends are in `folder`, as of now."""

    def __init__(self, session: SparkSession, pipeline: Pipeline, folder: Path) -> None:
        self._session = session
        self._pipeline = pipeline
        self._records = written_records(folder)

    def dead_letters(self) -> list[dict[str, Any]]:
        sinks = [each for each in self._pipeline.sinks if topic_of(each) == self._pipeline.dead_letters]
        written = {f"{self._pipeline.name}/{each.name}" for each in sinks}
        return [
            each
            for each in self._records
            if each["topic"] == self._pipeline.dead_letters and id_of(each).partition(":")[0] not in written
        ]

    def records(self, sink: Sink) -> list[dict[str, Any]]:
        """The records of a topic sink. A step of the same name may have written dead letters, to another topic."""
        prefix = f"{self._pipeline.name}/{sink.name}:"
        return [each for each in self._records if id_of(each).startswith(prefix) and each["topic"] == topic_of(sink)]

    def rows(self, sink: Sink) -> list[dict[str, Any]]:
        target = sink.target
        if isinstance(target, TableTarget):
            return self.table(target.table, target.url)
        if not isinstance(target, FilesTarget):
            return [json.loads(each["value"]) for each in self.records(sink)]
        if not list(Path(target.path).glob("*.parquet")):
            return []
        rows = self._session.read.parquet(target.path)
        text = F.to_json(F.struct(*map(column, rows.columns)), JSON_OPTIONS)
        return [json.loads(row[0]) for row in rows.select(text).collect()]

    def table(self, name: str, url: str | None = None) -> list[dict[str, Any]]:
        with reading(database_url(self._pipeline, url)) as connection:
            if not sa.inspect(connection).has_table(name):
                return []
            table = sa.Table(name, sa.MetaData(), autoload_with=connection)
            rows = connection.execute(sa.select(table)).mappings()
            return [{name: as_json(value) for name, value in row.items()} for row in rows]


def topic_of(sink: Sink) -> str | None:
    return sink.target.topic if isinstance(sink.target, TopicTarget) else None


def id_of(record: dict[str, Any]) -> str:
    return next((text_of(each["value"]) or "" for each in record["headers"] if each["key"] == ID_HEADER), "")


def as_json(value: Any) -> Any:
    """A value of a database as Spark writes it to JSON; timestamps in a warehouse are UTC."""
    if isinstance(value, datetime.datetime):
        return f"{value.isoformat()}Z"
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, decimal.Decimal):
        return float(value)
    return base64.b64encode(value).decode() if isinstance(value, bytes) else value


def text_of(value: bytes | bytearray | None) -> str | None:
    """Bytes as text, with escapes for bytes that are not UTF-8."""
    return None if value is None else bytes(value).decode(errors="backslashreplace")
