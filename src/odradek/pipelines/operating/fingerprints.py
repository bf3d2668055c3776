"""Fingerprints of the parts of a definition that a checkpoint depends on, to detect incompatible changes.

A checkpoint holds offsets of sources and the state of operators. It stays valid with another sink, another
expectation or other SQL in a stateless step. It becomes invalid with other topics, other keys or aggregates, another
number of state partitions, another folder of files, or another engine; a sink that moves to another flow would start
over. The texts are stored
with checkpoints: a change of them is a new version, and a checkpoint of another version is refused.
"""

from __future__ import annotations

from dataclasses import field, replace
from typing import TYPE_CHECKING, Any

from odradek.conventions.dataclass import dataclass
from odradek.pipelines.definition.columns import known_columns, lookup
from odradek.pipelines.definition.model import (
    FileOrigin,
    FilesTarget,
    RunningAggregate,
    Sink,
    TopicOrigin,
)
from odradek.pipelines.definition.operations import (
    Aggregation,
    Deduplication,
    KeyedState,
    PythonFunction,
    Sql,
    StreamJoin,
)
from odradek.pipelines.definition.vocabulary import Engine
from odradek.pipelines.planning.flows import split_flows
from odradek.pipelines.planning.sql_parts import normalised, state_parts
from odradek.pipelines.planning.state import State, state_of
from odradek.pipelines.planning.streams import Streams

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from odradek.pipelines.definition.graph import Graph
    from odradek.pipelines.definition.model import Changes, Pipeline, Source, Step, View
    from odradek.pipelines.definition.operations import Operation
    from odradek.pipelines.definition.references import NamedExpression
    from odradek.pipelines.definition.table_columns import Columns
    from odradek.pipelines.planning.flow import Flow

REALTIME_FLOW = "realtime"
STATE_SETTINGS = {
    "spark.sql.session.timeZone": "time zone",
    "spark.sql.shuffle.partitions": "partitions of the state",
    "spark.sql.streaming.stateStore.providerClass": "store of the state",
}
NOTHING = "nothing"
# Compared only where both sides have them: on a cluster, Spark's defaults are not known.
COMPARED_IF_KNOWN = frozenset(STATE_SETTINGS.values())
VERSION = 3


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """The fingerprint of one flow. `types` are compared only where both sides know them."""

    facts: dict[str, str] = field(default_factory=dict)
    types: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Fingerprints:
    """The fingerprints of a pipeline; `ends` maps each sink and view to its flow.

    `functions` are the Python steps that keep state, which only Spark can tell, and whether they aggregate."""

    engine: str
    flows: dict[str, Fingerprint] = field(default_factory=dict)
    ends: dict[str, str] = field(default_factory=dict)
    pipeline: str | None = None  # the pipeline's name
    functions: dict[str, bool] = field(default_factory=dict)
    version: int = VERSION

    def as_object(self) -> dict[str, Any]:
        flows = {name: {"facts": each.facts, "types": each.types} for name, each in self.flows.items()}
        return {
            "version": VERSION,
            "pipeline": self.pipeline,
            "engine": self.engine,
            "flows": flows,
            "ends": self.ends,
            "functions": self.functions,
        }

    @classmethod
    def of_object(cls, found: dict[str, Any]) -> Fingerprints:
        flows = {name: Fingerprint(each["facts"], each["types"]) for name, each in found["flows"].items()}
        functions = found.get("functions", {})
        return cls(found["engine"], flows, found["ends"], found.get("pipeline"), functions, found.get("version", 1))


@dataclass(frozen=True, slots=True)
class Change:
    """A change of the definition that makes its checkpoint invalid."""

    where: str
    what: str
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}: {self.before} → {self.after}"


def find_changes(before: Fingerprints, after: Fingerprints, begun: Collection[str]) -> list[Change]:
    """The changes that make a checkpoint invalid; `begun` has the flows with a checkpoint."""
    kept = [name for name in before.flows if name in begun]
    if kept and before.engine != after.engine:
        return [Change("the pipeline", "engine", before.engine, after.engine)]
    changes: list[Change] = []
    for name in kept:
        if name in after.flows:
            changes += flow_changes(name, before.flows[name], after.flows[name])
    for end, flow in before.ends.items():
        now = after.ends.get(end, flow)
        if flow in begun and now != flow:
            changes.append(Change(end, "fed by", f"flow {flow}", f"flow {now}"))
    return changes


