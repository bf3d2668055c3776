"""The status of a pipeline as a record of the topic `__odradek_pipelines`, from which consoles on any machine read it.

The key is `NAME@HOST`, so that the topic, which is compacted, keeps the last status of each. A record has a bounded
size: what exceeds a limit is left out. Any client can write to a topic, so that parsing refuses what it does not know.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from odradek.pipelines.operating.status import ENDED, PipelineStatus

if TYPE_CHECKING:
    from collections.abc import Sequence

TOPIC = "__odradek_pipelines"
# A status is written every two seconds. The size of the topic stays below 16 MB for each replica, and the status of a
# pipeline that has ended is kept for a week.
TOPIC_CONFIG = {
    "cleanup.policy": "compact,delete",
    "compression.type": "producer",
    "retention.ms": str(7 * 24 * 3600 * 1000),
    "retention.bytes": str(16 * 1024 * 1024),
    "segment.bytes": str(2 * 1024 * 1024),
    "segment.ms": str(3600 * 1000),
    "min.cleanable.dirty.ratio": "0.2",
}
PUBLISH_EVERY_S = 2.0
STALE_S = 15.0  # without a record for this time, the process is gone or cut off
VERSION = 1
MOST_NODES = 300
MOST_FLOWS = 100
MOST_EXPECTATIONS = 300
MOST_NAMES = 200  # topics, sinks
LONGEST_TEXT = 400
LARGEST_RECORD_BYTES = 900_000  # below the default limit of topics


@dataclass(frozen=True, slots=True)
class GraphNode:
    """A source, step, view or sink. `inputs` are the ids of the nodes that it reads, `topics` those of a source or
    sink."""

    id: str
    kind: str
    name: str
    detail: str
    inputs: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PublishedPipeline:
    """What a supervisor publishes: the status, the graph, and where dead letters are."""

    host: str
    status: PipelineStatus
    nodes: tuple[GraphNode, ...] = ()
    dead_letters: str | None = None
    facts: tuple[str, ...] = ()
    published_s: float = 0.0  # the process is alive, even if its status is older because a batch takes long

    @property
    def key(self) -> str:
        return f"{self.status.name}@{self.host}"

    def is_stale(self, now_s: float) -> bool:
        return self.status.state not in ENDED and now_s - self.published_s > STALE_S


def encode(published: PublishedPipeline) -> tuple[bytes, bytes]:
    """Key and value. Offsets of partitions are left out: their number has no bound."""
    status = bounded(published.status)
    found: dict[str, Any] = {
        "version": VERSION,
        "host": published.host[:LONGEST_TEXT],
        "status": status.as_object(),
        "graph": [asdict(each) for each in bounded_nodes(published.nodes)],
        "published_s": published.published_s,
        "dead_letters": published.dead_letters,
        "facts": list(published.facts)[:20],
    }
    value = json.dumps(found, separators=(",", ":")).encode()
    if len(value) > LARGEST_RECORD_BYTES:
        value = json.dumps({**found, "graph": [], "status": replace(status, flows=()).as_object()}).encode()
    return published.key.encode(), value


def bounded(status: PipelineStatus) -> PipelineStatus:
    flows = tuple(
        replace(
            each,
            positions={},
            read=dict(list(each.read.items())[:MOST_NAMES]),
            lag=dict(list(each.lag.items())[:MOST_NAMES]),
            written=dict(list(each.written.items())[:MOST_NAMES]),
        )
        for each in status.flows[:MOST_FLOWS]
    )
    last_error = None if status.last_error is None else status.last_error[:LONGEST_TEXT]
    return replace(
        status,
        flows=flows,
        expectations=status.expectations[:MOST_EXPECTATIONS],
        note=status.note[:LONGEST_TEXT],
        last_error=last_error,
    )


def bounded_nodes(nodes: Sequence[GraphNode]) -> list[GraphNode]:
    kept = [
        replace(each, detail=each.detail[:LONGEST_TEXT], topics=each.topics[:MOST_NAMES]) for each in nodes[:MOST_NODES]
    ]
    known = {each.id for each in kept}
    return [replace(each, inputs=tuple(name for name in each.inputs if name in known)) for each in kept]


def parse(value: bytes) -> PublishedPipeline | None:
    """None for a value that is not a status of this version."""
    try:
        found = json.loads(value)
        if found["version"] != VERSION:
            return None
        nodes = [
            GraphNode(**{**each, "inputs": tuple(each["inputs"]), "topics": tuple(map(str, each["topics"]))})
            for each in found["graph"][:MOST_NODES]
        ]
        published = PublishedPipeline(
            str(found["host"]),
            PipelineStatus.of_object(found["status"]),
            tuple(nodes),
            None if found["dead_letters"] is None else str(found["dead_letters"]),
            tuple(map(str, found["facts"])),
            float(found["published_s"]),
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return published if is_plausible(published) else None


def is_plausible(published: PublishedPipeline) -> bool:
    """Whether every field has its type and each node follows its inputs, so that readers need not check again."""
    status = published.status
    known: set[str] = set()
    for node in published.nodes:
        texts = (node.id, node.kind, node.name, node.detail)
        if not all(isinstance(each, str) for each in texts) or not set(node.inputs) <= known or node.id in known:
            return False
        known.add(node.id)
    numbers: list[Any] = [status.updated_s, status.started_s, status.restarts, status.pid]
    texts_of_status: list[Any] = [status.name, status.engine, status.note]
    for flow in status.flows:
        numbers += [flow.batch_ms, flow.batches, flow.input_per_s, flow.processed_per_s, flow.late_rows]
        numbers += [flow.state_rows, flow.state_bytes, flow.unparsed]
        for counts in (flow.read, flow.lag, flow.written):
            numbers += counts.values()
        texts_of_status += [flow.name, flow.watermark or ""]
    for each in status.expectations:
        numbers += [each.rows, each.checked]
        texts_of_status += [each.step, each.name, each.otherwise]
    return all(isinstance(each, int | float) for each in numbers) and all(
        isinstance(each, str) for each in texts_of_status
    )
