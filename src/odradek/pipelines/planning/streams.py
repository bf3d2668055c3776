"""Which sources and steps are streams, and the event-time columns of their watermarks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from odradek.pipelines.definition.columns import known_columns, lookup
from odradek.pipelines.planning.queries import query_of

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from odradek.pipelines.definition.graph import Graph
    from odradek.pipelines.definition.model import Pipeline, Step
    from odradek.pipelines.definition.table_columns import Columns


def streaming_names(pipeline: Pipeline, graph: Graph) -> frozenset[str]:
    """The sources that are streams, and the steps that depend on one."""
    names = {each.name for each in pipeline.sources if each.is_stream}
    for name in graph.order:
        if names.intersection(graph.inputs.get(name, ())):
            names.add(name)
    return frozenset(names)


@dataclass(frozen=True, slots=True)
class Streams:
    """Names of the sources and steps that are streams, and the event-time columns of their watermarks."""

    names: frozenset[str]
    watermarks: Mapping[str, frozenset[str]]  # column names in lower case

    @classmethod
    def of(cls, pipeline: Pipeline, graph: Graph, known: Mapping[str, Columns | None] | None = None) -> Streams:
        columns = known_columns(pipeline, graph) if known is None else known
        return cls(streaming_names(pipeline, graph), watermark_columns(pipeline, graph, columns))

    def of_inputs(self, step: Step, graph: Graph) -> frozenset[str]:
        return frozenset(mark for each in graph.inputs.get(step.name, ()) for mark in self.watermarks.get(each, ()))


def watermark_columns(
    pipeline: Pipeline, graph: Graph, known: Mapping[str, Columns | None]
) -> dict[str, frozenset[str]]:
    """The event-time columns of each source and step: its own, or those of its inputs that it keeps."""
    steps = {each.name: each for each in pipeline.steps}
    marks = {
        each.name: frozenset({each.watermark.column.lower()} if each.watermark is not None else ())
        for each in pipeline.sources
    }
    for name in graph.order:
        if name not in steps:
            continue
        own = steps[name].watermark
        if own is not None:
            marks[name] = frozenset({own.column.lower()})
            continue
        columns = lookup(known, name)
        inherited = {column for each in graph.inputs.get(name, ()) for column in marks.get(each, frozenset())}
        inherited |= renamed(steps[name], inherited)
        marks[name] = frozenset(column for column in inherited if columns is None or column in columns)
    return marks


def renamed(step: Step, columns: Collection[str]) -> set[str]:
    """The names that a query gives to these columns."""
    from sqlglot import exp  # noqa: PLC0415 - parsed already

    query = query_of(step)
    aliases = () if query is None or not columns else query.find_all(exp.Alias)
    return {
        each.alias.lower()
        for each in aliases
        if isinstance(each.this, exp.Column) and each.this.name.lower() in columns
    }
