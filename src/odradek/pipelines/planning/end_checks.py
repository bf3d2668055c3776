"""Checks of sinks and views: whether Spark can run the steps behind them in their output mode."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.pipelines.definition.graph import place_of
from odradek.pipelines.definition.model import Changes, RunningAggregate, Sink
from odradek.pipelines.definition.operations import Aggregation
from odradek.pipelines.definition.parsing_changes import changes_of
from odradek.pipelines.definition.sql_written import excepted_columns, is_star
from odradek.pipelines.definition.vocabulary import SinkMode
from odradek.pipelines.planning.arrival import check_arrival, check_equal_changes
from odradek.pipelines.planning.group_columns import group_expressions
from odradek.pipelines.planning.kept_rows import check_kept_rows, is_keyed
from odradek.pipelines.planning.null_times import can_be_declared, null_time
from odradek.pipelines.planning.queries import query_of
from odradek.pipelines.planning.query_checks import WATERMARK_HINT
from odradek.pipelines.planning.state import State, state_of

if TYPE_CHECKING:
    from sqlglot import exp

    from odradek.pipelines.definition.graph import Graph
    from odradek.pipelines.definition.model import Pipeline, Step, View
    from odradek.pipelines.definition.places import Problems
    from odradek.pipelines.planning.streams import Streams


def check_ends(pipeline: Pipeline, graph: Graph, streams: Streams, problems: Problems) -> None:
    ends: list[Sink | View] = [*pipeline.sinks, *pipeline.views]
    for end in ends:
        check_end(pipeline, end, graph, streams, problems)
        changes = changes_of(end)
        if changes is not None and end.input in streams.names:
            check_equal_changes(pipeline, end, changes, graph, streams, problems)


def check_end(pipeline: Pipeline, end: Sink | View, graph: Graph, streams: Streams, problems: Problems) -> None:
    if end.input not in streams.names:
        if streams.names and end.input in graph.order:
            problems.error(
                place_of(end, "from"),
                f"{'sink' if isinstance(end, Sink) else 'view'} '{end.name}' reads '{end.input}', which is not a "
                "stream, so that no batch would write it",
                "set stream: true on its source, or use engine: batch",
            )
        return
    steps = {each.name: each for each in pipeline.steps}
    path = [steps[name] for name in graph.upstream(end.input) if name in steps and name in streams.names]
    states = {step.name: state_of(step, streams.names) for step in path}
    grouped = [step for step in path if State.AGGREGATION in states[step.name]]
    is_grouping = not isinstance(end, Sink) and isinstance(end.content, RunningAggregate)
    sessions = next((step for step in path if State.SESSIONS in states[step.name]), None)
    if sessions is not None and not is_grouping:
        check_sessions(sessions, end, problems)
    appends = end.mode is SinkMode.APPEND if isinstance(end, Sink) else isinstance(end.content, Changes)
    if appends or (sessions is not None and not is_grouping):
        for step in grouped:
            check_finishes(pipeline, step, end, graph, streams, problems)
        if is_keyed(end):
            check_kept_rows(end, path, streams, problems, is_final=True)
        return
    for step in grouped:
        after = [other for other in path if states[other.name] and step.name in graph.upstream(other.name)[:-1]]
        if after or is_grouping:
            place = after[0].place if after else end.place
            what = f"step '{after[0].name}'" if after else f"view '{end.name}'"
            problems.error(
                place,
                f"{what} keeps state over the updated rows of '{step.name}', which '{end.name}' reads",
                "Spark does not support this: set mode: append on the sink, or make a view of each step",
            )
    if is_keyed(end) and grouped:
        check_kept_rows(end, path, streams, problems)
    elif is_keyed(end):
        check_arrival(pipeline, end, graph, streams, problems)
    joined = [step for step in path if State.STREAM_JOIN in states[step.name]]
    if joined and (grouped or is_grouping):
        problems.error(
            joined[0].place,
            f"step '{joined[0].name}' joins streams, and '{end.name}' reads updated rows behind it",
            "Spark joins streams in mode: append only: set it on the sink, with a watermark and a window",
        )


def check_sessions(step: Step, end: Sink | View, problems: Problems) -> None:
    """Checks what Spark cannot do with sessions of a stream."""
    if isinstance(end, Sink) and end.mode is SinkMode.UPDATE:
        problems.error(
            place_of(end, "mode"),
            f"sink '{end.name}' (mode: update) reads the sessions of '{step.name}', which Spark writes once they ended",
            "set mode: append",
        )
    if isinstance(step.operation, Aggregation) and not step.operation.by:
        problems.error(
            place_of(step, "window", "gap"),
            f"step '{step.name}' has sessions of all rows of a stream, which Spark does not support",
            "add the columns that a session belongs to: by: [user]",
        )


def check_finishes(
    pipeline: Pipeline, step: Step, end: Sink | View, graph: Graph, streams: Streams, problems: Problems
) -> None:
    """Checks that groups become final: `append` writes a group once the watermark has passed its event time."""
    what = f"step '{step.name}' aggregates a stream"
    if changes_of(end) is not None:
        writer, instead = f"'{end.name}' (changes)", ", or use key: instead of changes:"
    elif isinstance(end, Sink):
        can_update = State.SESSIONS not in state_of(step, streams.names)
        writer, instead = f"sink '{end.name}' (mode: append)", ", or set mode: update on the sink" if can_update else ""
    else:
        writer, instead = f"view '{end.name}' of sessions", ""
    marks = streams.of_inputs(step, graph)
    if not marks:
        problems.error(
            step.place,
            f"{what} without a watermark, and {writer} writes final groups only",
            f"{WATERMARK_HINT}{instead}",
        )
    elif not groups_by_time(step, marks):
        problems.error(
            step.place,
            f"{what} without grouping by event time, so no group becomes final for {writer}",
            f"add window: {{column: {min(marks)}, size: …}}{instead}",
        )
    else:
        check_null_group(pipeline, step, writer, graph, streams, problems)


def check_null_group(
    pipeline: Pipeline, step: Step, writer: str, graph: Graph, streams: Streams, problems: Problems
) -> None:
    """Checks that a step that groups by event time has no group without it."""
    found = null_time(pipeline, step, graph, streams)
    if found is None:
        return
    name = found.name
    reason = f"{name} may be null"
    place = "in a SQL step before it" if query_of(step) is None else "to the SELECT whose rows are grouped"
    remedy = f"add WHERE {name} IS NOT NULL {place}"
    if found.is_partial:
        reason = f"{name} is null in some groups of ROLLUP, CUBE or GROUPING SETS"
        remedy = f"group by {name} or its window outside ROLLUP, CUBE and GROUPING SETS: GROUP BY {name}, ROLLUP(…)"
    elif can_be_declared(pipeline, step, graph, streams, name):
        remedy = f"declare {name} as NOT NULL in the schema of its source, or {remedy}"
    problems.error(
        step.place,
        f"step '{step.name}' aggregates a stream by event time, and {reason}: no watermark passes the group of null, "
        f"and {writer} would never write it",
        remedy,
    )


def groups_by_time(step: Step, marks: frozenset[str]) -> bool:
    from sqlglot import exp  # noqa: PLC0415 - parsed already

    operation = step.operation
    if isinstance(operation, Aggregation):
        by = {each.lower() for each in operation.by}
        return bool(marks & by) or (operation.window is not None and operation.window.column.lower() in marks)
    query = query_of(step)
    if query is None:
        return True
    named = marks | {
        alias.alias.lower()
        for alias in query.find_all(exp.Alias)
        if any(column.name.lower() in marks for column in alias.find_all(exp.Column))
    }
    selects = list(query.find_all(exp.Select))
    grouped = [each for select in selects for each in group_expressions(select)]
    distinct = [each for each in (*selects, *query.find_all(exp.Union)) if each.args.get("distinct")]
    return any(has_time(each, named) for each in grouped) or any(selects_time(each, named) for each in distinct)


def has_time(node: exp.Expr, names: frozenset[str]) -> bool:
    from sqlglot import exp  # noqa: PLC0415

    return any(column.name.lower() in names for column in node.find_all(exp.Column))


def selects_time(query: exp.Expr, names: frozenset[str]) -> bool:
    """Whether a query selects a column of event time, by its name or with `*`."""
    from sqlglot import exp  # noqa: PLC0415

    if isinstance(query, exp.SetOperation | exp.Subquery):
        return selects_time(query.this, names)
    stars = [each for each in query.expressions if is_star(each)]
    named = [each for each in query.expressions if not is_star(each)]
    left_out = {each.name.lower() for star in stars for each in excepted_columns(star)}
    return (bool(stars) and not names.issubset(left_out)) or any(has_time(each, names) for each in named)
