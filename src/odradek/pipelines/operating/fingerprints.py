"""Fingerprints of what a checkpoint depends on, to detect changes of a definition that it does not survive.

A checkpoint holds offsets of sources and the state of operators. It stays valid with another end, another check or
other SQL without state. It becomes invalid with other topics, keys or aggregates, another number of state partitions,
another folder of files, or another engine; an end that moves to another flow would start over. The texts are stored
with checkpoints. Those of another version are refused: `odradek pipeline reset`.
"""

from __future__ import annotations

from dataclasses import asdict, field, replace
from typing import TYPE_CHECKING, Any

from odradek.conventions.dataclass import dataclass
from odradek.pipelines.definition.model import FilesTarget, Source, TableTarget, TopicOrigin
from odradek.pipelines.definition.operations import Aggregation, Deduplication, KeyedState, StreamJoin
from odradek.pipelines.definition.vocabulary import Engine
from odradek.pipelines.planning.lineage import operation_detail
from odradek.pipelines.planning.plan import GroupSql, PairSql
from odradek.pipelines.sql.text import tokens_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from odradek.pipelines.planning.plan import End, Flow, Plan, Table
    from odradek.pipelines.sql.joins import Bound

VERSION = 5
REALTIME_FLOW = "realtime"
NOTHING = "nothing"
STATE_SETTINGS = {
    "spark.sql.session.timeZone": "time zone",
    "spark.sql.shuffle.partitions": "partitions of the state",
    "spark.sql.streaming.stateStore.providerClass": "store of the state",
}


@dataclass(frozen=True, slots=True)
class Fingerprints:
    """The fingerprints of a pipeline; `flows` has the facts of each, and `ends` maps each sink and view to its flow."""

    engine: str
    flows: dict[str, dict[str, str]] = field(default_factory=dict)
    ends: dict[str, str] = field(default_factory=dict)
    pipeline: str = ""

    def as_object(self) -> dict[str, Any]:
        flows = {name: {"facts": facts} for name, facts in self.flows.items()}
        return {"version": VERSION, **asdict(self), "flows": flows}

    @classmethod
    def of_object(cls, found: dict[str, Any]) -> Fingerprints | None:
        """The stored fingerprints; None if they are of another version."""
        if found.get("version") != VERSION:
            return None
        flows = {name: each["facts"] for name, each in found["flows"].items()}
        return cls(found["engine"], flows, found["ends"], found["pipeline"])


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
    changes = [
        Change(f"flow {name}", what, old, new)
        for name in kept
        if name in after.flows
        for what, old, new in _differences(before.flows[name], after.flows[name])
    ]
    moved = [(end, flow, after.ends.get(end, flow)) for end, flow in before.ends.items() if flow in begun]
    return [*changes, *(Change(end, "fed by", f"flow {old}", f"flow {new}") for end, old, new in moved if old != new)]


