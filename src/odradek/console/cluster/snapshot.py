"""The state of the cluster at one moment: brokers, partitions, offsets and sizes, and what brokers of Odradek count of
their clients; and the rates, latencies and samples between two moments.

Brokers that serve their metrics over the wire are read in each round; others are asked each minute whether they do.
Apache Kafka has no request for it: its clusters have no traffic here, and the charts that need it are left out.
"""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import field
from heapq import nsmallest
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from odradek.admin.broker_metrics import BrokerMetrics, metrics_of, serves_metrics
from odradek.admin.errors import NotAuthorized
from odradek.conventions.dataclass import dataclass
from odradek.conventions.failures import Failure

if TYPE_CHECKING:
    from odradek.admin.broker_requests import BrokerRequests, KnownBroker
    from odradek.admin.cluster_state import BrokerCounts, ClusterState, PartitionState
    from odradek.admin.log_directories import Disks

COUNTERS = {
    "records": "odradek_topic_records_in_total",
    "records_out": "odradek_topic_records_out_total",
    "bytes": "odradek_topic_bytes_in_total",
    "bytes_out": "odradek_topic_bytes_out_total",
}
LATENCIES = "odradek_request_seconds"
REQUESTS = "odradek_requests_total"
CONNECTIONS = "odradek_connections"
STARTED = "process_start_time_seconds"
PRODUCE = "Produce"
OTHER = "other"  # the topics without a series of their own
PERCENTILES = {"produce_p50": 0.5, "produce_p99": 0.99}
ASK_AGAIN_S = 60.0  # a broker that has no metrics, or refuses them
K = TypeVar("K")
PREFIXES = (*COUNTERS.values(), LATENCIES, REQUESTS, CONNECTIONS, STARTED)


@dataclass(frozen=True, slots=True)
class Traffic:
    """Counters of one broker since its start: totals of topics, and the cumulative buckets of produce requests."""

    time_ms: int
    counters: Mapping[str, Mapping[str, float]] = field(default_factory=dict)  # by name, then by topic
    buckets: Mapping[float, float] = field(default_factory=dict)  # requests that took at most so many seconds
    requests: float = 0.0
    connections: int = 0
    started_s: float = 0.0


class Growth(NamedTuple):
    """What one broker has counted between two moments: rates per second by name, and buckets of produce requests."""

    rates: Mapping[str, float]
    buckets: Mapping[float, float]
    requests_per_s: float


class BrokerLoad(NamedTuple):
    """Without a moment to compare with, a broker has connections only."""

    connections: int
    growth: Growth | None

    @property
    def produce_p99_ms(self) -> float | None:
        return percentile_ms(self.growth.buckets, 0.99) if self.growth is not None else None


def growth_between(before: Traffic | None, after: Traffic) -> Growth | None:
    """None if the broker has not answered both times, or was started again.

    Differences are taken by topic. The series of a deleted topic end; those of one that was created again begin at 0.
    """
    if before is None or after.time_ms <= before.time_ms or after.started_s * 1000 > before.time_ms:
        return None
    seconds = (after.time_ms - before.time_ms) / 1000
    rates: dict[str, float] = {}
    for name, topics in after.counters.items():
        earlier = before.counters.get(name, {})
        changes = (_change(topic, total, earlier.get(topic, 0.0)) for topic, total in topics.items())
        rates[name] = max(sum(changes), 0.0) / seconds
    buckets = {bound: max(count - before.buckets.get(bound, 0.0), 0.0) for bound, count in after.buckets.items()}
    return Growth(rates, buckets, max(after.requests - before.requests, 0.0) / seconds)


def _change(topic: str, total: float, earlier: float) -> float:
    """`other` shrinks by the total of a topic that gets a series of its own; any other series begins again at 0."""
    return total if total < earlier and topic != OTHER else total - earlier


def values_between(
    before: Mapping[int, Traffic], after: Mapping[int, Traffic], running: Iterable[int] = ()
) -> dict[str, float]:
    """Rates per second over all brokers, and percentiles of produce requests in milliseconds.

    A broker that was started again, or that has not answered both times, does not count; there are no values if it is
    one of `running`. Without produce requests there are no percentiles.
    """
    growths = {broker_id: growth_between(before.get(broker_id), traffic) for broker_id, traffic in after.items()}
    if any(growths.get(broker_id) is None for broker_id in running):
        return {}
    known = [each for each in growths.values() if each is not None]
    values, buckets = _sums(each.rates for each in known), _sums(each.buckets for each in known)
    percentiles = {name: percentile_ms(buckets, share) for name, share in PERCENTILES.items()}
    return {**values, **{name: value for name, value in percentiles.items() if value is not None}}


