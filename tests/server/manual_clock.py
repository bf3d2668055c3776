"""A clock that a test moves."""

import heapq
import itertools
from collections.abc import Callable


class ManualTimer:
    def __init__(self, callback: Callable[[], None]) -> None:
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        self.callback = None


class ManualClock:
    """Runs timers when the test moves the time."""

    def __init__(self) -> None:
        self._now_ms = 1_000_000.0
        self._timers: list[tuple[float, int, ManualTimer]] = []
        self._numbers = itertools.count()

    def now_ms(self) -> int:
        return int(self._now_ms)

    def monotonic_ms(self) -> float:
        return self._now_ms

    def call_after(self, delay_ms: float, callback: Callable[[], None]) -> ManualTimer:
        timer = ManualTimer(callback)
        heapq.heappush(self._timers, (self._now_ms + delay_ms, next(self._numbers), timer))
        return timer

    def advance(self, delay_ms: float) -> None:
        end_ms = self._now_ms + delay_ms
        while self._timers and self._timers[0][0] <= end_ms:
            self._now_ms, _, timer = heapq.heappop(self._timers)
            if timer.callback is not None:
                timer.callback()
        self._now_ms = end_ms
