"""Reads the traffic of brokers that serve their metrics over the wire; others are asked each minute whether they do."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING

from odradek.admin.broker_metrics import broker_serves_metrics, metrics_of
from odradek.admin.errors import NotAuthorized
from odradek.console.models.traffic import CONNECTIONS, COUNTERS, LATENCIES, PRODUCE, REQUESTS, STARTED, Traffic
from odradek.conventions.failures import Failure

if TYPE_CHECKING:
    from odradek.admin.broker_metrics import BrokerMetrics
    from odradek.admin.broker_requests import BrokerRequests, KnownBroker
    from odradek.admin.cluster_state import ClusterState

ASK_AGAIN_S = 60.0  # a broker that has no metrics, or refuses them
PREFIXES = (*COUNTERS.values(), LATENCIES, REQUESTS, CONNECTIONS, STARTED)


class TrafficReader:
    """Belongs to the thread that watches the cluster."""

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
            is_served = broker_serves_metrics(requests, broker)
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