def _sums(parts: Iterable[Mapping[K, float]]) -> dict[K, float]:
    sums: dict[K, float] = {}
    for name, value in chain.from_iterable(part.items() for part in parts):
        sums[name] = sums.get(name, 0.0) + value
    return sums


def loads_between(before: Mapping[int, Traffic], after: Mapping[int, Traffic]) -> dict[int, BrokerLoad]:
    """The load of each broker that has answered the second time."""
    return {
        broker_id: BrokerLoad(traffic.connections, growth_between(before.get(broker_id), traffic))
        for broker_id, traffic in after.items()
    }


def percentile_ms(buckets: Mapping[float, float], share: float) -> float | None:
    """The value below which a share of the observations lies, interpolated in its bucket, of bounds in seconds."""
    total = max(buckets.values(), default=0.0)
    if total <= 0:
        return None
    lower, below = 0.0, 0.0
    for bound, count in sorted(buckets.items()):
        if count >= share * total:
            is_inside = not math.isinf(bound) and count > below
            part = (share * total - below) / (count - below) if is_inside else 0.0
            return 1000 * (lower + (bound - lower) * part if is_inside else lower)
        lower, below = bound, count
    return 1000 * lower


class TrafficReader:
    """Used by the thread that watches the cluster only."""

    def __init__(self) -> None:
        self._serves: set[int] = set()
        self._asked_at: dict[int, float] = {}

    def read(self, requests: BrokerRequests, state: ClusterState) -> dict[int, Traffic]:
        """By broker id; brokers that do not report metrics are left out. One that fails is asked in the next round."""
        found: dict[int, Traffic] = {}
        for broker in state.brokers.values():
            broker_id = broker.broker_id
            if broker.is_fenced or not self._is_due(requests, broker):
                continue
            try:
                found[broker_id] = traffic_of(metrics_of(requests, broker, PREFIXES))
            except NotAuthorized:
                self._serves.discard(broker_id)
                self._asked_at[broker_id] = time.monotonic()
            except Failure:
                continue
        return found

    def _is_due(self, requests: BrokerRequests, broker: KnownBroker) -> bool:
        broker_id = broker.broker_id
        if broker_id in self._serves:
            return True
        if time.monotonic() - self._asked_at.get(broker_id, -math.inf) < ASK_AGAIN_S:
            return False
        try:
            is_served = serves_metrics(requests, broker)
        except Failure:
            return False
        self._asked_at[broker_id] = time.monotonic()
        if is_served:
            self._serves.add(broker_id)
        return is_served


def traffic_of(metrics: BrokerMetrics) -> Traffic:
    buckets: dict[float, float] = {}
    for point in metrics.points:
        if point.name == f"{LATENCIES}_bucket" and point.labels.get("api") == PRODUCE:
            bound = float(point.labels["le"].replace("+Inf", "inf"))
            buckets[bound] = buckets.get(bound, 0.0) + point.value
    counters = {name: metrics.by_label(each, "topic") for name, each in COUNTERS.items()}
    totals = metrics.total(REQUESTS), round(metrics.total(CONNECTIONS)), metrics.total(STARTED)
    return Traffic(metrics.time_ms, counters, buckets, *totals)


MOST_PROBLEMS = 50
Key = tuple[str, int]  # topic, partition


def is_internal(topic: str) -> bool:
    return topic.startswith("__")


@dataclass(slots=True)
class TopicSummary:
    name: str
    partitions: int = 0
    replicas: int = 0  # of the partition that has the most
    under_replicated: int = 0
    offline: int = 0
    records: int = 0  # offsets between start and end: the largest number of records that there can be
    size_bytes: int = 0  # on all replicas
    records_per_s: float = 0.0
    unread_partitions: int = 0  # whose offsets are not known: they have no leader, or it did not answer
    unread_replicas: int = 0  # whose size is not known

    @property
    def is_internal(self) -> bool:
        return is_internal(self.name)


