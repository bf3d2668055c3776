"""The overview: counts, what needs attention, the busiest topics. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from heapq import nlargest
from typing import TYPE_CHECKING, NamedTuple

from odradek.console.views.figures import DASH, number, plural, rate, size, sparkline

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odradek.console.cluster.snapshot import ClusterState, PartitionState, Snapshot, TopicSummary
    from odradek.console.history import Samples, Series

SHOWN_PROBLEMS = 8
BUSIEST = 8


class Tile(NamedTuple):
    """A figure with a name. `tone` is good, bad, warn, or empty."""

    title: str
    figure: str
    note: str = ""
    tone: str = ""
    href: str = ""


class BusyTopic(NamedTuple):
    topic: TopicSummary
    line: str


@dataclass(frozen=True, slots=True)
class Overview:
    headline: str
    tone: str
    tiles: Sequence[Tile]
    problems: Sequence[PartitionState]
    more_problems: int
    busiest: Sequence[BusyTopic]
    has_topics: bool


def overview(snapshot: Snapshot, samples: Samples, rates: Series, *, is_answering: bool = True) -> Overview:
    """Without an answer of the cluster, the snapshot is the last one: it does not show that brokers run."""
    state = snapshot.state
    health = snapshot.health
    offline, under_replicated = health.offline, health.under_replicated
    fenced = sum(broker.is_fenced for broker in state.brokers.values())
    brokers = len(state.brokers)
    own = [topic for topic in snapshot.topics.values() if not topic.is_internal]
    last = samples.since(samples.count - 1)
    values = last[-1].values if last else {}
    stored = sum(directory.stored_bytes for directory in snapshot.disks.directories)
    reporting = brokers if snapshot.disks.is_denied else len({each.broker_id for each in snapshot.disks.directories})
    tiles = (
        Tile(
            "Brokers",
            f"{brokers - fenced}",
            _brokers_note(fenced, brokers, is_answering=is_answering),
            "bad" if fenced else "good",
            "/brokers",
        ),
        _controller_tile(state),
        Tile(
            "Topics", number(len(own)), f"and {plural(len(snapshot.topics) - len(own), 'internal one')}", href="/topics"
        ),
        Tile("Partitions", number(len(state.partitions)), "with internal ones"),
        Tile(
            "Under-replicated",
            number(under_replicated),
            "partitions" if under_replicated else "all replicas in sync",
            "warn" if under_replicated else "good",
            "/topics?only=problems",
        ),
        Tile(
            "Offline",
            number(offline),
            "partitions without a leader" if offline else "every partition has a leader",
            "bad" if offline else "good",
            "/topics?only=problems",
        ),
        Tile("Records in", rate(values["records"]) if "records" in values else DASH, "per second"),
        Tile("Stored", size(stored), f"on {'all' if reporting == brokers else f'{reporting} of {brokers}'} brokers"),
    )
    busiest = nlargest(BUSIEST, own, key=lambda topic: (topic.records_per_s, topic.records))
    return Overview(
        *_headline(offline, health.under_min_in_sync, under_replicated, fenced, is_answering=is_answering),
        tiles,
        health.problems[:SHOWN_PROBLEMS],
        max(health.problem_count - SHOWN_PROBLEMS, 0),
        [BusyTopic(topic, sparkline(rates.points(topic.name, snapshot.time_s))) for topic in busiest],
        bool(own),
    )


def _brokers_note(fenced: int, brokers: int, *, is_answering: bool) -> str:
    if not is_answering:
        return "ran at the last answer"
    return f"{fenced} of {brokers} fenced" if fenced else "all running"


def _controller_tile(state: ClusterState) -> Tile:
    """Controllers of Apache Kafka may be nodes that are no brokers."""
    controller = state.cluster.controller_id
    if controller is not None:
        return Tile("Controller", str(controller), "broker id" if controller in state.brokers else "node id")
    if not state.cluster.knows_controller:
        return Tile("Controller", DASH, "not reported")
    return Tile("Controller", DASH, "none elected", "bad")


def _headline(
    offline: int, under_min: int, under_replicated: int, fenced: int, *, is_answering: bool
) -> tuple[str, str]:
    if not is_answering:
        return "The cluster does not answer", "bad"
    if offline:
        return f"{plural(offline, 'partition')} without a leader: nothing can be written or read there", "bad"
    if under_min:
        return f"{plural(under_min, 'partition')} below min.insync.replicas: writes with acks=all are refused", "bad"
    if fenced:
        return f"{plural(fenced, 'broker')} fenced; every partition still has a leader", "warn"
    if under_replicated:
        wait = "waits" if under_replicated == 1 else "wait"
        return f"{plural(under_replicated, 'partition')} {wait} for a replica to catch up", "warn"
    return "All brokers run, and all replicas are in sync", "good"
