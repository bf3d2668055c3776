"""Event-loop lag: how much later than planned a timer runs. What delays it delays every request."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from odradek.host.clock import Clock, Timer
    from odradek.metrics.histogram import Histogram

INTERVAL_MS = 250.0


class LoopLag:
    def __init__(self, clock: Clock, lags: Histogram) -> None:
        self._clock = clock
        self._lags = lags
        self._timer: Timer | None = None
        self._due_ms = 0.0

    def start(self) -> None:
        self._due_ms = self._clock.monotonic_ms() + INTERVAL_MS
        self._timer = self._clock.call_after(INTERVAL_MS, self._measure)

    def _measure(self) -> None:
        self._lags.observe(max(self._clock.monotonic_ms() - self._due_ms, 0.0) / 1000)
        self.start()

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