class Health(NamedTuple):
    """Counts over all partitions, made once for each snapshot."""

    offline: int
    under_replicated: int
    under_min_in_sync: int
    problems: tuple[PartitionState, ...]  # the worst first, at most MOST_PROBLEMS
    problem_count: int
    moving: tuple[PartitionState, ...]
    counts: BrokerCounts


@dataclass(frozen=True, slots=True)
class Snapshot:
    time_s: float
    state: ClusterState
    health: Health
    starts: Mapping[Key, int]
    ends: Mapping[Key, int]
    disks: Disks
    topics: Mapping[str, TopicSummary]
    traffic: Mapping[int, Traffic] = field(default_factory=dict)  # of brokers that report metrics
    loads: Mapping[int, BrokerLoad] = field(default_factory=dict)  # the same brokers, since the last sample
    silent: tuple[int, ...] = ()  # brokers that are not fenced, and did not answer
    monotonic_s: float = 0.0  # the same moment as `time_s`, by a clock that is never set


def examine(state: ClusterState) -> Health:
    offline = under_replicated = under_min_in_sync = 0
    problems: list[PartitionState] = []
    moving: list[PartitionState] = []
    for partition in state.partitions:
        found = partition.is_offline, partition.is_under_replicated, partition.is_under_min_in_sync
        offline += found[0]
        under_replicated += found[1]
        under_min_in_sync += found[2]
        if any(found):
            problems.append(partition)
        if partition.is_reassigned:
            moving.append(partition)
    worst = nsmallest(
        MOST_PROBLEMS, problems,
        key=lambda each: (not each.is_offline, not each.is_under_min_in_sync, is_internal(each.topic)),
    )  # fmt: skip
    counts = offline, under_replicated, under_min_in_sync
    return Health(*counts, tuple(worst), len(problems), tuple(moving), state.counts())


def summarize(
    state: ClusterState, starts: Mapping[Key, int], ends: Mapping[Key, int], disks: Disks, rates: Mapping[str, float]
) -> dict[str, TopicSummary]:
    """One summary for each topic, in the order of their names."""
    topics: dict[str, TopicSummary] = {}
    unknown = -1 if disks.is_denied else 0
    for partition in state.partitions:
        name = partition.topic
        topic = topics.get(name)
        if topic is None:
            topic = topics[name] = TopicSummary(name, size_bytes=unknown, records_per_s=rates.get(name, 0.0))
        key = (name, partition.index)
        topic.partitions += 1
        topic.replicas = max(topic.replicas, len(partition.replicas))
        topic.under_replicated += partition.is_under_replicated
        topic.offline += partition.is_offline
        topic.records += max(ends.get(key, 0) - starts.get(key, 0), 0)
        topic.unread_partitions += key not in ends or key not in starts
        topic.unread_replicas += len(partition.replicas)
    for (_broker, name, _index), size_bytes in disks.sizes.items():
        if name in topics:
            topics[name].size_bytes += size_bytes
            topics[name].unread_replicas -= 1
    return topics


def rates_by_topic(before: Mapping[Key, int], after: Mapping[Key, int], seconds: float) -> dict[str, float]:
    """Records per second of the topics that have grown. A partition that was not there before does not count."""
    grown: dict[str, float] = defaultdict(float)
    for key, end in after.items() if seconds > 0 else ():
        if end > before.get(key, end):
            grown[key[0]] += (end - before[key]) / seconds
    return dict(grown)


def growth_bytes(before: Disks, after: Disks) -> int:
    """Bytes by which the logs of partitions have grown; those that became smaller do not count."""
    return sum(max(size_bytes - before.sizes.get(key, size_bytes), 0) for key, size_bytes in after.sizes.items())


def sample_values(before: Snapshot, after: Snapshot) -> dict[str, float]:
    """The values of the charts, as far as they are known, by name.

    What brokers of Odradek count themselves replaces the values that can be read from any Kafka cluster, by offsets and
    sizes. While a running broker does not answer, their sums would be too small: then records are those of the offsets.
    The growth of logs is no replacement for bytes, because it counts every replica.
    """
    seconds = after.monotonic_s - before.monotonic_s
    values = {
        "records": sum(rates_by_topic(before.ends, after.ends, seconds).values()),
        "bytes": growth_bytes(before.disks, after.disks) / seconds,
    }
    running = [broker.broker_id for broker in after.state.brokers.values() if not broker.is_fenced]
    measured = values_between(before.traffic, after.traffic, running)
    if after.traffic and not measured:
        del values["bytes"]
    return {**values, **measured}