def _differences(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    for what in dict.fromkeys((*before, *after)):
        old, new = before.get(what, NOTHING), after.get(what, NOTHING)
        is_compared = what not in STATE_SETTINGS.values() or NOTHING not in {old, new}  # a default of Spark is unknown
        if old != new and is_compared:
            yield what, old, new


def merge(before: Fingerprints | None, after: Fingerprints) -> Fingerprints:
    """The fingerprints to store for an accepted definition, including removed flows, whose checkpoints are kept."""
    if before is None or (before.engine, before.pipeline) != (after.engine, after.pipeline):
        return after
    return replace(after, flows={**before.flows, **after.flows})


def fingerprints(plan: Plan, defaults: Mapping[str, str], clusters: Mapping[str, str]) -> Fingerprints:
    """The fingerprints of a plan; `defaults` are Spark's settings, `clusters` maps bootstrap servers to cluster ids."""
    pipeline = plan.pipeline
    if pipeline.engine is Engine.REALTIME:
        sources = dict(_source(plan, each, clusters) for each in plan.streams)
        return Fingerprints(str(pipeline.engine), {REALTIME_FLOW: sources}, pipeline=pipeline.name)
    settings = {
        noun: value for key, noun in STATE_SETTINGS.items() if (value := {**defaults, **pipeline.spark}.get(key))
    }
    flows = {flow.name: _of_flow(plan, flow, settings, clusters) for flow in plan.flows}
    ends = {_end_name(end): flow.name for flow in plan.flows for end in _ends_of(flow)}
    return Fingerprints(str(pipeline.engine), flows, ends, pipeline.name)


def _ends_of(flow: Flow) -> tuple[End, ...]:
    return flow.ends if flow.files is None else (*flow.ends, flow.files)


def _end_name(end: End) -> str:
    return f"{'view' if end.is_view else 'sink'} {end.name}"


def _of_flow(plan: Plan, flow: Flow, settings: Mapping[str, str], clusters: Mapping[str, str]) -> dict[str, str]:
    facts: dict[str, str] = {}
    state = plan.path(flow.root).state
    for table in map(plan.table, plan.upstream(flow.root)):
        if isinstance(table.made_by, Source) and table.made_by.is_stream:
            facts.update([_source(plan, table.made_by, clusters)])
        if table.name in state:
            facts[f"{'view' if flow.name.startswith('view-') else 'step'} {table.owner.name}"] = _state_of(plan, table)
    for end in _ends_of(flow):
        facts |= _end_facts(end)
    facts |= settings if state else {}
    return {what: plan.pipeline.without_secrets(text) for what, text in facts.items()}


def _source(plan: Plan, source: Source, clusters: Mapping[str, str]) -> tuple[str, str]:
    origin = source.origin
    if not isinstance(origin, TopicOrigin):
        return f"source {source.name}", f"{getattr(origin, 'format', '')} files in {getattr(origin, 'path', '')}"
    cluster = clusters.get(origin.bootstrap_servers or plan.pipeline.bootstrap_servers)
    named = f"pattern {origin.pattern}" if origin.pattern is not None else f"topics {', '.join(origin.topics)}"
    return f"source {source.name}", named if cluster is None else f"{named} of cluster {cluster}"


def _end_facts(end: End) -> dict[str, str]:
    target = end.target
    if isinstance(target, FilesTarget):
        by = f" by {', '.join(target.partition_by)}" if target.partition_by else ""
        return {"files": f"{target.format} in {target.path}{by}"}
    changes = target.changes if isinstance(target, TableTarget) else None
    if changes is None:
        return {}
    kind = "history" if changes.keeps_history else "current rows"
    text = f"{kind} by {', '.join(changes.key)} in the order of {changes.sequence}"
    return {f"changes of {_end_name(end)}": text}


def _state_of(plan: Plan, table: Table) -> str:
    """What determines the state of a table. Spark itself compares the types of its columns."""
    made = table.made_by
    times = [plan.path(each).event_time for each in table.inputs]
    by = f" by {' and '.join(each or NOTHING for each in times)}" if any(times) else ""
    over = f"over {' and '.join(table.inputs)}{by}"
    match made:
        case GroupSql(query=query, shape=groups):
            aggregates = _joined(query.text(each.span) for each in groups.aggregates)
            return f"by {_joined(each.text for each in groups.keys)}: {aggregates}"
        case PairSql(shape=pairs):
            on = ", ".join(f"{left} = {right}" for left, right in pairs.keys)
            return f"{pairs.how} join on {on} between {_bound(pairs.low)} and {_bound(pairs.high)} {over}"
        case Aggregation():
            return f"{operation_detail(made)}{by}: {_joined(each.expression for each in made.aggregates)}"
        case KeyedState():
            return f"{operation_detail(made)} in {made.clock} time"
        case Deduplication():
            return f"{operation_detail(made)}{by}"
        case StreamJoin():
            return f"{operation_detail(made)} {over}"
    return NOTHING


def _bound(bound: Bound | None) -> str:
    return NOTHING if bound is None else f"{bound.ms} ms{' (open)' if bound.is_open else ''}"


def _joined(expressions: Iterable[str]) -> str:
    """Expressions by their tokens, so that blanks, comments and upper case of words do not matter."""
    return ", ".join(map(_by_tokens, expressions))


def _by_tokens(expression: str) -> str:
    text = ""
    for token in tokens_of(expression):
        word = repr(token.text) if token.kind == "STRING" else token.text.lower()
        is_call = word in {"(", "["} and (text[-1:].isalnum() or text.endswith("_"))
        is_joined = is_call or word in {")", "]", ",", "."} or text.endswith(("(", "[", "."))
        text += word if is_joined or not text else f" {word}"
    return text
