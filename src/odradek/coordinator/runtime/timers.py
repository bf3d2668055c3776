"""Deadlines by name. A deadline that is put off, as each heartbeat does, costs a dictionary entry and no timer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.host.logs import get_logger

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.coordinator.groups.decision import TimerKey
    from odradek.host.clock import Clock, Timer

log = get_logger(__name__)

# A timer that is later than this says that the whole process stood still, and not that a member was silent:
# the heartbeats that came meanwhile lie unread in the sockets. They get this long to be read.
STALL_MS = 500.0
# A rule that raised has a bug. It is tried again, for a member whose end is never decided would stay for ever.
FAILED_RULE_MS = 10_000.0


class GroupTimers:
    """One owner, the shard; `on_timer` is called on the event loop."""

    def __init__(self, clock: Clock, on_timer: Callable[[TimerKey], None]) -> None:
        self._clock = clock
        self._on_timer = on_timer
        self._deadlines: dict[TimerKey, float] = {}
        self._alarms: dict[TimerKey, tuple[float, Timer]] = {}

    def __len__(self) -> int:
        return len(self._deadlines)

    def start(self, key: TimerKey, delay_ms: float) -> None:
        """Anew when it runs already."""
        deadline_ms = self._clock.monotonic_ms() + delay_ms
        self._deadlines[key] = deadline_ms
        alarm = self._alarms.get(key)
        if alarm is None:
            self._set_alarm(key, deadline_ms, delay_ms)
        elif alarm[0] > deadline_ms:
            alarm[1].cancel()
            self._set_alarm(key, deadline_ms, delay_ms)

    def stop(self, key: TimerKey) -> None:
        if self._deadlines.pop(key, None) is not None:
            self._alarms.pop(key)[1].cancel()

    def is_running(self, key: TimerKey) -> bool:
        return key in self._deadlines

    def stop_all(self) -> None:
        for key in tuple(self._deadlines):
            self.stop(key)

    def _set_alarm(self, key: TimerKey, at_ms: float, delay_ms: float) -> None:
        self._alarms[key] = at_ms, self._clock.call_after(delay_ms, lambda: self._ring(key))

    def _ring(self, key: TimerKey) -> None:
        rings_ms, _ = self._alarms.pop(key)
        now_ms = self._clock.monotonic_ms()
        deadline_ms = self._deadlines[key]
        if now_ms - rings_ms > STALL_MS:
            deadline_ms = self._deadlines[key] = max(deadline_ms, now_ms + STALL_MS)
        if deadline_ms > now_ms:
            self._set_alarm(key, deadline_ms, deadline_ms - now_ms)
            return
        del self._deadlines[key]
        try:
            self._on_timer(key)
        except Exception as problem:
            kind, group, member = key.kind.value, key.group_id, key.member_id
            log.error("the rule of a timer failed", exc_info=problem, timer=kind, group=group, member=member)
            if key not in self._deadlines:
                self.start(key, FAILED_RULE_MS)
