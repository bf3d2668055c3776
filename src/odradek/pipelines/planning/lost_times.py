"""What to do about a step that needs event time which the steps before it have lost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.pipelines.definition.operations import KeyedState, StreamJoin
from odradek.pipelines.definition.vocabulary import StreamJoinKind
from odradek.pipelines.planning.null_queries import NullQueries
from odradek.pipelines.planning.queries import query_of
from odradek.pipelines.planning.query_checks import WATERMARK_HINT
from odradek.pipelines.planning.query_rows import selects_of
from odradek.pipelines.planning.streams import timed_inputs

if TYPE_CHECKING:
    from odradek.pipelines.definition.graph import Graph
    from odradek.pipelines.definition.model import Pipeline, Step
    from odradek.pipelines.planning.streams import Streams


def time_hint(pipeline: Pipeline, step: Step, graph: Graph, streams: Streams) -> str:
    """The way to event time for a step whose input has none."""
    lost = streams.time_before(step, graph)
    if lost is None:
        return WATERMARK_HINT
    losing = losing_step(pipeline, step, graph, streams)
    hint = None if losing is None else hint_behind(losing, graph, streams)
    return (
        hint
        or f"select '{lost}' as it is in the steps between, or set the watermark on the step that computes its time"
    )


def hint_behind(losing: Step, graph: Graph, streams: Streams) -> str | None:
    """The way to event time behind a step that cannot keep it; None for other steps."""
    rows, operation = f"the rows of step '{losing.name}'", losing.operation
    if isinstance(operation, KeyedState):
        return f"{rows} are new and have no event time: do this before it, or in its processor"
    if isinstance(operation, StreamJoin) and operation.how is StreamJoinKind.FULL:
        return f"{rows}, a full join, have no event time: write how: left or how: right, or do this before it"
    bare = first_without_time(losing, graph, streams)
    if bare is None:
        return None
    return (
        f"{rows} have the event time of the first SELECT of UNION ALL: add watermark: {{column: …, delay: …}} to "
        f"'{bare}', or write a SELECT with event time first"
    )


def losing_step(pipeline: Pipeline, step: Step, graph: Graph, streams: Streams) -> Step | None:
    """The last step before another that has no event time, although an input of it has."""
    steps = {each.name: each for each in pipeline.steps}
    before = [steps[name] for name in graph.upstream(step.name)[:-1] if name in steps]
    losing = [each for each in before if not streams.times_of(each.name).all and inputs_with_time(each, graph, streams)]
    return losing[-1] if losing else None


def inputs_with_time(step: Step, graph: Graph, streams: Streams) -> list[str]:
    return [each for each in graph.inputs.get(step.name, ()) if streams.times_of(each).all]


def first_without_time(step: Step, graph: Graph, streams: Streams) -> str | None:
    """The stream without a watermark that the first SELECT of a UNION reads, of which another has event time."""
    from sqlglot import exp  # noqa: PLC0415 - parsed already

    query, inputs = query_of(step), graph.inputs.get(step.name, ())
    if not isinstance(query, exp.Union):
        return None
    first, *others = selects_of(query)
    reading = NullQueries(timed_inputs(inputs, streams.times, streams.columns))
    if not any(column.time is not None for each in others for column in reading.of_query(each).columns):
        return None
    read = {each.name.lower() for each in first.find_all(exp.Table)}
    own = [each for each in inputs if each in streams.names and each.lower() in read]
    return next((each for each in own if not any(streams.times_of(name).all for name in graph.upstream(each))), None)
