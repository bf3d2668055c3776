"""Checks of sinks and views: whether Spark can run the steps behind them in their output mode."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.pipelines.definition.model import Changes, RunningAggregate, Sink, place_of
from odradek.pipelines.definition.operations import Aggregation
from odradek.pipelines.definition.vocabulary import SinkMode
from odradek.pipelines.planning.arrival import check_arrival, check_equal_changes, check_tombstones
from odradek.pipelines.planning.grouping_sets import grouped_expressions
from odradek.pipelines.planning.kept_rows import check_kept_rows, is_keyed
from odradek.pipelines.planning.lost_times import time_hint
from odradek.pipelines.planning.null_times import can_be_declared, null_time
from odradek.pipelines.planning.queries import has_sessions, query_of
from odradek.pipelines.planning.query_facts import query_facts
from odradek.pipelines.planning.session_filters import filters_sessions, grouped_sessions
from odradek.pipelines.planning.state import State, state_of

if TYPE_CHECKING:
    from odradek.pipelines.definition.graph import Graph
    from odradek.pipelines.definition.model import Pipeline, Step, View
    from odradek.pipelines.definition.places import Problems
    from odradek.pipelines.planning.streams import Streams

SQL_HINT = "let each GROUP BY and DISTINCT of the query have event time,"


def check_ends(pipeline: Pipeline, graph: Graph, streams: Streams, problems: Problems) -> None:
    ends: list[Sink | View] = [*pipeline.sinks, *pipeline.views]
    for end in ends:
        check_end(pipeline, end, graph, streams, problems)
        changes = end.changes
        if changes is not None and end.input in streams.names:
            check_equal_changes(pipeline, end, changes, graph, streams, problems)
        if isinstance(end, Sink) and end.input in streams.names:
            check_tombstones(pipeline, end, graph, streams, problems)


def check_end(pipeline: Pipeline, end: Sink | View, graph: Graph, streams: Streams, problems: Problems) -> None:
    if end.input not in streams.names:
        # A step with a wrong query or a misspelled input, which is reported, may be meant to read a stream.
        if streams.names and end.input in graph.order and graph.incomplete.isdisjoint(graph.upstream(end.input)):
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
        check_sessions(sessions, end, streams, problems)
    appends = end.mode is SinkMode.APPEND if isinstance(end, Sink) else isinstance(end.content, Changes)
    if appends or (sessions is not None and not is_grouping):
        for step in grouped:
            if not filters_sessions(step) and not grouped_sessions(step, graph, streams):  # which are refused
                check_finishes(pipeline, step, end, graph, streams, problems)
        if is_keyed(end):
            check_kept_rows(end, path, streams, problems, is_final=True)
        return
    for step in grouped:
        check_updates(step, end, path, graph, streams, problems)
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


def check_updates(
    step: Step, end: Sink | View, path: list[Step], graph: Graph, streams: Streams, problems: Problems
) -> None:
    """Checks that no state is kept over the groups of a step, which change."""
    is_grouping = not isinstance(end, Sink) and isinstance(end.content, RunningAggregate)
    behind = [other for other in path if step.name in graph.upstream(other.name)[:-1]]
    after = next((other for other in behind if state_of(other, streams.names)), None)
    if groups_groups(step, streams):
        problems.error(
            step.place,
            f"step '{step.name}' aggregates the groups of an aggregation, which change, and '{end.name}' reads it",
            "Spark does not support this: set mode: append on the sink, with event time in each GROUP BY",
        )
    elif after is not None or is_grouping:
        what = f"step '{after.name}'" if after is not None else f"view '{end.name}'"
        problems.error(
            end.place if after is None else after.place,
            f"{what} keeps state over the updated rows of '{step.name}', which '{end.name}' reads",
            "Spark does not support this: set mode: append on the sink, or make a view of each step",
        )


def check_sessions(step: Step, end: Sink | View, streams: Streams, problems: Problems) -> None:
    """Checks what Spark cannot do with sessions of a stream."""
    if isinstance(end, Sink) and end.mode is SinkMode.UPDATE:
        problems.error(
            place_of(end, "mode"),
            f"sink '{end.name}' (mode: update) reads the sessions of '{step.name}', which Spark writes once they ended",
            "set mode: append",
        )
    if has_common_sessions(step, streams):
        is_sql = not isinstance(step.operation, Aggregation)
        example = "GROUP BY user, session_window(…)" if is_sql else "by: [user]"
        problems.error(
            step.place if is_sql else place_of(step, "window", "gap"),
            f"step '{step.name}' has sessions of all rows of a stream, which Spark does not support",
            f"add the columns that a session belongs to: {example}",
        )


def has_common_sessions(step: Step, streams: Streams) -> bool:
    """Whether a step has sessions that all rows of a stream share."""
    from sqlglot import exp  # noqa: PLC0415 - parsed already

    if isinstance(step.operation, Aggregation):
        return not step.operation.by
    query = query_of(step)
    for select in () if query is None else query_facts(query, streams.names).aggregations:
        expressions = grouped_expressions(select)
        others = [each for each in expressions if not has_sessions(each) and not isinstance(each, exp.Literal)]
        if any(map(has_sessions, expressions)) and not others:
            return True
    return False


def check_finishes(
    pipeline: Pipeline, step: Step, end: Sink | View, graph: Graph, streams: Streams, problems: Problems
) -> None:
    """Checks that groups become final: `append` writes a group once the watermark has passed its event time."""
    what = f"step '{step.name}' aggregates a stream"
    if end.changes is not None:
        writer, instead = f"'{end.name}' (changes)", ", or use key: instead of changes:"
    elif isinstance(end, Sink):
        can_update = State.SESSIONS not in state_of(step, streams.names)
        writer, instead = f"sink '{end.name}' (mode: append)", ", or set mode: update on the sink" if can_update else ""
    else:
        writer, instead = f"view '{end.name}' of sessions", ""
    before = [each for each in pipeline.steps if each.name in graph.upstream(step.name)]
    if any(State.STREAM_JOIN in state_of(each, streams.names) for each in before):
        instead = ""  # Spark joins streams in mode append only
    marks = streams.of_inputs(step, graph)
    if not marks and not streams.windows_of_inputs(step, graph):
        lost = streams.time_before(step, graph)
        problems.error(
            step.place,
            f"{what} without {'a watermark' if lost is None else 'event time'}, and {writer} writes final groups only",
            f"{time_hint(pipeline, step, graph, streams)}{instead}",
        )
    elif not groups_by_time(step, graph, streams):
        windows, sessions = streams.windows_of_inputs(step, graph), streams.sessions_of_inputs(step, graph)
        column = min(marks or windows - sessions or windows)
        window = f"add window: {{column: {column}, size: …}}"
        if query_of(step) is not None:
            itself = "" if column in sessions else f"{column} or "
            window = f"{SQL_HINT} by {itself}window({column}, '10 minutes'): what is computed from them is none"
        problems.error(
            step.place,
            f"{what} without grouping by event time, so no group becomes final for {writer}",
            f"{window}{instead}",
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


def groups_groups(step: Step, streams: Streams) -> bool:
    """Whether the query of a step has an aggregation over another one."""
    query = query_of(step)
    return query is not None and bool(query_facts(query, streams.names).nested)


def groups_by_time(step: Step, graph: Graph, streams: Streams) -> bool:
    """Whether every aggregation of a step groups by a column of event time or a window of one."""
    operation = step.operation
    if isinstance(operation, Aggregation):
        marks = streams.of_inputs(step, graph)
        by = {each.lower() for each in operation.by}
        has_window = operation.window is not None and operation.window.column.lower() in marks
        return has_window or bool(by & (marks | streams.windows_of_inputs(step, graph)))
    query, reading = query_of(step), streams.reading_of(step, graph)
    if query is None or reading is None:
        return True
    grouping = {id(each) for each in query_facts(query, streams.names).aggregations}
    return all(times for node, times in reading.groupings if id(node) in grouping)
