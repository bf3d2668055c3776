"""Checks of streaming queries: aggregations that can finish, supported joins, and state that stays bounded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from odradek.pipelines.definition.columns import lookup, needs_schema
from odradek.pipelines.definition.graph import place_of
from odradek.pipelines.definition.model import (
    Aggregation,
    Deduplication,
    Join,
    KeyedState,
    Sink,
    Sql,
    Step,
    View,
)
from odradek.pipelines.definition.sql_text import SqlError, is_aggregation, parse_query, place_in
from odradek.pipelines.definition.vocabulary import SinkMode, StateClock

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlglot import exp

    from odradek.pipelines.definition.graph import Graph
    from odradek.pipelines.definition.model import Pipeline
    from odradek.pipelines.definition.places import Place, Problems
    from odradek.pipelines.definition.table_columns import Columns

WATERMARK_HINT = "add watermark: {column: …, delay: …} to its source"


def query_of(step: Step) -> exp.Expr | None:
    if not isinstance(step.operation, Sql):
        return None
    try:
        return parse_query(step.operation.text)
    except SqlError:
        return None


def aggregates(step: Step) -> bool:
    query = query_of(step)
    return isinstance(step.operation, Aggregation) or (query is not None and is_aggregation(query))


def is_stateful(step: Step) -> bool:
    return aggregates(step) or isinstance(step.operation, Deduplication | KeyedState)


@dataclass(frozen=True, slots=True)
class Streams:
    """Names of the sources and steps that are streams, and the event-time columns of their watermarks."""

    names: frozenset[str]
    watermarks: Mapping[str, frozenset[str]]

    @classmethod
    def of(cls, pipeline: Pipeline, graph: Graph, known: Mapping[str, Columns | None]) -> Streams:
        steps = {each.name: each for each in pipeline.steps}
        names = {each.name for each in pipeline.sources if each.is_stream}
        marks = {
            each.name: frozenset({each.watermark.column.lower()} if each.watermark is not None else ())
            for each in pipeline.sources
        }
        for name in graph.order:
            if name not in steps:
                continue
            inputs = graph.inputs.get(name, ())
            if any(each in names for each in inputs):
                names.add(name)
            own = steps[name].watermark
            if own is not None:
                marks[name] = frozenset({own.column.lower()})
                continue
            columns = lookup(known, name)
            inherited = {column for each in inputs for column in marks.get(each, frozenset())}
            marks[name] = frozenset(column for column in inherited if columns is None or column in columns)
        return cls(frozenset(names), marks)

    def of_inputs(self, step: Step, graph: Graph) -> frozenset[str]:
        return frozenset(mark for each in graph.inputs.get(step.name, ()) for mark in self.watermarks.get(each, ()))


def check_streams(pipeline: Pipeline, graph: Graph, streams: Streams, problems: Problems) -> None:
    """Checks for the streaming engines; the batch engine has none of these limits."""
    if pipeline.sources and not streams.names:
        problems.error(
            pipeline.place,
            f"the {pipeline.engine} engine needs a stream, and no source is one",
            "set stream: true on a source of files, or use engine: batch",
        )
    for source in pipeline.sources:
        if needs_schema(source):
            problems.error(
                source.place,
                f"source '{source.name}' is a stream of files without a schema",
                "add schema: to the source",
            )
    for step in pipeline.steps:
        if step.name in streams.names:
            check_stream_step(step, graph, streams, problems)
    ends: list[Sink | View] = [*pipeline.sinks, *pipeline.views]
    for end in ends:
        check_end(pipeline, end, graph, streams, problems)


def check_stream_step(step: Step, graph: Graph, streams: Streams, problems: Problems) -> None:
    operation = step.operation
    marks = streams.of_inputs(step, graph)
    what = f"step '{step.name}'"
    if isinstance(operation, Join) and operation.table in streams.names:
        problems.error(
            place_of(step, "join", "table"),
            f"{what} joins with '{operation.table}', which is a stream",
            "join two streams in a SQL step, or make the table's source static: stream: false",
        )
    if isinstance(operation, Deduplication):
        if operation.within is not None and not marks:
            place = place_of(step, "deduplicate", "within")
            problems.error(place, f"{what} drops ids by event time, but its input has no watermark", WATERMARK_HINT)
        elif operation.within is None and not marks & {each.lower() for each in operation.key}:
            place = place_of(step, "deduplicate")
            problems.warning(
                place, f"{what} keeps every id in state without a limit", "add within: 10 minutes, or another duration"
            )
    if isinstance(operation, KeyedState) and operation.clock is StateClock.EVENT and not marks:
        place = place_of(step, "state", "clock")
        problems.error(place, f"{what} has event-time timers, but its input has no watermark", WATERMARK_HINT)
    if isinstance(operation, Sql):
        check_stream_query(step, operation, graph, streams, problems)


def check_stream_query(step: Step, operation: Sql, graph: Graph, streams: Streams, problems: Problems) -> None:
    from sqlglot import exp  # noqa: PLC0415 - parsed already

    query = query_of(step)
    if query is None:
        return
    what = f"step '{step.name}'"
    hint = "do this when you query a view or a table, or use engine: batch"
    refused = ((exp.Order, "sorts"), (exp.Limit, "limits"), (exp.Window, "uses OVER on"))
    for kind, verb in refused:
        found = next((each for each in query.find_all(kind) if in_stream(each)), None)
        if found is not None:
            problems.error(
                place_below(operation, found), f"{what} {verb} a stream, which is unbounded and unordered", hint
            )
    if query.find(exp.Intersect, exp.Except) is not None:
        problems.error(
            operation.place, f"{what} uses INTERSECT or EXCEPT, which streams do not support", "write it as a join"
        )
    read = [each for each in graph.inputs.get(step.name, ()) if each in streams.names]
    joined = query.find(exp.Join) is not None and len(read) > 1
    bare = [each for each in read if not streams.watermarks.get(each)]
    if joined and bare:
        problems.warning(
            operation.place,
            f"{what} joins streams, and '{bare[0]}' has no watermark: all its rows stay in state",
            WATERMARK_HINT,
        )


def in_stream(found: exp.Expr) -> bool:
    """Whether the clause applies to the stream; ORDER BY inside an aggregate or OVER sorts a group only."""
    from sqlglot import exp  # noqa: PLC0415

    return not isinstance(found, exp.Order) or isinstance(found.parent, exp.Query)


def place_below(operation: Sql, found: exp.Expr) -> Place:
    """The place of the first identifier in a part of a query; sqlglot records positions of identifiers only."""
    from sqlglot import exp  # noqa: PLC0415

    name = next((each for each in found.find_all(exp.Identifier) if "line" in each.meta), None)
    return operation.place if name is None else operation.place.inside(*place_in(name))


def check_end(pipeline: Pipeline, end: Sink | View, graph: Graph, streams: Streams, problems: Problems) -> None:
    """Checks that Spark can run the steps behind a sink or view in its output mode."""
    if end.input not in streams.names:
        return
    steps = {each.name: each for each in pipeline.steps}
    path = [steps[name] for name in graph.upstream(end.input) if name in steps and name in streams.names]
    grouped = [step for step in path if aggregates(step)]
    if isinstance(end, Sink) and end.mode is SinkMode.APPEND:
        for step in grouped:
            check_finishes(step, end, graph, streams, problems)
        return
    for step in grouped:
        after = [other for other in path if is_stateful(other) and step.name in graph.upstream(other.name)[:-1]]
        if after:
            problems.error(
                after[0].place,
                f"step '{after[0].name}' keeps state over the updated rows of '{step.name}', which '{end.name}' reads",
                "Spark does not support this: set mode: append on the sink, or make a view of each step",
            )


def check_finishes(step: Step, sink: Sink, graph: Graph, streams: Streams, problems: Problems) -> None:
    """Checks that groups become final: `append` writes a group once the watermark has passed its event time."""
    what = f"step '{step.name}' aggregates a stream"
    instead = "or set mode: update on the sink"
    marks = streams.of_inputs(step, graph)
    if not marks:
        problems.error(
            step.place,
            f"{what} without a watermark, and sink '{sink.name}' (mode: append) writes final groups only",
            f"{WATERMARK_HINT}, {instead}",
        )
    elif not groups_by_time(step, marks):
        problems.error(
            step.place,
            f"{what} without grouping by event time, so no group becomes final for sink '{sink.name}' (mode: append)",
            f"add window: {{column: {min(marks)}, size: …}}, {instead}",
        )


def groups_by_time(step: Step, marks: frozenset[str]) -> bool:
    from sqlglot import exp  # noqa: PLC0415

    operation = step.operation
    if isinstance(operation, Aggregation):
        by = {each.lower() for each in operation.by}
        return bool(marks & by) or (operation.window is not None and operation.window.column.lower() in marks)
    query = query_of(step)
    if query is None:
        return True
    groups = list(query.find_all(exp.Group))
    named = {column.name.lower() for group in groups for column in group.find_all(exp.Column)}
    numbered = any(group.find(exp.Literal) for group in groups)
    aliased = {
        alias.alias.lower()
        for alias in query.find_all(exp.Alias)
        if any(column.name.lower() in marks for column in alias.find_all(exp.Column))
    }
    distinct = any(select.args.get("distinct") for select in query.find_all(exp.Select))
    return bool(named & (marks | aliased)) or numbered or distinct
