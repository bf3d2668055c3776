"""The pipeline of a rehearsal: its ends are files in one folder. The steps between them are unchanged, but for those
whose rows are given, and those whose rows a test reads.

Rows that are given for a step come from a topic, in whose order they arrive, and the step selects its columns."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import TYPE_CHECKING

from odradek.pipelines.definition.column_types import Column
from odradek.pipelines.definition.model import (
    FileOrigin,
    FilesTarget,
    LakehouseTarget,
    RecordFormat,
    RecordSchema,
    Sink,
    Source,
    TableTarget,
    TopicOrigin,
    TopicTarget,
)
from odradek.pipelines.definition.operations import Aggregation, Sql
from odradek.pipelines.definition.vocabulary import Delivery, Engine, FileFormat
from odradek.pipelines.planning.plan import GroupSql
from odradek.pipelines.spark.reading.record_files import ONE_FILE_PER_BATCH, SCHEME, source_folder
from odradek.pipelines.spark.writing.topics import Cluster
from odradek.pipelines.sql.splicing import quoted

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from pathlib import Path

    from odradek.pipelines.definition.model import Pipeline, Step, Watermark
    from odradek.pipelines.planning.plan import Plan

GIVEN = "__given_"  # begins the source of the rows that are given for a step
READ = "__rows_of_"  # begins the sink of a step whose rows are read
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
        return replace(sink, target=FilesTarget(path, FileFormat.PARQUET, target.partition_by))
    if isinstance(target, TableTarget):
        url = None if target.url is None else database_in(folder, hashlib.sha256(target.url.encode()).hexdigest()[:16])
        return replace(sink, target=replace(target, url=url))
    if isinstance(target, LakehouseTarget):
        return replace(sink, target=TableTarget(f"lakehouse {sink.name}", target.key))
    return replace(sink, target=TopicTarget(sink.name))


def database_in(folder: Path, name: str) -> str:
    return f"sqlite:///{folder / name}.db"


def with_given_steps(plan: Plan, given: Mapping[str, Sequence[Column]]) -> Pipeline:
    """The pipeline with a source in place of each step whose rows are given; `given` has their columns."""
    pipeline = plan.pipeline
    sources = [_given_source(plan, name, columns) for name, columns in given.items()]
    steps = tuple(_given_step(plan, step, given[step.name]) if step.name in given else step for step in pipeline.steps)
    return replace(pipeline, sources=(*pipeline.sources, *sources), steps=steps)


def _given_source(plan: Plan, step: str, columns: Sequence[Column]) -> Source:
    nullable = tuple(Column(each.name, each.type) for each in columns)
    record_format, name = RecordFormat(schema=RecordSchema(nullable)), f"{GIVEN}{step}"
    if plan.is_stream(step):
        return Source(name, TopicOrigin((name,)), record_format, is_stream=True)
    return Source(name, FileOrigin("", FileFormat.JSON), record_format, is_stream=False)


def _given_step(plan: Plan, step: Step, columns: Sequence[Column]) -> Step:
    """The step with its event time, and the delay that its rows have there."""
    names, path = [each.name for each in columns], plan.path(step.name)
    time = next((name for name in names if name.lower() == (path.event_time or "").lower()), None)
    watermark: Watermark | None = None
    if time is not None and path.watermark is not None:
        watermark = getattr(plan.table(path.watermark).owner, "watermark", None)
        watermark = None if watermark is None else replace(watermark, column=time)
    operation = Sql(f"select {', '.join(map(quoted, names))} from {GIVEN}{step.name}")
    return replace(step, operation=operation, watermark=watermark)


def with_read_steps(pipeline: Pipeline, columns: Mapping[str, Sequence[str]]) -> Pipeline:
    """The pipeline with a topic for each step whose rows are read; `columns` has all columns of the step."""
    added = [
        Sink(f"{READ}{name}", name, TopicTarget(f"{READ}{name}", value=tuple(found))) for name, found in columns.items()
    ]
    return replace(pipeline, sinks=(*pipeline.sinks, *added))


def appended_steps(plan: Plan, names: Collection[str]) -> list[str]:
    """The named steps whose rows a streaming query appends: those of a stream without groups before them."""
    grouping = {each.name for each in plan.tables.values() if isinstance(each.made_by, Aggregation | GroupSql)}
    return [each for each in names if plan.is_stream(each) and grouping.isdisjoint(plan.upstream(each))]


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
