"""Counts and times of requests by API, and which of them were slow."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

from odradek.metrics.histogram import LATENCY_BOUNDS
from odradek.metrics.samples import HistogramValue, Sample

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

CONNECTION_CLOSED = "CONNECTION_CLOSED"
LARGEST_ERROR_SETS = 64  # error codes by API; more count as OTHER_ERRORS
OTHER_ERRORS = "other"

_BOUNDS_MS = tuple(bound * 1000 for bound in LATENCY_BOUNDS)


class ApiMetrics:
    """One API. Times are in milliseconds. A request is recorded once, when its response is known."""

    __slots__ = (
        "_counts",
        "api",
        "by_stage",
        "errors",
        "handler_ms",
        "queue_ms",
        "slow_count",
        "throttle_ms",
        "throttled_count",
    )

    def __init__(self, api: str) -> None:
        self.api = api
        self._counts = [0] * (len(_BOUNDS_MS) + 1)
        self.queue_ms = 0.0
        self.handler_ms = 0.0
        self.throttle_ms = 0.0
        self.by_stage: dict[str, float] = {}
        self.errors: dict[str, int] = {}
        self.throttled_count = 0
        self.slow_count = 0

    @property
    def count(self) -> int:
        return sum(self._counts)

    def answered(self, queue_ms: float, handler_ms: float) -> None:
        """A request that waited for nothing."""
        self.queue_ms += queue_ms
        self.handler_ms += handler_ms
        self._counts[bisect_left(_BOUNDS_MS, queue_ms + handler_ms)] += 1

    def answered_later(self, queue_ms: float, handler_ms: float, waits: Mapping[str, float]) -> None:
        """A request that waited: `waits` are its times by stage."""
        self.queue_ms += queue_ms
        self.handler_ms += handler_ms
        total_ms = queue_ms + handler_ms
        for stage, duration_ms in waits.items():
            self.by_stage[stage] = self.by_stage.get(stage, 0.0) + duration_ms
            total_ms += duration_ms
        self._counts[bisect_left(_BOUNDS_MS, total_ms)] += 1

    def throttled(self, throttle_ms: float) -> None:
        self.throttled_count += 1
        self.throttle_ms += throttle_ms

    def failed(self, error: str) -> None:
        """The response has this error code at least once."""
        known = self.errors.get(error)
        if known is None and len(self.errors) >= LARGEST_ERROR_SETS:
            error = OTHER_ERRORS
        self.errors[error] = self.errors.get(error, 0) + 1

    def samples(self) -> Iterable[Sample]:
        count = self.count
        for error, times in self.errors.items():  # those of forwarded requests have no count here
            yield Sample("odradek_request_errors_total", (self.api, error), times)
        if not count:
            return
        labels = (self.api,)
        yield Sample("odradek_requests_total", labels, count)
        total_ms = self.queue_ms + self.handler_ms + sum(self.by_stage.values())
        yield Sample(
            "odradek_request_seconds", labels, HistogramValue(LATENCY_BOUNDS, tuple(self._counts), total_ms / 1000)
        )
        stages = {"queue": self.queue_ms, "handler": self.handler_ms, **self.by_stage, "throttle": self.throttle_ms}
        for stage, duration_ms in stages.items():
            yield Sample("odradek_request_stage_seconds_total", (self.api, stage), duration_ms / 1000)
        yield Sample("odradek_throttled_requests_total", labels, self.throttled_count)
        yield Sample("odradek_slow_requests_total", labels, self.slow_count)


class RequestMetrics:
    """The APIs of a broker."""

    __slots__ = ("_by_name",)

    def __init__(self) -> None:
        self._by_name: dict[str, ApiMetrics] = {}

    def of(self, api: str) -> ApiMetrics:
        """The metrics of an API of the broker's registry, by its name."""
        found = self._by_name.get(api)
        if found is None:
            found = self._by_name[api] = ApiMetrics(api)
        return found

    def samples(self) -> Iterable[Sample]:
        for each in self._by_name.values():
            yield from each.samples()
