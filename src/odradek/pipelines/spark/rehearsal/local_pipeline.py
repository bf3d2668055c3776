"""The pipeline of a rehearsal: its ends are files in one folder, and the steps between them are unchanged."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import TYPE_CHECKING

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
from odradek.pipelines.spark.reading.record_files import ONE_FILE_PER_BATCH, SCHEME, source_folder
from odradek.pipelines.spark.writing.topics import Cluster

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from odradek.pipelines.definition.model import Pipeline
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
