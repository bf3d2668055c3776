"""The status of a pipeline as a record of the topic `__odradek_pipelines`, from which consoles on any machine read it.

The key is `NAME@HOST`, so that the topic, which is compacted, keeps the last status of each. A record has a bounded
size: what exceeds a limit is left out. Any client can write to a topic, so that parsing refuses what it does not know.
"""

from __future__ import annotations

import json
from dataclasses import asdict, replace

from odradek.conventions.dataclass import dataclass
from odradek.pipelines.operating.status import ENDED, PipelineStatus, decoded

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
MOST_FACTS = 20
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
    found = replace(
        published, host=published.host[:LONGEST_TEXT], status=bounded(published.status),
        nodes=bounded_nodes(published.nodes), facts=published.facts[:MOST_FACTS],
    )  # fmt: skip
    value = text_of(found)
    if len(value) > LARGEST_RECORD_BYTES:
        value = text_of(replace(found, nodes=(), status=replace(found.status, flows=())))
    return published.key.encode(), value


def text_of(published: PublishedPipeline) -> bytes:
    return json.dumps({"version": VERSION, **asdict(published)}, separators=(",", ":")).encode()


def bounded(status: PipelineStatus) -> PipelineStatus:
    flows = tuple(
        replace(each, positions={}, read=first(each.read), lag=first(each.lag), written=first(each.written))
        for each in status.flows[:MOST_FLOWS]
    )
    return replace(
        status,
        flows=flows,
        expectations=status.expectations[:MOST_EXPECTATIONS],
        note=status.note[:LONGEST_TEXT],
        last_error=None if status.last_error is None else status.last_error[:LONGEST_TEXT],
    )


def first(counts: dict[str, int]) -> dict[str, int]:
    return dict(list(counts.items())[:MOST_NAMES])


def bounded_nodes(nodes: tuple[GraphNode, ...]) -> tuple[GraphNode, ...]:
    kept = [
        replace(each, detail=each.detail[:LONGEST_TEXT], topics=each.topics[:MOST_NAMES]) for each in nodes[:MOST_NODES]
    ]
    known = {each.id for each in kept}
    return tuple(replace(each, inputs=tuple(name for name in each.inputs if name in known)) for each in kept)


def parse(value: bytes) -> PublishedPipeline | None:
    """None for a value that is not a status of this version, or larger than one. Texts and lists are cut to the limits
    of those that are written."""
    if len(value) > LARGEST_RECORD_BYTES:
        return None
    try:
        found = json.loads(value)
        if found.pop("version") != VERSION:
            return None
        json.dumps(found, ensure_ascii=False, allow_nan=False).encode()  # ValueError for halves of surrogate pairs, too
        read: PublishedPipeline = decoded(PublishedPipeline, found)
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
        return None
    published = replace(
        read, status=bounded(read.status), nodes=bounded_nodes(read.nodes), facts=read.facts[:MOST_FACTS]
    )
    return published if is_plausible(published) else None


def is_plausible(published: PublishedPipeline) -> bool:
    """Whether texts have their limits and each node follows its inputs, so that readers need not check again."""
    known: set[str] = set()
    for node in published.nodes:
        if not set(node.inputs) <= known or node.id in known:
            return False
        known.add(node.id)
    return max(map(len, (published.host, published.status.name, published.status.engine))) <= LONGEST_TEXT
