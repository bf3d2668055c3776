"""Time for the rest of the broker: a wall clock for timestamps, a monotonic one for deadlines, and timers on the
event loop."""

import asyncio
import time
from collections.abc import Callable
from typing import Protocol


class Timer(Protocol):
    def cancel(self) -> None: ...


class Clock(Protocol):
    def now_ms(self) -> int:
        """The wall clock. It may jump: use it for timestamps, never for durations."""

    def monotonic_ms(self) -> float: ...

    def call_after(self, delay_ms: float, callback: Callable[[], None]) -> Timer:
        """Call back once on the running event loop."""


class SystemClock:
    __slots__ = ()

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> float:
        return time.monotonic() * 1000.0

    def call_after(self, delay_ms: float, callback: Callable[[], None]) -> Timer:
        return asyncio.get_running_loop().call_later(delay_ms / 1000.0, callback)
