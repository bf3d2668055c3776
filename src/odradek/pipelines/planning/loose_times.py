"""Refuses steps that work by event time behind a join of streams without a bound of it (see `time_queries`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.pipelines.definition.columns import lookup
from odradek.pipelines.definition.operations import Aggregation, KeyedState, StreamJoin
from odradek.pipelines.definition.vocabulary import StateClock
from odradek.pipelines.planning.queries import query_of
from odradek.pipelines.planning.state import state_of
from odradek.pipelines.planning.time_queries import TimeQueries

if TYPE_CHECKING:
    from odradek.pipelines.definition.graph import Graph
    from odradek.pipelines.definition.model import Pipeline, Step
    from odradek.pipelines.definition.places import Problems
    from odradek.pipelines.planning.streams import Streams


def check_loose_times(pipeline: Pipeline, graph: Graph, streams: Streams, problems: Problems) -> None:
    steps = {each.name: each for each in pipeline.steps}
    loose: dict[str, frozenset[str]] = {}  # the loose columns of event time of each step
    for name in graph.order:
        if name not in steps or name not in streams.names:
            continue
        step = steps[name]
        loose[name], used = loose_columns(step, loose, graph, streams)
        if used:
            problems.error(
                step.place,
                f"step '{name}' works by the event time '{used[0]}' of a join of streams whose condition has no bound "
                "for it: a joined row may be older than the watermark, and would be dropped as late",
                "bound the time in the condition of the join: b.at BETWEEN a.at AND a.at + INTERVAL 10 MINUTES",
            )


def loose_columns(
    step: Step, loose: dict[str, frozenset[str]], graph: Graph, streams: Streams
) -> tuple[frozenset[str], list[str]]:
    """The loose columns of a step, and those by which it works itself."""
    operation = step.operation
    query = query_of(step)
    if query is not None:
        reading = TimeQueries(streams, loose)
        return reading.of_query(query).loose, reading.loose
    read = frozenset(column for each in graph.inputs.get(step.name, ()) for column in loose.get(each, ()))
    if isinstance(operation, Aggregation):
        by = [*operation.by, *([] if operation.window is None else [operation.window.column])]
        return frozenset(), sorted(read.intersection(map(str.lower, by)))
    is_by_clock = isinstance(operation, KeyedState) and operation.clock is StateClock.PROCESSING
    used = sorted(read) if state_of(step, streams.names) and not is_by_clock else []
    if used or isinstance(operation, StreamJoin):
        return frozenset(), used
    columns = lookup(streams.columns, step.name)
    return frozenset(name for name in read if columns is None or name in columns), []
