"""What brokers of Odradek count of their clients, and the rates and latencies between two moments. Pure.

Apache Kafka has no request for it: its clusters have no traffic here, and the charts that need it are left out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

COUNTERS = {
    "records": "odradek_topic_records_in_total",
    "records_out": "odradek_topic_records_out_total",
    "bytes": "odradek_topic_bytes_in_total",
    "bytes_out": "odradek_topic_bytes_out_total",
}
LATENCIES = "odradek_request_seconds"
PRODUCE = "Produce"
PERCENTILES = {"produce_p50": 0.5, "produce_p99": 0.99}


@dataclass(frozen=True, slots=True)
class Traffic:
    """Counters of one broker since its start: totals by name, and the cumulative buckets of produce requests."""

    time_ms: int
    counters: Mapping[str, float] = field(default_factory=dict)
    buckets: Mapping[float, float] = field(default_factory=dict)  # requests that took at most so many seconds


def values_between(before: Mapping[int, Traffic], after: Mapping[int, Traffic]) -> dict[str, float]:
    """Rates per second over all brokers, and percentiles of produce requests in milliseconds.

    A broker that was started again, or that has not answered both times, does not count. Without produce requests
    there are no percentiles.
    """
    values: dict[str, float] = {}
    grown: dict[float, float] = {}
    for broker_id, now in after.items():
        earlier = before.get(broker_id)
        if earlier is None or now.time_ms <= earlier.time_ms:
            continue
        changes = {name: now.counters[name] - earlier.counters.get(name, 0.0) for name in now.counters}
        if any(change < 0 for change in changes.values()):
            continue
        seconds = (now.time_ms - earlier.time_ms) / 1000
        for name, change in changes.items():
            values[name] = values.get(name, 0.0) + change / seconds
        for bound, count in now.buckets.items():
            grown[bound] = grown.get(bound, 0.0) + max(count - earlier.buckets.get(bound, 0.0), 0.0)
    for name, share in PERCENTILES.items():
        found = percentile_s(grown, share)
        if found is not None:
            values[name] = found * 1000
    return values


def percentile_s(buckets: Mapping[float, float], share: float) -> float | None:
    """The value below which a share of the observations lies, by linear interpolation in its bucket."""
    total = max(buckets.values(), default=0.0)
    if total <= 0:
        return None
    wanted = share * total
    lower, below = 0.0, 0.0
    for bound in sorted(buckets):
        count = buckets[bound]
        if count >= wanted:
            if math.isinf(bound) or count <= below:
                return lower
            return lower + (bound - lower) * (wanted - below) / (count - below)
        lower, below = bound, count
    return lower
