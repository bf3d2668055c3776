"""Deadlines that are put off again and again, and a process that stood still."""

from collections.abc import Callable
from typing import Any

from odradek.coordinator.groups.decision import TimerKey, TimerKind
from odradek.coordinator.runtime.timers import FAILED_RULE_MS, MOST_STOPPED_TIMERS, STALL_MS, ShardTimers

KEY = TimerKey(TimerKind.SESSION, "group", "member")


class Alarm:
    def __init__(self, at_ms: float, callback: Callable[[], None]) -> None:
        self.at_ms = at_ms
        self.callback = callback
        self.is_cancelled = False

    def cancel(self) -> None:
        self.is_cancelled = True


class ManualClock:
    def __init__(self) -> None:
        self.time_ms = 0.0
        self.alarms: list[Alarm] = []

    def now_ms(self) -> int:
        return round(self.time_ms)

    def monotonic_ms(self) -> float:
        return self.time_ms

    def call_after(self, delay_ms: float, callback: Callable[[], None]) -> Any:
        alarm = Alarm(self.time_ms + delay_ms, callback)
        self.alarms.append(alarm)
        return alarm

    def advance(self, duration_ms: float, *, stalls: bool = False) -> None:
        """In one jump when the process stalls, otherwise from alarm to alarm."""
        end_ms = self.time_ms + duration_ms
        while due := [alarm for alarm in self.alarms if alarm.at_ms <= end_ms and not alarm.is_cancelled]:
            alarm = min(due, key=lambda each: each.at_ms)
            self.alarms.remove(alarm)
            self.time_ms = end_ms if stalls else alarm.at_ms
            alarm.callback()
        self.time_ms = end_ms


def make() -> tuple[ManualClock, ShardTimers, list[float]]:
    clock = ManualClock()
    rung: list[float] = []
    return clock, ShardTimers(clock, lambda _: rung.append(clock.time_ms)), rung


def test_a_timer_rings_once_at_its_deadline() -> None:
    clock, timers, rung = make()
    timers.start(KEY, 100)
    clock.advance(1000)
    assert rung == [100]
    assert len(timers) == 0


def test_a_deadline_that_is_put_off_costs_no_new_alarm() -> None:
    clock, timers, rung = make()
    timers.start(KEY, 100)
    for _ in range(9):
        clock.advance(10)
        timers.start(KEY, 100)
    assert len(clock.alarms) == 1
    clock.advance(1000)
    assert rung == [190]


def test_an_earlier_deadline_rings_earlier() -> None:
    clock, timers, rung = make()
    timers.start(KEY, 1000)
    timers.start(KEY, 10)
    clock.advance(2000)
    assert rung == [10]


def test_a_stopped_timer_is_silent() -> None:
    clock, timers, rung = make()
    timers.start(KEY, 100)
    timers.stop(KEY)
    timers.stop(KEY)
    timers.start(TimerKey(TimerKind.JOIN, "group"), 100)
    timers.stop_all()
    clock.advance(1000)
    assert rung == []


def test_a_deadline_after_one_that_was_stopped_costs_no_new_alarm() -> None:
    clock, timers, rung = make()
    for _ in range(10):
        timers.start(KEY, 100)
        clock.advance(5)
        timers.stop(KEY)
    assert len(clock.alarms) == 1
    timers.start(KEY, 100)
    clock.advance(1000)
    assert rung == [150]
    assert not clock.alarms


def test_timers_of_stopped_deadlines_do_not_pile_up() -> None:
    """A client that asks for a member id and leaves, again and again, chooses how long its session would last."""
    clock, timers, rung = make()
    timers.start(KEY, 100)
    for number in range(3_000):
        key = TimerKey(TimerKind.SESSION, "group", f"member-{number}")
        timers.start(key, 1_800_000)
        timers.stop(key)
        assert number % 50 or sum(not alarm.is_cancelled for alarm in clock.alarms) <= MOST_STOPPED_TIMERS + 3
    assert len([alarm for alarm in clock.alarms if not alarm.is_cancelled]) <= MOST_STOPPED_TIMERS + 3
    clock.advance(1000)
    assert rung == [100]


def test_a_rule_that_fails_is_tried_again() -> None:
    """Otherwise a silent member would stay for ever."""
    clock = ManualClock()
    rung: list[float] = []

    def fail_once(_: object) -> None:
        rung.append(clock.time_ms)
        if len(rung) == 1:
            raise ValueError("a bug")

    timers = ShardTimers(clock, fail_once)
    timers.start(KEY, 100)
    clock.advance(100 + FAILED_RULE_MS)
    assert rung == [100, 100 + FAILED_RULE_MS]
    assert len(timers) == 0


def test_after_a_stall_what_lies_unread_is_read_first() -> None:
    """A broker that was stopped for a minute must not throw out everybody whose heartbeats wait in its sockets."""
    clock, timers, rung = make()
    timers.start(KEY, 10_000)
    clock.advance(60_000, stalls=True)
    assert rung == []
    timers.start(KEY, 10_000)  # the heartbeat
    clock.advance(9_999)
    assert rung == []
    clock.advance(1)
    assert rung == [70_000]


def test_after_a_stall_the_silent_are_still_found() -> None:
    clock, timers, rung = make()
    timers.start(KEY, 10_000)
    clock.advance(60_000, stalls=True)
    clock.advance(STALL_MS)
    assert rung == [60_000 + STALL_MS]
