"""Virtual time: an event loop that never waits. When nothing is ready it jumps to the next timer, so a simulated hour
takes no time and the same program always runs in the same order."""

import asyncio
from collections.abc import Callable
from itertools import count
from typing import Any
from weakref import WeakKeyDictionary

from odradek.host.clock import Timer

START_MS = 1_700_000_000_000


class NothingLeftToDo(RuntimeError):
    """Every task waits, and no timer will wake one: on a real loop this would hang for ever."""


class _JumpingSelector:
    def __init__(self, loop: "SimulatedLoop") -> None:
        self._loop = loop

    def select(self, timeout: float | None) -> list[Any]:
        if timeout is None:
            raise NothingLeftToDo("all tasks wait and no timer is set")
        if timeout > 0:
            self._loop.advance(timeout)
        return []


class SimulatedLoop(asyncio.BaseEventLoop):
    """Tasks, futures and timers only: no sockets, signals, subprocesses or threads."""

    def __init__(self) -> None:
        super().__init__()
        self._now = 0.0
        self._selector = _JumpingSelector(self)
        self._clock_resolution = 1e-9  # the real clock's would be part of the result otherwise
        self._numbers: WeakKeyDictionary[asyncio.Task[Any], int] = WeakKeyDictionary()
        self._counter = count()

    def time(self) -> float:
        return self._now

    def advance(self, seconds: float) -> None:
        self._now += seconds

    def create_task(self, *args: Any, **kwargs: Any) -> "asyncio.Task[Any]":
        task = super().create_task(*args, **kwargs)
        self._numbers[task] = next(self._counter)
        return task

    def unfinished_tasks(self) -> "list[asyncio.Task[Any]]":
        """In the order in which they were created; asyncio has them in the order of their addresses."""
        return sorted(asyncio.all_tasks(self), key=lambda task: self._numbers[task])

    def _process_events(self, event_list: list[Any]) -> None:
        """There are none: nothing outside can happen."""

    def _write_to_self(self) -> None:
        """No thread waits in the selector, so there is none to wake."""


class SimulatedClock:
    """The wall clock can be set (`wall_offset_ms`), as people and NTP do."""

    def __init__(self, loop: SimulatedLoop) -> None:
        self._loop = loop
        self.wall_offset_ms = START_MS

    def now_ms(self) -> int:
        return self.wall_offset_ms + round(self._loop.time() * 1000)

    def monotonic_ms(self) -> float:
        return self._loop.time() * 1000

    def call_after(self, delay_ms: float, callback: Callable[[], None]) -> Timer:
        return self._loop.call_later(delay_ms / 1000, callback)

    def advance(self, duration_ms: float) -> None:
        """For tests without a running loop."""
        self._loop.advance(duration_ms / 1000)
