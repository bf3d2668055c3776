"""The system's clock: milliseconds, and timers on the running loop."""

import asyncio
import time

from odradek.host.clock import Clock, SystemClock


def test_the_clock_counts_milliseconds() -> None:
    clock: Clock = SystemClock()
    assert abs(clock.now_ms() - time.time() * 1000) < 5_000
    assert abs(clock.monotonic_ms() - time.monotonic() * 1000) < 5_000


async def test_a_timer_calls_back_once_unless_cancelled() -> None:
    clock = SystemClock()
    called = asyncio.Event()
    calls: list[str] = []
    clock.call_after(0, lambda: calls.append("cancelled")).cancel()
    clock.call_after(1, lambda: calls.append("called"))
    clock.call_after(5, called.set)
    await asyncio.wait_for(called.wait(), 30)
    assert calls == ["called"]
