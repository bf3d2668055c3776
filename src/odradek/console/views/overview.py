"""The overview: counts, charts, what needs attention, the busiest topics; how old the state is; brokers. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import nlargest
from typing import TYPE_CHECKING, Any, NamedTuple

from odradek.console.views.figures import DASH, age, number, rate, size
from odradek.console.views.topics import TopicRow, topic_rows
from odradek.conventions.figures import count_text

if TYPE_CHECKING:
    from odradek.admin.broker_requests import KnownBroker
    from odradek.admin.cluster_state import ClusterState, PartitionState
    from odradek.admin.log_directories import LogDirectory
    from odradek.console.cluster.snapshot import BrokerLoad, Snapshot
    from odradek.console.cluster.watch import Freshness
    from odradek.console.models import Sample, Samples, Series

SHOWN_PROBLEMS = 8
BUSIEST = 8


class Chart(NamedTuple):
    """`unit` is the format in which the browser shows a value: `count`, `bytes`, `ms`."""

    name: str
    title: str
    note: str
    unit: str


CHARTS = (
    Chart("records", "Records in", "per second, by the growth of offsets", "count"),
    Chart("bytes", "Bytes in", "per second, by the growth of logs on all replicas", "bytes"),
)
# Of brokers that report metrics.
MEASURED_CHARTS = (
    Chart("records", "Records in", "per second", "count"),
    Chart("records_out", "Records out", "per second", "count"),
    Chart("produce_p99", "Produce latency", "p99", "ms"),
    Chart("bytes", "Bytes in", "per second", "bytes"),
    Chart("bytes_out", "Bytes out", "per second", "bytes"),
    Chart("produce_p50", "Produce latency", "median", "ms"),
)


def columns(samples: Sequence[Sample], charts: Sequence[Chart]) -> dict[str, list[Any]]:
    """Times in seconds, and one list of values for each chart; None where a sample lacks the value."""
    found: dict[str, list[Any]] = {"time": [round(sample.time_s, 1) for sample in samples]}
    for chart in charts:
        values = (sample.values.get(chart.name) for sample in samples)
        found[chart.name] = [None if value is None else round(value, 2) for value in values]
    return found


def state_notice(freshness: Freshness) -> str:
    """Empty if there is nothing to say."""
    if freshness.age_s is None:
        return ""
    shown = f"Shown is the state of {age(freshness.age_s * 1000)} ago."
    if freshness.trouble:
        return f"{freshness.trouble}. {shown}"
    missing = _missing(freshness.silent)
    if freshness.is_old:
        return f"{shown} {missing}".rstrip()
    return missing


def _missing(silent: tuple[int, ...]) -> str:
    if not silent:
        return ""
    names = ", ".join(map(str, silent))
    subject = f"Broker {names} does" if len(silent) == 1 else f"Brokers {names} do"
    return f"{subject} not answer: figures of the partitions there are missing."


class Tile(NamedTuple):
    """A figure with a name. `tone` is good, bad, warn, or empty."""

    title: str
    figure: str
    note: str = ""
    tone: str = ""
    href: str = ""


class Overview(NamedTuple):
    headline: str
    tone: str
    tiles: Sequence[Tile]
    problems: Sequence[PartitionState]
    more_problems: int
    busiest: Sequence[TopicRow]
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
    running = f"{fenced} of {brokers} fenced" if fenced else "all running"
    running = running if is_answering else "ran at the last answer"
    internal = count_text(len(snapshot.topics) - len(own), "internal one")
    lagging = ("partitions", "warn") if under_replicated else ("all replicas in sync", "good")
    leaderless = ("partitions without a leader", "bad") if offline else ("every partition has a leader", "good")
    tiles = (
        Tile("Brokers", f"{brokers - fenced}", running, "bad" if fenced else "good", "/brokers"),
        _controller_tile(state),
        Tile("Topics", number(len(own)), f"and {internal}", href="/topics"),
        Tile("Partitions", number(len(state.partitions)), "with internal ones"),
        Tile("Under-replicated", number(under_replicated), *lagging, "/topics?only=problems"),
        Tile("Offline", number(offline), *leaderless, "/topics?only=problems"),
        Tile("Records in", rate(values["records"]) if "records" in values else DASH, "per second"),
        Tile("Stored", size(stored), f"on {'all' if reporting == brokers else f'{reporting} of {brokers}'} brokers"),
    )
    busiest = nlargest(BUSIEST, own, key=lambda topic: (topic.records_per_s, topic.records))
    return Overview(
        *_headline(offline, health.under_min_in_sync, under_replicated, fenced, is_answering=is_answering),
        tiles,
        health.problems[:SHOWN_PROBLEMS],
        max(health.problem_count - SHOWN_PROBLEMS, 0),
        topic_rows(busiest, snapshot, rates),
        bool(own),
    )


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
        return f"{count_text(offline, 'partition')} without a leader: nothing can be written or read there", "bad"
    if under_min:
        below = count_text(under_min, "partition")
        return f"{below} below min.insync.replicas: writes with acks=all are refused", "bad"
    if fenced:
        return f"{count_text(fenced, 'broker')} fenced; every partition still has a leader", "warn"
    if under_replicated:
        wait = "waits" if under_replicated == 1 else "wait"
        return f"{count_text(under_replicated, 'partition')} {wait} for a replica to catch up", "warn"
    return "All brokers run, and all replicas are in sync", "good"


class BrokerRow(NamedTuple):
    broker: KnownBroker
    stored_bytes: int
    share: int  # of the bytes of all brokers, in percent
    directories: Sequence[LogDirectory]
    load: BrokerLoad | None  # None if the broker does not report metrics


def broker_rows(snapshot: Snapshot) -> list[BrokerRow]:
    total = sum(each.stored_bytes for each in snapshot.disks.directories) or 1
    rows = []
    for broker_id, broker in snapshot.state.brokers.items():
        own = [each for each in snapshot.disks.directories if each.broker_id == broker_id]
        stored = sum(each.stored_bytes for each in own)
        rows.append(BrokerRow(broker, stored, round(100 * stored / total), own, snapshot.loads.get(broker_id)))
    return rows


def used_percent(directory: LogDirectory) -> int | None:
    """How full the volume is; None if the broker does not report it."""
    if directory.total_bytes <= 0:
        return None
    return round(100 * (directory.total_bytes - directory.usable_bytes) / directory.total_bytes)
