"""The lineage of a pipeline for display: sources, steps, sinks and views, each with a short description."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING

from odradek.conventions.dataclass import dataclass
from odradek.pipelines.definition.model import (
    Changes,
    ConsoleTarget,
    FileOrigin,
    FilesTarget,
    LakehouseTarget,
    LatestRows,
    Sink,
    Source,
    SparkTarget,
    Step,
    TableTarget,
    TopicOrigin,
    TopicTarget,
    View,
)
from odradek.pipelines.definition.operations import (
    Aggregation,
    Deduplication,
    Join,
    KeyedState,
    PythonFunction,
    StreamJoin,
)
from odradek.pipelines.definition.vocabulary import Unbounded

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.pipelines.definition.model import Pipeline
    from odradek.pipelines.definition.operations import Window


class Kind(StrEnum):
    """The kind of a lineage node."""

    SOURCE = "source"
    STEP = "step"
    VIEW = "view"
    SINK = "sink"


@dataclass(frozen=True, slots=True)
class LineageNode:
    """A source, step, view or sink; `inputs` are the ids of the nodes that it reads, all of a lower level."""

    id: str
    kind: Kind
    name: str
    detail: str
    inputs: tuple[str, ...]
    level: int = 0  # the length of the longest path that leads to it


def nodes_of(pipeline: Pipeline, read: Mapping[str, tuple[str, ...]]) -> list[LineageNode]:
    """The nodes of a pipeline; `read` has the sources and steps in topological order, with what each reads."""
    sources = {each.name: each for each in pipeline.sources}
    steps = {each.name: each for each in pipeline.steps}
    folded = {name.lower(): table_id(name, sources) for name in read}
    nodes = []
    for name, tables in read.items():
        inputs = tuple(table_id(each, sources) for each in tables)
        if name in sources:
            nodes.append(LineageNode(table_id(name, sources), Kind.SOURCE, name, source_detail(sources[name]), ()))
        else:
            nodes.append(LineageNode(table_id(name, sources), Kind.STEP, name, step_detail(steps[name]), inputs))
    for view in pipeline.views:
        before = folded.get(view.input.lower())
        nodes.append(LineageNode(f"view/{view.name}", Kind.VIEW, view.name, view_detail(view), as_inputs(before)))
    for sink in pipeline.sinks:
        before = folded.get(sink.input.lower())
        nodes.append(LineageNode(f"sink/{sink.name}", Kind.SINK, sink.name, sink_detail(sink), as_inputs(before)))
    levels: dict[str, int] = {}
    for each in nodes:
        levels[each.id] = max((levels[before] + 1 for before in each.inputs), default=0)
    return [replace(each, detail=pipeline.without_secrets(each.detail), level=levels[each.id]) for each in nodes]


def table_id(name: str, sources: dict[str, Source]) -> str:
    return f"source/{name}" if name in sources else f"step/{name}"


def as_inputs(before: str | None) -> tuple[str, ...]:
    return () if before is None else (before,)


def words(names: tuple[str, ...]) -> str:
    return ", ".join(names)


def source_detail(source: Source) -> str:
    origin = source.origin
    if isinstance(origin, TopicOrigin):
        if origin.pattern is not None:
            return f"topics matching {origin.pattern}"
        return f"topic{'' if len(origin.topics) == 1 else 's'} {words(origin.topics)}"
    if isinstance(origin, FileOrigin):
        return f"{origin.format} {origin.path}"
    return f"jdbc {origin.table}" if origin.table is not None else "jdbc query"


def step_detail(step: Step) -> str:
    detail = operation_detail(step)
    if not step.expectations:
        return detail
    names = tuple(each.name for each in step.expectations)
    return f"{detail}, expects {words(names)}" if len(names) == 1 else f"{detail}, {len(names)} expectations"


def operation_detail(step: Step) -> str:
    operation = step.operation
    if isinstance(operation, Aggregation):
        by = f" by {words(operation.by)}" if operation.by else ""
        return f"aggregate{by}" + ("" if operation.window is None else f", {window_detail(operation.window)}")
    if isinstance(operation, Deduplication):
        within = f" within {operation.within}" if operation.within is not None else ""
        return f"first of {words(operation.key)}{within}"
    if isinstance(operation, Join):
        return f"{operation.how} join {operation.table} on {words(operation.on)}"
    if isinstance(operation, StreamJoin):
        period = operation.within or Unbounded.FOREVER
        return f"{operation.how} join {operation.stream} on {words(operation.on)} within {period}"
    if isinstance(operation, KeyedState):
        return f"state of {words(operation.key)}: {operation.processor}"
    return f"python {operation.function}" if isinstance(operation, PythonFunction) else "sql"


def window_detail(window: Window) -> str:
    if window.gap is not None:
        return f"sessions with a gap of {window.gap}"
    return f"windows of {window.size}" + ("" if window.slide is None else f" every {window.slide}")


def view_detail(view: View) -> str:
    content = view.content
    if isinstance(content, LatestRows):
        return f"latest by {words(content.key)}"
    if isinstance(content, Changes):
        return changes_detail(content)
    return f"{words(tuple(each.name for each in content.aggregates))}" + (
        f" by {words(content.by)}" if content.by else ""
    )


def changes_detail(changes: Changes) -> str:
    return f"{'history' if changes.keeps_history else 'state'} of {words(changes.key)} by {changes.sequence}"


def sink_detail(sink: Sink) -> str:
    target = sink.target
    if isinstance(target, TopicTarget):
        return f"topic {target.topic}"
    if isinstance(target, FilesTarget):
        return f"{target.format} {target.path}"
    if isinstance(target, TableTarget):
        return f"table {target.table}" + ("" if target.changes is None else f", {changes_detail(target.changes)}")
    if isinstance(target, LakehouseTarget):
        return f"{target.format} {target.name}"
    if isinstance(target, SparkTarget):
        return f"spark {target.format}"
    return "console" if isinstance(target, ConsoleTarget) else f"python {target.function}"


def facts_of(pipeline: Pipeline) -> list[str]:
    """Facts about the whole pipeline, for the heading of a drawing."""
    facts = [f"{pipeline.engine} engine", str(pipeline.delivery).replace("_", " ")]
    return facts + ([f"dead letters to {pipeline.dead_letters}"] if pipeline.dead_letters is not None else [])
