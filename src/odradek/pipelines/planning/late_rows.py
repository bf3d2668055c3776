"""Which flow writes the late rows of a source as dead letters (`late: dead_letters`), and where that cannot be exact.

An operator with state drops the rows that are late for the watermark of its query. The dead letters of a batch are
computed by the same rule from the same records, so that they are the dropped rows. This needs one operator behind the
source whose rule is known, in one flow that writes batches, and one path between them without other state.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from odradek.pipelines.definition.graph import place_of, references
from odradek.pipelines.definition.model import RunningAggregate, TopicOrigin
from odradek.pipelines.definition.operations import Aggregation, Join, Sql, StreamJoin
from odradek.pipelines.definition.vocabulary import Delivery, Late
from odradek.pipelines.planning.flows import split_flows
from odradek.pipelines.planning.state import state_of
from odradek.pipelines.planning.streams import EventTimes

if TYPE_CHECKING:
    from odradek.pipelines.definition.graph import Graph
    from odradek.pipelines.definition.model import Pipeline, Source, Step
    from odradek.pipelines.definition.places import Problems
    from odradek.pipelines.planning.flow import Flow
    from odradek.pipelines.planning.streams import Streams


@dataclass(frozen=True, slots=True)
class LateInput:
    """An input of a step with state, from which the operator drops late rows."""

    source: Source
    step: Step
    input: str
    event_time: str


def late_inputs(pipeline: Pipeline, graph: Graph, streams: Streams, flow: Flow) -> list[LateInput]:
    """The inputs whose late rows this flow writes as dead letters."""
    found = [each for source in wanting(pipeline) for each in inputs_behind(source, pipeline, graph, streams)]
    return [each for each in found if each.step.name in graph.upstream(flow.root) and flow.files is None]


def wanting(pipeline: Pipeline) -> list[Source]:
    return [
        each for each in pipeline.sources if each.watermark is not None and each.watermark.late is Late.DEAD_LETTERS
    ]


def inputs_behind(source: Source, pipeline: Pipeline, graph: Graph, streams: Streams) -> list[LateInput]:
    """The inputs of the first steps with state behind a source that drop late rows."""
    stateful = {each.name for each in pipeline.steps if state_of(each, streams.names)}
    found = []
    for step in pipeline.steps:
        for name in graph.inputs.get(step.name, ()) if step.name in stateful else ():
            before = graph.upstream(name) if name in graph.order else []
            if source.name in before and not stateful.intersection(before):
                time = late_time(step, streams.times_of(name).all)
                found += [] if time is None else [LateInput(source, step, name, time)]
    return found


def late_time(step: Step, marks: frozenset[str]) -> str | None:
    """The column of event time by which a step drops rows; None if it drops none."""
    operation = step.operation
    if isinstance(operation, Aggregation):
        keys = ([] if operation.window is None else [operation.window.column.lower()]) + list(operation.by)
        return next((each for each in keys if each.lower() in marks), None)
    return min(marks, default=None)


def check_late_rows(pipeline: Pipeline, graph: Graph, streams: Streams, problems: Problems) -> None:
    """Refuses `late: dead_letters` where the dead letters might not be exactly the dropped rows."""
    for step in pipeline.steps:
        if step.watermark is not None and step.watermark.late is Late.DEAD_LETTERS:
            refuse(step, "is set on a step", "set the watermark on the source", problems)
    for source in wanting(pipeline):
        if pipeline.dead_letters is None:
            refuse(source, "needs the dead-letter topic", "add dead_letters: TOPIC to the pipeline", problems)
        elif not isinstance(source.origin, TopicOrigin):
            refuse(source, "applies to the records of topics", "use late: count", problems)
        elif pipeline.delivery is Delivery.EXACTLY_ONCE:
            refuse(source, "writes at least once", "use late: count, or delivery: at_least_once", problems)
        elif not problems.errors:  # the plan of a definition with errors is not known
            check_behind(source, pipeline, graph, streams, problems)


def check_behind(source: Source, pipeline: Pipeline, graph: Graph, streams: Streams, problems: Problems) -> None:
    flows = split_flows(pipeline, graph)
    steps = {each.name: each for each in pipeline.steps}
    for late in inputs_behind(source, pipeline, graph, streams):
        step = late.step
        between = [steps[name] for name in graph.upstream(late.input) if name in steps]
        running = [flow for flow in flows if step.name in graph.upstream(flow.root)]
        has_windows = late.event_time.lower() in streams.times_of(late.input).windows
        reason = (
            unknown_rule(step)
            or (has_windows and "groups by windows of a step before it")
            or (several_paths(late, graph, between, streams) and "reads the source more than once")
            or (
                "" if all(isinstance(each.operation, Sql | Join) for each in between) else "is behind a Python function"
            )
            or (shares_topic(late, pipeline, graph) and "reads the topic by another source, too")
            or (len(running) > 1 and f"is computed by several flows ({', '.join(each.name for each in running)})")
            or (any(flow.files is not None for flow in running) and "is written to files by Spark itself")
        )
        if reason:
            text = f"cannot be exact: step '{step.name}' {reason}"
            refuse(source, text, "use late: count, or change the step", problems)
    for view in pipeline.views:
        by = view.content.by if isinstance(view.content, RunningAggregate) else ()
        times = streams.times_of(view.input).among(by) if source.name in graph.upstream(view.input) else EventTimes()
        if times.all:
            text = f"cannot be exact: view '{view.name}' groups by event time"
            refuse(source, text, "use late: count, or aggregate in a step", problems)


def unknown_rule(step: Step) -> str:
    """Why it is not known exactly which rows a step drops."""
    operation = step.operation
    if isinstance(operation, Aggregation):
        is_sliding = operation.window is not None and operation.window.slide is not None
        return "has sliding windows, of which a row may miss some only" if is_sliding else ""
    return "" if isinstance(operation, StreamJoin) else "keeps state, and is neither an aggregate nor a join of streams"


def several_paths(late: LateInput, graph: Graph, between: list[Step], streams: Streams) -> bool:
    sides = [name for name in graph.inputs.get(late.step.name, ()) if late.source.name in graph.upstream(name)]
    is_self_join = isinstance(late.step.operation, StreamJoin) and len(graph.inputs[late.step.name]) == 1
    streaming = {name.lower() for name in streams.names}
    read = [[found for found in references(each) if found.name.lower() in streaming] for each in between]
    return len(sides) > 1 or is_self_join or any(len(names) > 1 for names in read)


def shares_topic(late: LateInput, pipeline: Pipeline, graph: Graph) -> bool:
    """Whether the query reads a topic of the source by another one: offsets of a batch are compared by topic."""
    read = set(graph.upstream(late.step.name))
    others = [each.origin for each in pipeline.sources if each.name in read and each != late.source]
    own = late.source.origin
    return any(overlap(own, each) for each in others if isinstance(own, TopicOrigin) and isinstance(each, TopicOrigin))


def overlap(one: TopicOrigin, other: TopicOrigin) -> bool:
    """Whether two sources read a common topic, as far as their names tell."""
    if one.pattern is not None and one.pattern == other.pattern:
        return True
    pairs = ((one, other), (other, one))
    matched = any(left.pattern and re.fullmatch(left.pattern, name) for left, right in pairs for name in right.topics)
    return bool(set(one.topics) & set(other.topics)) or matched


def refuse(thing: Source | Step, text: str, hint: str, problems: Problems) -> None:
    noun = "step" if thing.place and hasattr(thing, "operation") else "source"
    problems.error(place_of(thing, "watermark", "late"), f"late: dead_letters of {noun} '{thing.name}' {text}", hint)