def flow_changes(name: str, before: Fingerprint, after: Fingerprint) -> list[Change]:
    facts = [
        (what, before.facts.get(what, NOTHING), after.facts.get(what, NOTHING))
        for what in dict.fromkeys((*before.facts, *after.facts))
        if what not in COMPARED_IF_KNOWN or (what in before.facts and what in after.facts)
    ]
    types = [(what, before.types[what], after.types[what]) for what in before.types if what in after.types]
    return [Change(f"flow {name}", what, old, new) for what, old, new in (*facts, *types) if old != new]


def as_recorded(pipeline: Pipeline, stored: Fingerprints | None) -> Pipeline:
    """The pipeline with the state of its Python steps as the checkpoint's last run found it."""
    known = {} if stored is None else stored.functions

    def recorded(step: Step) -> Step:
        operation = step.operation
        if not isinstance(operation, PythonFunction) or operation.keeps_state is not None:
            return step
        is_stateful, updates = step.name in known, known.get(step.name, False)
        return replace(step, operation=replace(operation, keeps_state=is_stateful, updates_rows=updates))

    return replace(pipeline, steps=tuple(map(recorded, pipeline.steps)))


def merge(before: Fingerprints | None, after: Fingerprints) -> Fingerprints:
    """The fingerprints to store for an accepted definition, including removed flows, whose checkpoints are kept."""
    if before is None or before.engine != after.engine or before.pipeline not in {None, after.pipeline}:
        return after
    return replace(after, flows={**before.flows, **after.flows})


class Reader:
    """Computes the fingerprints of a definition. `clusters` maps bootstrap servers to cluster ids."""

    def __init__(
        self,
        pipeline: Pipeline,
        graph: Graph,
        defaults: Mapping[str, str],
        clusters: Mapping[str, str],
    ) -> None:
        self._pipeline = pipeline
        self._graph = graph
        self._settings = {**defaults, **pipeline.spark}
        self._clusters = clusters
        self._sources = {each.name: each for each in pipeline.sources}
        self._steps = {each.name: each for each in pipeline.steps}
        self._columns = known_columns(pipeline, graph)
        self._streams = Streams.of(pipeline, graph, self._columns)
        self._streaming = self._streams.names

    def read(self) -> Fingerprints:
        pipeline = self._pipeline
        if pipeline.engine is Engine.REALTIME:
            streams = [each for each in pipeline.sources if each.name in self._streaming]
            facts = dict(map(self._source, streams))
            realtime = Fingerprint(self._hidden(facts))
            return Fingerprints(str(pipeline.engine), {REALTIME_FLOW: realtime}, pipeline=pipeline.name)
        flows = split_flows(pipeline, self._graph)
        ends = {f"sink {sink.name}": flow.name for flow in flows for sink in (*flow.sinks, *files_of(flow))}
        ends |= {f"view {view.name}": flow.name for flow in flows for view in flow.views}
        states = {each.name: state_of(each, self._streaming) for each in pipeline.steps}
        functions = {name: State.AGGREGATION in state for name, state in states.items() if State.FUNCTION in state}
        read = {flow.name: self._flow(flow) for flow in flows}
        return Fingerprints(str(pipeline.engine), read, ends, pipeline.name, functions)

    def _flow(self, flow: Flow) -> Fingerprint:
        facts: dict[str, str] = {}
        types: dict[str, str] = {}
        has_state = False
        for name in self._graph.upstream(flow.root):
            if name not in self._streaming:
                continue
            if name in self._sources:
                facts.update([self._source(self._sources[name])])
            elif self._has_state(self._steps[name]):
                has_state = True
                step = self._steps[name]
                facts[f"step {name}"] = step_text(step, self._event_times(step))
                types |= key_types(f"step {name}", step.operation, self._columns)
        ends: list[Sink | View] = [*flow.sinks, *flow.views]
        for end in ends:
            changes = end.changes
            if changes is not None:
                facts[changes_fact(end)] = changes_text(changes)
        for files in files_of(flow):
            facts["files"] = files_text(files.target)
        if flow.aggregate is not None and isinstance(flow.aggregate.content, RunningAggregate):
            has_state = True
            content = flow.aggregate.content
            facts[f"view {flow.aggregate.name}"] = groups_text(content.by, content.aggregates)
        if has_state:
            facts |= {noun: self._settings[key] for key, noun in STATE_SETTINGS.items() if key in self._settings}
        return Fingerprint(self._hidden(facts), types)

    def _event_times(self, step: Step) -> list[str]:
        """The columns that `within` compares: of a deduplication's input, or of both sides of a join."""
        if isinstance(step.operation, StreamJoin):
            sides = (step.operation.input, step.operation.stream)
            return [min(self._streams.watermarks.get(name) or (NOTHING,)) for name in sides]
        return sorted(self._streams.of_inputs(step, self._graph))[:1]

    def _hidden(self, facts: Mapping[str, str]) -> dict[str, str]:
        """Facts without the values of secrets: they are stored."""
        return {what: self._pipeline.without_secrets(text) for what, text in facts.items()}

    def _has_state(self, step: Step) -> bool:
        read = [each for each in self._graph.inputs.get(step.name, ()) if each in self._streaming]
        return bool(state_of(step, self._streaming)) or len(read) > 1

    def _source(self, source: Source) -> tuple[str, str]:
        origin = source.origin
        what = f"source {source.name}"
        if isinstance(origin, TopicOrigin):
            servers = origin.bootstrap_servers or self._pipeline.bootstrap_servers
            cluster = self._clusters.get(servers)
            where = "" if cluster is None else f" of cluster {cluster}"
            named = f"pattern {origin.pattern}" if origin.pattern is not None else f"topics {', '.join(origin.topics)}"
            return what, named + where
        assert isinstance(origin, FileOrigin)  # a database is not a stream
        return what, f"{origin.format} files in {origin.path}"


