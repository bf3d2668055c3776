"""Splits a graph into flows, one streaming query each.

A stateless stream is one flow: its source is read once, and each batch is written to all sinks. State must be part of
the streaming query, so every stateful step is the root of a separate flow: up to the root the plan is a stream, behind
it a batch. The views of a stateless stream are a separate flow, so that sinks do not wait for them. A rejected row is
reported by exactly one flow, the owner of its step.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from odradek.pipelines.definition.model import Changes, FilesTarget, RunningAggregate
from odradek.pipelines.definition.vocabulary import SinkMode
from odradek.pipelines.planning.flow import Flow
from odradek.pipelines.planning.state import State, state_of
from odradek.pipelines.planning.streams import streaming_names

if TYPE_CHECKING:
    from collections.abc import Iterable

    from odradek.pipelines.definition.graph import Graph
    from odradek.pipelines.definition.model import Pipeline, Sink, View


def split_flows(pipeline: Pipeline, graph: Graph) -> list[Flow]:
    """The flows of a pipeline; static sources are read by each flow that uses them."""
    splitter = Splitter(pipeline, graph)
    flows: dict[str, Flow] = {}
    for sink in pipeline.sinks:
        if isinstance(sink.target, FilesTarget):
            mode = splitter.mode_of(sink.input, sink.mode)
            flows[f"files-{sink.name}"] = Flow(f"files-{sink.name}", sink.input, mode, files=sink)
        else:
            add(flows, splitter.flow_to(sink.input, splitter.mode_of(sink.input, sink.mode)), sinks=(sink,))
    for view in pipeline.views:
        if isinstance(view.content, RunningAggregate):
            name = f"view-{view.name}"
            flows[name] = Flow(name, view.input, SinkMode.UPDATE, views=(view,), aggregate=view)
        else:
            flow = splitter.flow_to(view.input, splitter.mode_of(view.input, view_mode(view)))
            if not splitter.stateful.intersection(
                graph.upstream(flow.root)
            ):  # a second copy of the state would cost too much
                flow = replace(flow, name=f"{flow.root}-views", uses_state_trigger=True)
            add(flows, flow, views=(view,))
    assign_owners(flows, splitter)
    return list(flows.values())


def view_mode(view: View) -> SinkMode:
    """A view has every row that changed; one of change data takes each row once."""
    return SinkMode.APPEND if isinstance(view.content, Changes) else SinkMode.UPDATE


def add(flows: dict[str, Flow], flow: Flow, sinks: tuple[Sink, ...] = (), views: tuple[View, ...] = ()) -> None:
    known = flows.get(flow.name, flow)
    flows[flow.name] = replace(
        known,
        after=tuple(dict.fromkeys((*known.after, *flow.after))),
        sinks=known.sinks + sinks,
        views=known.views + views,
    )


def assign_owners(flows: dict[str, Flow], splitter: Splitter) -> None:
    """Assigns one owner flow to each source and step that may reject rows.

    Without a topic for dead letters, records that fail to parse are only counted: if no flow has them in its batches, a
    query that reads the source counts them, which saves a flow that would read it again."""
    sources = {each.name for each in splitter.pipeline.sources}
    for name in splitter.refusing():
        owner = next((each for each in flows.values() if is_in_batch(each, name)), None)
        reader = next((each for each in flows.values() if name in splitter.graph.upstream(each.root)), None)
        if owner is None and reader is not None and name in sources and splitter.pipeline.dead_letters is None:
            flows[reader.name] = replace(reader, counted=reader.counted | {name})
            continue
        if owner is None:
            add(flows, splitter.flow_to(name, splitter.mode_of(name, SinkMode.APPEND)))
            owner = next(each for each in flows.values() if is_in_batch(each, name))
        flows[owner.name] = replace(owner, owned=owner.owned | {name})


def is_in_batch(flow: Flow, name: str) -> bool:
    return flow.files is None and flow.aggregate is None and (name == flow.root or name in flow.after)


class Splitter:
    """Finds the root of the flow for each sink and view."""

    def __init__(self, pipeline: Pipeline, graph: Graph) -> None:
        self.pipeline = pipeline
        self.graph = graph
        self.streaming = streaming_names(pipeline, graph)
        states = {each.name: state_of(each, self.streaming) for each in pipeline.steps}
        self.stateful = {name for name, state in states.items() if state}
        self.final = {name for name, state in states.items() if State.SESSIONS in state}
        self.updating = {name for name, state in states.items() if State.AGGREGATION in state}

    def refusing(self) -> Iterable[str]:
        """Sources whose records may fail to parse, and steps with expectations."""
        sources = [each.name for each in self.pipeline.sources if each.is_topic_stream]
        return sources + [
            each.name for each in self.pipeline.steps if each.expectations and each.name in self.streaming
        ]

    def mode_of(self, name: str, wanted: SinkMode) -> SinkMode:
        """The output mode: only results of an aggregation can change, and not those of sessions."""
        path = self.graph.upstream(name)
        is_final = wanted is SinkMode.APPEND or self.final.intersection(path)
        changes = self.updating.intersection(path) and not is_final
        return SinkMode.UPDATE if changes else SinkMode.APPEND

    def flow_to(self, name: str, mode: SinkMode) -> Flow:
        path = [each for each in self.graph.upstream(name) if each in self.streaming]
        root = next(each for each in path if self.can_be_root(each, path))
        before = set(self.graph.upstream(root))
        suffix = "" if mode is SinkMode.APPEND else "-changes"
        return Flow(root + suffix, root, mode, tuple(each for each in path if each not in before))

    def can_be_root(self, root: str, path: list[str]) -> bool:
        """Whether no step behind the root is stateful or reads another stream."""
        before = set(self.graph.upstream(root))
        after = [each for each in path if each not in before]
        if self.stateful.intersection(after) or any(each not in self.graph.inputs for each in after):
            return False
        allowed = {root, *after}
        return all(each in allowed or each not in self.streaming for name in after for each in self.graph.inputs[name])
