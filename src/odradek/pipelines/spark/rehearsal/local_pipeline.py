"""The pipeline of a rehearsal: its ends are files in one folder, and the steps between them are unchanged. `Results`
reads what was written there: records, files and tables."""

from __future__ import annotations

import base64
import datetime
import decimal
import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from odradek.pipelines.definition.model import (
    FileOrigin,
    FilesTarget,
    LakehouseTarget,
    Sink,
    Source,
    TableTarget,
    TopicOrigin,
    TopicTarget,
)
from odradek.pipelines.definition.vocabulary import Delivery, Engine, FileFormat
from odradek.pipelines.letters.letter import ID_HEADER
from odradek.pipelines.spark.frames import column
from odradek.pipelines.spark.reading.record_files import ONE_FILE_PER_BATCH, SCHEME, source_folder, written_records
from odradek.pipelines.spark.writing.databases import database_url, reading
from odradek.pipelines.spark.writing.stored_values import JSON_OPTIONS
from odradek.pipelines.spark.writing.topics import Cluster

if TYPE_CHECKING:
    from collections.abc import Collection

    from pyspark.sql import SparkSession

    from odradek.pipelines.definition.model import Pipeline, Sink
    from odradek.pipelines.planning.plan import Plan

FAIL_ON_WRONG_VALUES = {"mode": "FAILFAST"}


class FolderCluster(Cluster):
    """A cluster without brokers: nothing is looked up or created."""

    def __init__(self, folder: Path) -> None:
        self.bootstrap_servers = f"{SCHEME}{folder}"
        self.partitions: dict[str, int] = {}
        self.id: str | None = None

    def create_awaited(self) -> None:
        """Files need no topics."""

    def partitions_of(self, topic: str, origin: TopicOrigin | None = None) -> int:  # noqa: ARG002 - as declared
        return 1


def with_local_ends(pipeline: Pipeline, folder: Path, given: Collection[str] = ()) -> Pipeline:
    """The pipeline on the files below `folder`. Sources in `given` and all streams read files that are fed."""
    engine = Engine.BATCH if pipeline.engine is Engine.BATCH else Engine.STANDARD
    return replace(
        pipeline,
        sources=tuple(local_source(each, folder, each.name in given) for each in pipeline.sources),
        sinks=tuple(local_sink(each, folder) for each in pipeline.sinks),
        engine=engine,
        delivery=Delivery.AT_LEAST_ONCE,
        bootstrap_servers=f"{SCHEME}{folder}",
        warehouse=database_in(folder, "warehouse"),
        checkpoints=str(folder / "checkpoints"),
    )


def local_source(source: Source, folder: Path, is_given: bool) -> Source:
    origin = source.origin
    if isinstance(origin, TopicOrigin):
        return replace(source, origin=replace(origin, bootstrap_servers=None, max_records_per_batch=None))
    if not is_given and not source.is_stream:
        return source
    options = {**FAIL_ON_WRONG_VALUES, **(ONE_FILE_PER_BATCH if source.is_stream else {})}
    return replace(source, origin=FileOrigin(str(source_folder(folder, source.name)), FileFormat.JSON, options))


def local_sink(sink: Sink, folder: Path) -> Sink:
    target = sink.target
    if isinstance(target, TopicTarget):
        return replace(sink, target=replace(target, bootstrap_servers=None, kafka={}))
    if isinstance(target, FilesTarget):
        path = str(folder / "files" / sink.name)
        return replace(sink, target=FilesTarget(path, FileFormat.PARQUET))
    if isinstance(target, TableTarget):
        url = None if target.url is None else database_in(folder, hashlib.sha256(target.url.encode()).hexdigest()[:16])
        return replace(sink, target=replace(target, url=url))
    if isinstance(target, LakehouseTarget):
        return replace(sink, target=TableTarget(f"lakehouse {sink.name}", target.key))
    return replace(sink, target=TopicTarget(sink.name))


def database_in(folder: Path, name: str) -> str:
    return f"sqlite:///{folder / name}.db"


def without_sources(plan: Plan, missing: Collection[str]) -> Pipeline:
    """The pipeline without these sources, and without the steps, sinks and views behind them."""
    pipeline = plan.pipeline
    gone = {
        each.owner.name.lower()
        for each in plan.tables.values()
        if not {name.lower() for name in missing}.isdisjoint(name.lower() for name in plan.upstream(each.name))
    }
    return replace(
        pipeline,
        sources=tuple(each for each in pipeline.sources if each.name.lower() not in gone),
        steps=tuple(each for each in pipeline.steps if each.name.lower() not in gone),
        sinks=tuple(each for each in pipeline.sinks if each.input.lower() not in gone),
        views=tuple(each for each in pipeline.views if each.input.lower() not in gone),
    )


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