def files_of(flow: Flow) -> list[Any]:
    return [] if flow.files is None else [flow.files]


def changes_fact(end: Sink | View) -> str:
    return f"changes of {'sink' if isinstance(end, Sink) else 'view'} {end.name}"


def changes_text(changes: Changes) -> str:
    """What determines the columns and the key of a table of change data, and the order of its changes."""
    kind = "history" if changes.keeps_history else "current rows"
    return f"{kind} by {', '.join(changes.key)} in the order of {changes.sequence}"


def files_text(target: FilesTarget) -> str:
    by = f" by {', '.join(target.partition_by)}" if target.partition_by else ""
    return f"{target.format} in {target.path}{by}"


def step_text(step: Step, event_times: Sequence[str]) -> str:
    """What determines the state of a step."""
    operation = step.operation
    if isinstance(operation, Aggregation):
        return window_text(operation) + groups_text(operation.by, operation.aggregates)
    if isinstance(operation, Deduplication):
        within = "" if operation.within is None else f" within {operation.within} of {', '.join(event_times)}"
        return f"deduplicated by {', '.join(operation.key)}{within or ' for ever'}"
    if isinstance(operation, StreamJoin):
        sides = f"{operation.input} and {operation.stream} on {', '.join(operation.on)}"
        return f"{operation.how} join of {sides} within {operation.within} of {' and '.join(event_times)}"
    if isinstance(operation, KeyedState):
        return f"{operation.processor} by {', '.join(operation.key)} in {operation.clock} time"
    if isinstance(operation, Sql):
        return "; ".join(state_parts(operation.text)) or NOTHING
    return f"function {operation.function}" if isinstance(operation, PythonFunction) else type(operation).__name__


def window_text(operation: Operation) -> str:
    window = operation.window if isinstance(operation, Aggregation) else None
    if window is not None and window.gap is not None:
        return f"sessions with a gap of {window.gap} of {window.column}, "
    slide = "" if window is None or window.slide is None else f" every {window.slide}"
    return "" if window is None else f"windows of {window.size}{slide} of {window.column}, "


def groups_text(by: Iterable[str], aggregates: Iterable[NamedExpression]) -> str:
    return f"by {', '.join(by) or NOTHING}: {', '.join(normalised(each.expression) for each in aggregates)}"


def key_types(what: str, operation: Operation, columns: Mapping[str, Columns | None]) -> dict[str, str]:
    if not isinstance(operation, Aggregation | Deduplication | KeyedState | StreamJoin):
        return {}
    known = lookup(columns, operation.input)
    if isinstance(operation, StreamJoin):
        names = operation.on
    else:
        names = operation.by if isinstance(operation, Aggregation) else operation.key
    types = {name: None if known is None else known.type_of(name) for name in names}
    return {f"type of {name} in {what}": each.ddl for name, each in types.items() if each is not None}
