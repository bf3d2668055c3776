"""Deadlines by key. To postpone a deadline, as each heartbeat does, or to stop one and set the next, as each
transaction does, costs a dictionary entry and no timer of the event loop. The timer of a stopped deadline stays until
it is due, or until there are more of them than of deadlines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.host.logs import get_logger

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from odradek.host.clock import Clock, Timer

log = get_logger(__name__)

# A timer that fires later than this shows that the whole process was stalled, not that a member was silent: heartbeats
# that arrived during the stall are unread in the sockets. They get this long to be read.
STALL_MS = 500.0
# A rule that raised has a bug. It is retried, because a member whose timeout is never handled would stay for ever.
FAILED_RULE_MS = 10_000.0
# Timers of stopped deadlines, besides as many as there are deadlines. Each takes about 1 kB, for as long as a client
# has chosen: a session may last 30 minutes, a rebalance 24 days.
MOST_STOPPED_TIMERS = 128


class ShardTimers:
    """Owned by one shard; `on_timer` is called on the event loop."""

    def __init__(self, clock: Clock, on_timer: Callable[[Hashable], None]) -> None:
        self._clock = clock
        self._on_timer = on_timer
        self._deadlines: dict[Hashable, float] = {}
        self._timers: dict[Hashable, tuple[float, Timer]] = {}  # also of keys whose deadline was stopped since

    def __len__(self) -> int:
        return len(self._deadlines)

    def start(self, key: Hashable, delay_ms: float) -> None:
        """Restarts the timer if it is running."""
        deadline_ms = self._clock.monotonic_ms() + delay_ms
        self._deadlines[key] = deadline_ms
        timer = self._timers.get(key)
        if timer is None:
            self._schedule(key, deadline_ms, delay_ms)
        elif timer[0] > deadline_ms:
            timer[1].cancel()
            self._schedule(key, deadline_ms, delay_ms)

    def stop(self, key: Hashable) -> None:
        self._deadlines.pop(key, None)
        if len(self._timers) > 2 * len(self._deadlines) + MOST_STOPPED_TIMERS:
            self._cancel_stopped()

    def _cancel_stopped(self) -> None:
        for key in [each for each in self._timers if each not in self._deadlines]:
            self._timers.pop(key)[1].cancel()

    def is_running(self, key: Hashable) -> bool:
        return key in self._deadlines

    def stop_all(self) -> None:
        self._deadlines.clear()
        for _, timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    def _schedule(self, key: Hashable, at_ms: float, delay_ms: float) -> None:
        self._timers[key] = at_ms, self._clock.call_after(delay_ms, lambda: self._fire(key))

    def _fire(self, key: Hashable) -> None:
        due_ms, _ = self._timers.pop(key)
        if key not in self._deadlines:
            return
        now_ms = self._clock.monotonic_ms()
        deadline_ms = self._deadlines[key]
        if now_ms - due_ms > STALL_MS:
            deadline_ms = self._deadlines[key] = max(deadline_ms, now_ms + STALL_MS)
        if deadline_ms > now_ms:
            self._schedule(key, deadline_ms, deadline_ms - now_ms)
            return
        del self._deadlines[key]
        try:
            self._on_timer(key)
        except Exception as problem:
            log.error("the rule of a timer failed", exc_info=problem, timer=str(key))
            if key not in self._deadlines:
                self.start(key, FAILED_RULE_MS)
