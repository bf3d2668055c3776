"""Flows that share one streaming query, so that their source is read once (`share_reads`).

Spark reads a source once for all branches of a query that begin with the same exchange. A query has one interval, one
output mode and one watermark, and numbers the state of its branches in their order. So flows share a query only if
they read the same topic source and nothing else as a stream, have the same interval, and have at most one step with
state, of a kind that needs nothing of the query but its mode: an aggregation without sessions, or keyed state in
processing time, whose rows are the same in each mode. `--until-caught-up` disables empty batches for a query with such
keyed state, because Spark would run them for ever. Final groups are written by empty batches, so that keyed state does
not share a query with them. The order of the flows is part of the fingerprint.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from odradek.pipelines.definition.model import Source, TopicOrigin
from odradek.pipelines.definition.operations import Aggregation, KeyedState
from odradek.pipelines.definition.vocabulary import Delivery, Duration, Late, SinkMode, StateClock
from odradek.pipelines.planning.flow import Flow
from odradek.pipelines.planning.state import state_of

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from odradek.pipelines.definition.graph import Graph
    from odradek.pipelines.definition.model import Pipeline, Step
    from odradek.pipelines.definition.operations import Operation

# State and views cost a commit for each batch, and timers a batch for each trigger: a longer interval saves CPU.
STATE_TRIGGER = Duration(1000)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A flow that may share a query, its source, and the operation of its step with state."""

    flow: Flow
    source: str
    state: Operation | None

    @property
    def is_aggregation(self) -> bool:
        return isinstance(self.state, Aggregation)


def shared_flows(flows: Sequence[Flow], pipeline: Pipeline, graph: Graph, streaming: Collection[str]) -> list[Flow]:
    """The flows, with those that share a query in place of the first of them."""
    if not pipeline.share_reads or pipeline.delivery is not Delivery.AT_LEAST_ONCE:
        return list(flows)
    found = [candidate_of(flow, pipeline, graph, streaming) for flow in flows]
    candidates = [each for each in found if each is not None]
    shared = [
        group_of(source, mode, members)
        for source in dict.fromkeys(each.source for each in candidates)
        for mode, members in by_mode([each for each in candidates if each.source == source]).items()
        if len(members) > 1
    ]
    group_by_flow = {part.name: group for group in shared for part in group.parts}
    return list({flow.name: flow for flow in (group_by_flow.get(each.name, each) for each in flows)}.values())


def candidate_of(flow: Flow, pipeline: Pipeline, graph: Graph, streaming: Collection[str]) -> Candidate | None:
    """The flow with what decides about sharing; None if it needs a query of its own."""
    before = [name for name in graph.upstream(flow.root) if name in streaming]
    sources = [each for each in pipeline.sources if each.name in before]
    steps = [each for each in pipeline.steps if each.name in before]
    stateful = [each for each in steps if state_of(each, streaming)]
    if flow.files is not None or flow.aggregate is not None or len(sources) != 1 or len(stateful) > 1:
        return None
    if not has_state_interval(flow, pipeline) or not is_shareable(sources[0]):
        return None
    if any(each.watermark is not None for each in steps) or not all(map(keeps_simple_state, stateful)):
        return None
    return Candidate(flow, sources[0].name, next((each.operation for each in stateful), None))


def state_interval(flow: Flow, pipeline: Pipeline) -> Duration | None:
    """The shortest interval of a flow with state or of a view; None for other flows."""
    is_slow = flow.uses_state_trigger or flow.root not in {each.name for each in pipeline.sources}
    return (pipeline.state_trigger or STATE_TRIGGER) if is_slow else None


def has_state_interval(flow: Flow, pipeline: Pipeline) -> bool:
    """Whether the flow runs at the interval of flows with state."""
    least = pipeline.state_trigger or STATE_TRIGGER
    is_as_slow = pipeline.trigger is not None and pipeline.trigger >= least
    return is_as_slow or state_interval(flow, pipeline) is not None


def is_shareable(source: Source) -> bool:
    """Whether the source is a topic without dead letters of late rows, which are read for one operator of one query."""
    has_late_letters = source.watermark is not None and source.watermark.late is Late.DEAD_LETTERS
    return isinstance(source.origin, TopicOrigin) and not has_late_letters


def keeps_simple_state(step: Step) -> bool:
    """Whether Spark runs the step beside others in one query. SQL and functions may have operators that it refuses."""
    operation = step.operation
    if isinstance(operation, KeyedState):
        return operation.clock is StateClock.PROCESSING
    return isinstance(operation, Aggregation) and (operation.window is None or operation.window.gap is None)


def by_mode(candidates: Sequence[Candidate]) -> dict[SinkMode, list[Candidate]]:
    """The members of each query by its mode, which aggregations determine; stateless flows join the first query."""
    modes = list(dict.fromkeys(each.flow.mode for each in candidates if each.is_aggregation))
    members: dict[SinkMode, list[Candidate]] = {mode: [] for mode in modes or [SinkMode.APPEND]}
    for each in candidates:
        mode = each.flow.mode if each.is_aggregation else next(iter(members))
        if isinstance(each.state, KeyedState) and modes:
            mode = SinkMode.UPDATE
        if mode in members:  # otherwise the flow has a query of its own
            members[mode].append(each)
    return members


def group_of(source: str, mode: SinkMode, members: Sequence[Candidate]) -> Flow:
    parts = tuple(each.flow for each in members)
    return Flow(
        f"{source}-shared" if mode is SinkMode.APPEND else f"{source}-shared-changes",
        source,
        mode,
        sinks=tuple(sink for part in parts for sink in part.sinks),
        views=tuple(view for part in parts for view in part.views),
        owned=frozenset().union(*(part.owned for part in parts)),
        counted=frozenset().union(*(part.counted for part in parts)),
        uses_state_trigger=True,
        parts=parts,
    )
