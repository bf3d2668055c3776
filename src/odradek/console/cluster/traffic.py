"""What brokers of Odradek count of their clients, and the rates and latencies between two moments.

Brokers that serve their metrics over the wire are read in each round; others are asked each minute whether they do.
Apache Kafka has no request for it: its clusters have no traffic here, and the charts that need it are left out.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from odradek.admin.broker_metrics import metrics_of, serves_metrics
from odradek.admin.errors import NotAuthorized
from odradek.conventions.failures import Failure

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from odradek.admin.broker_metrics import BrokerMetrics
    from odradek.admin.broker_requests import BrokerRequests, KnownBroker
    from odradek.admin.cluster_state import ClusterState

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
    """The value below which a share of the observations lies, by linear interpolation in its bucket. Bounds are
    in seconds."""
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
    return Traffic(
        metrics.time_ms,
        {name: metrics.by_label(each, "topic") for name, each in COUNTERS.items()},
        buckets,
        metrics.total(REQUESTS),
        round(metrics.total(CONNECTIONS)),
        metrics.total(STARTED),
    )
