"""The rate of a quantity over the last seconds, with the arithmetic of Kafka's `Rate` and `SampledStat`. Pure.

Values are added to samples of one window each. The rate is the sum of the samples that overlap the measured time,
divided by the time since the oldest of them began, which counts as at least all windows but one.
"""

from __future__ import annotations

import math
from typing import NamedTuple

LONGEST_THROTTLE_MS = 2**31 - 1
ROUNDING = 1.000001  # more than sums of one window can be wrong by


class QuotaWindow(NamedTuple):
    """`quota.window.num` and `quota.window.size.seconds`."""

    samples: int = 11
    window_ms: int = 1000

    @property
    def total_ms(self) -> int:
        return self.samples * self.window_ms


class Rate:
    """Its state does not depend on the quota, which may change."""

    __slots__ = (
        "_current",
        "_current_end_ms",
        "_last_event_ms",
        "_no_event_before_ms",
        "_oldest_start_ms",
        "_shortest_s",
        "_start_ms",
        "_sum",
        "_total_ms",
        "_values",
        "_window",
        "_window_ms",
    )

    def __init__(self, window: QuotaWindow) -> None:
        self._window = window
        self._window_ms, self._total_ms = window.window_ms, window.total_ms
        self._shortest_s = max((window.samples - 1) * window.window_ms, 1) / 1000.0  # no rate is over less time
        self._sum = 0.0  # of the values, but for rounding
        self._current = 0
        self._current_end_ms = 0  # no later than the end of the current sample
        # One entry for each sample; one sample more than the window has, because the oldest overlaps its start.
        self._start_ms: list[int] = []
        self._last_event_ms: list[int] = []
        self._values: list[float] = []
        self._oldest_start_ms = 0
        # No sample had its last event before this time. It may be too early, which costs a look at the samples.
        self._no_event_before_ms = 0

    def record(self, value: float, now_ms: int) -> None:
        """A negative value takes back what was recorded."""
        if not self._values:
            self._add_sample(now_ms)
        if now_ms - self._start_ms[self._current] >= self._window_ms:
            self._current = (self._current + 1) % (self._window.samples + 1)
            if self._current == len(self._values):
                self._add_sample(now_ms)
            else:
                self._reset_sample(self._current, now_ms)
        self._values[self._current] += value
        self._sum += value
        self._last_event_ms[self._current] = now_ms
        self._current_end_ms = self._start_ms[self._current] + self._window_ms

    def record_and_throttle(self, value: float, quota: float, now_ms: int) -> int:
        """`record`, then `throttle_ms`. A rate far below the quota is not computed: requests pay for this."""
        if now_ms < self._current_end_ms:
            current = self._current
            self._values[current] += value
            self._sum = total = self._sum + value
            self._last_event_ms[current] = now_ms
        else:
            self.record(value, now_ms)
            total = self._sum
        if total * ROUNDING < quota * self._shortest_s:
            if now_ms - self._no_event_before_ms >= self._total_ms:
                self._drop_old_samples(now_ms)
            return 0
        return self.throttle_ms(quota, now_ms)

    def per_second(self, now_ms: int) -> float:
        window_ms = self.window_ms(now_ms)
        return sum(self._values) / (window_ms / 1000.0)

    def window_ms(self, now_ms: int) -> int:
        """The time that the rate is measured over."""
        window_ms = self._window_ms
        if now_ms - self._no_event_before_ms >= self._total_ms:
            self._drop_old_samples(now_ms)
        elapsed_ms = now_ms - self._oldest_start_ms
        missing_windows = self._window.samples - 1 - elapsed_ms // window_ms
        if missing_windows > 0:
            elapsed_ms += missing_windows * window_ms
        return max(elapsed_ms, 1)

    def _drop_old_samples(self, now_ms: int) -> None:
        for index, last_event_ms in enumerate(self._last_event_ms):
            if now_ms - last_event_ms >= self._total_ms:
                self._reset_sample(index, now_ms)
        if not self._start_ms:
            self._add_sample(now_ms)
        self._no_event_before_ms = min(self._last_event_ms)

    def throttle_ms(self, quota: float, now_ms: int) -> int:
        """How long nothing must be added until the rate is within the quota; 0 if it is."""
        rate = self.per_second(now_ms)
        if rate <= quota:
            return 0
        if quota <= 0:
            return LONGEST_THROTTLE_MS
        throttle_ms = math.floor((rate - quota) / quota * self.window_ms(now_ms) + 0.5)
        return min(throttle_ms, LONGEST_THROTTLE_MS)

    def is_forgotten(self, now_ms: int) -> bool:
        """Whether every sample has left the window, so that a new object measures the same."""
        return all(now_ms - last_event_ms >= self._window.total_ms for last_event_ms in self._last_event_ms)

    def _add_sample(self, now_ms: int) -> None:
        self._start_ms.append(now_ms)
        self._last_event_ms.append(now_ms)
        self._values.append(0.0)
        self._oldest_start_ms = min(self._start_ms)

    def _reset_sample(self, index: int, now_ms: int) -> None:
        self._start_ms[index] = self._last_event_ms[index] = now_ms
        self._values[index] = 0.0
        self._sum = sum(self._values)
        self._oldest_start_ms = min(self._start_ms)
