"""All that one broker counts itself; the composition root makes it, and passes it to handlers, logs and the server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.metrics.histogram import Histogram
from odradek.metrics.registry import MetricsRegistry
from odradek.metrics.request_metrics import RequestMetrics
from odradek.metrics.samples import Sample
from odradek.metrics.topic_traffic import TopicTraffic

if TYPE_CHECKING:
    from collections.abc import Iterable

LARGEST_TOPICS = 200
LAG_BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)


class BrokerMetrics:
    __slots__ = ("event_loop_lag", "flushes", "registry", "requests", "traffic")

    def __init__(self, largest_topics: int = LARGEST_TOPICS) -> None:
        """`largest_topics` is the number of topics with series of their own."""
        self.requests = RequestMetrics()
        self.traffic = TopicTraffic(largest_topics)
        self.flushes = Histogram()
        self.event_loop_lag = Histogram(LAG_BOUNDS)
        self.registry = MetricsRegistry()
        for source in (self.requests.samples, self.traffic.samples, self._histograms):
            self.registry.add(source)

    def _histograms(self) -> Iterable[Sample]:
        yield Sample("odradek_log_flush_seconds", (), self.flushes.value())
        yield Sample("odradek_event_loop_lag_seconds", (), self.event_loop_lag.value())
