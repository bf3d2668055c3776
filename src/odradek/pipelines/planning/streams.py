"""Which sources and steps are streams, and the event-time columns of their watermarks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from odradek.pipelines.definition.columns import known_columns, lookup
from odradek.pipelines.definition.known_functions import known_functions
from odradek.pipelines.definition.operations import Aggregation, StreamJoin
from odradek.pipelines.definition.vocabulary import StreamJoinKind
from odradek.pipelines.planning.group_columns import group_expressions
from odradek.pipelines.planning.queries import WINDOWS, is_window_time, query_of, window_calls

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from sqlglot import exp

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


def ranged_names(pipeline: Pipeline) -> frozenset[str]:
    """The sources that a range of the log limits: the streams. A static topic is read whole, as in every batch of a
    stream, unless no source is a stream."""
    streams = frozenset(each.name for each in pipeline.sources if each.is_stream)
    return streams or frozenset(each.name for each in pipeline.sources)


@dataclass(frozen=True, slots=True)
class Streams:
    """Names of the sources and steps that are streams, and the event-time columns of their watermarks; also the
    columns of all sources and steps."""

    names: frozenset[str]
    watermarks: Mapping[str, frozenset[str]]  # column names in lower case
    columns: Mapping[str, Columns | None]

    @classmethod
    def of(cls, pipeline: Pipeline, graph: Graph, known: Mapping[str, Columns | None] | None = None) -> Streams:
        columns = known_columns(pipeline, graph) if known is None else known
        return cls(streaming_names(pipeline, graph), watermark_columns(pipeline, graph, columns), columns)

    @classmethod
    def with_types(cls, pipeline: Pipeline, graph: Graph) -> Streams:
        """The streams, with the types of computed columns."""
        return replace(cls.of(pipeline, graph), columns=known_columns(pipeline, graph, known_functions(pipeline)))

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
    windows: dict[str, frozenset[str]] = {}  # the columns that are windows over event time
    for name in graph.order:
        if name not in steps:
            continue
        own, inputs, columns = steps[name].watermark, graph.inputs.get(name, ()), lookup(known, name)
        read = {column for each in inputs for column in windows.get(each, ())}
        seen = read | selected_windows(steps[name], {column for each in inputs for column in marks.get(each, ())})
        found = seen | renamed(steps[name], seen)
        windows[name] = frozenset(column for column in found if columns is None or column in columns)
        if own is not None:
            marks[name] = frozenset({own.column.lower()})
            continue
        times = window_times(steps[name], found)
        kept = kept_marks(steps[name], inputs, marks) | times | renamed(steps[name], times)
        marks[name] = frozenset(column for column in kept if columns is None or column in columns)
    return marks


def kept_marks(step: Step, inputs: Collection[str], marks: Mapping[str, frozenset[str]]) -> set[str]:
    """The columns of event time that a step passes on; a row of a join has the event time of the side that it keeps."""
    inherited = {column for each in inputs for column in marks.get(each, ())}
    operation = step.operation
    if isinstance(operation, StreamJoin):
        kept = {StreamJoinKind.FULL: (), StreamJoinKind.RIGHT: marks.get(operation.stream, ())}
        return set(kept.get(operation.how, marks.get(operation.input, ())))
    if isinstance(operation, Aggregation):
        return inherited & {each.lower() for each in operation.by} | window_ends(step, inherited)
    return inherited | renamed(step, inherited) | window_ends(step, inherited)


def window_ends(step: Step, columns: Collection[str]) -> set[str]:
    """The names of the ends of windows over these columns of event time: when a window ends, its row is final."""
    from sqlglot import exp  # noqa: PLC0415 - parsed already

    if isinstance(step.operation, Aggregation):
        window = step.operation.window
        return {"window_end"} if window is not None and window.column.lower() in columns else set()
    query = query_of(step)
    if query is None:
        return set()
    over = {column.name.lower() for call in grouped_windows(query) for column in call.find_all(exp.Column)}
    ends = [each for each in query.expressions if is_window_end(each.unalias())]
    return {each.alias_or_name.lower() for each in ends} if over.intersection(columns) else set()


def selected_windows(step: Step, columns: Collection[str]) -> set[str]:
    """The names of the windows over these columns of event time that a query selects as a whole."""
    from sqlglot import exp  # noqa: PLC0415

    query = query_of(step)
    found: set[str] = set()
    for select in () if query is None else query.find_all(exp.Select):
        calls = grouped_windows(select)
        if any(column.name.lower() in columns for call in calls for column in call.find_all(exp.Column)):
            items = {each.alias_or_name.lower(): each.unalias() for each in select.expressions}
            found |= {name for name, item in items.items() if is_window(item)}
    return found


def grouped_windows(select: exp.Expr) -> list[exp.Expr]:
    """The calls of `window` and `session_window` that a SELECT groups by, also by an ordinal, an alias or ALL."""
    group = select.args.get("group")
    whole = [each for each in group_expressions(select) if window_calls(each)[:1] == [each]]
    return [] if group is None else [*window_calls(group), *whole]


def is_window(node: exp.Expr) -> bool:
    """Whether this is `window`, `session_window` or a call of one."""
    from sqlglot import exp  # noqa: PLC0415

    if isinstance(node, exp.Column):
        return not node.table and node.name.lower() in WINDOWS
    return window_calls(node)[:1] == [node]


def window_times(step: Step, windows: Collection[str]) -> set[str]:
    """The names that a query gives to `window_time(…)` of these windows, which Spark marks as event time."""
    from sqlglot import exp  # noqa: PLC0415

    query = query_of(step)
    calls = [] if query is None else [each for each in query.find_all(exp.Alias) if is_window_time(each.this)]
    return {each.alias.lower() for each in calls if any(arg.name.lower() in windows for arg in each.this.expressions)}


def is_window_end(node: exp.Expr) -> bool:
    """Whether this is `window.end`, `session_window.end` or `window(…).end`."""
    from sqlglot import exp  # noqa: PLC0415

    if isinstance(node, exp.Dot):
        return node.name.lower() == "end" and bool(window_calls(node.this))
    return isinstance(node, exp.Column) and node.name.lower() == "end" and node.table.lower() in WINDOWS


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
