"""Latencies of received records, without those of the warm-up."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from odradek.conventions.figures import percentiles

if TYPE_CHECKING:
    from odradek.examples.live_view.definition import Latency
    from odradek.examples.live_view.records import SeenRecord

LATENCY_OVER_S = 60.0
MOST_LATENCIES = 50_000
SHARES = {"p50": 0.5, "p99": 0.99}


class LatencyMeter:
    """The warm-up begins with the first record; records whose event lies in it do not count."""

    def __init__(self, declared: Latency) -> None:
        self.topics = (declared.topic,)
        self.declared = declared
        self._found: deque[tuple[float, float]] = deque(maxlen=MOST_LATENCIES)
        self._warm_up: deque[tuple[float, float]] = deque(maxlen=MOST_LATENCIES)
        self._measured_from_s: float | None = None

    def take(self, now_s: float, record: SeenRecord) -> None:
        since_s = record.time_s(self.declared.since)
        if since_s is None:
            return
        if self._measured_from_s is None:
            self._measured_from_s = now_s + self.declared.warm_up_s
        latency_ms = max(0.0, now_s - since_s) * 1000
        (self._found if since_s >= self._measured_from_s else self._warm_up).append((now_s, latency_ms))

    def warm_up_left_s(self, now_s: float) -> float:
        """The seconds until latencies count; 0 once they do."""
        if self._measured_from_s is None or self._found:
            return 0.0
        return max(0.0, self._measured_from_s - now_s)

    def last_minute_ms(self, now_s: float) -> dict[str, float]:
        """The p50, p99 and maximum in the last minute; during the warm-up that of the warm-up."""
        found = self._found or self._warm_up
        return percentiles((latency for at_s, latency in found if now_s - at_s <= LATENCY_OVER_S), SHARES)

    def all_ms(self) -> dict[str, float]:
        return percentiles((latency for _at_s, latency in self._found or self._warm_up), SHARES)

    @property
    def is_of_warm_up(self) -> bool:
        """Whether there is nothing but the warm-up."""
        return not self._found
