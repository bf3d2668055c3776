"""A clock that jumps ahead must not make records old."""

from collections.abc import Iterator

import pytest

from odradek.replica.clock_skew_guard import ACCEPTED_AFTER_MS, ACCEPTED_AFTER_START_MS, HOUR_MS, ClockSkewGuard
from tests.simulation.simulated_host import Simulation

DAY_MS = 24 * HOUR_MS
STEP_MS = 60_000


@pytest.fixture
def simulation() -> Iterator[Simulation]:
    simulation = Simulation(0)
    yield simulation
    simulation.close()


def pass_time(simulation: Simulation, time: ClockSkewGuard, duration_ms: int) -> None:
    """As housekeeping does, which reads the time every second."""
    for _ in range(duration_ms // STEP_MS):
        simulation.clock.advance(STEP_MS)
        time.now_ms()


def test_small_corrections_are_accepted(simulation: Simulation) -> None:
    time = ClockSkewGuard(simulation.clock)
    for _ in range(5):
        simulation.clock.advance(HOUR_MS)
        simulation.clock.wall_offset_ms += 1000
        assert time.now_ms() == simulation.clock.now_ms()


def test_a_jump_ahead_is_not_accepted_for_a_day(simulation: Simulation, caplog: pytest.LogCaptureFixture) -> None:
    time = ClockSkewGuard(simulation.clock)
    right_ms = simulation.clock.now_ms()
    simulation.clock.wall_offset_ms += 8 * DAY_MS
    pass_time(simulation, time, ACCEPTED_AFTER_MS)
    assert time.now_ms() == right_ms + ACCEPTED_AFTER_MS
    assert time.is_skewed
    assert len(caplog.records) == 1, "logged once"
    pass_time(simulation, time, STEP_MS)
    assert time.now_ms() == simulation.clock.now_ms()
    assert not time.is_skewed
    caplog.clear()


def test_a_jump_that_is_corrected_has_no_effect(simulation: Simulation, caplog: pytest.LogCaptureFixture) -> None:
    time = ClockSkewGuard(simulation.clock)
    for _ in range(3):
        simulation.clock.wall_offset_ms += 8 * DAY_MS
        pass_time(simulation, time, 23 * HOUR_MS)
        simulation.clock.wall_offset_ms -= 8 * DAY_MS
        assert time.now_ms() == simulation.clock.now_ms()
    caplog.clear()


def test_a_clock_that_is_set_back_is_accepted(simulation: Simulation) -> None:
    time = ClockSkewGuard(simulation.clock)
    simulation.clock.wall_offset_ms -= 8 * DAY_MS
    assert time.now_ms() == simulation.clock.now_ms()


def test_after_a_long_downtime_there_is_an_hour_to_set_the_clock(
    simulation: Simulation, caplog: pytest.LogCaptureFixture
) -> None:
    last_seen_ms = simulation.clock.now_ms() - 3 * DAY_MS
    time = ClockSkewGuard(simulation.clock, last_seen_ms)
    assert time.now_ms() == last_seen_ms
    pass_time(simulation, time, ACCEPTED_AFTER_START_MS - STEP_MS)
    assert time.now_ms() == last_seen_ms + ACCEPTED_AFTER_START_MS - STEP_MS
    pass_time(simulation, time, STEP_MS)
    assert time.now_ms() == simulation.clock.now_ms()
    caplog.clear()


@pytest.mark.parametrize("downtime_ms", [-8 * DAY_MS, 0, 23 * HOUR_MS])
def test_after_a_short_downtime_the_clock_is_accepted(simulation: Simulation, downtime_ms: int) -> None:
    time = ClockSkewGuard(simulation.clock, simulation.clock.now_ms() - downtime_ms)
    assert time.now_ms() == simulation.clock.now_ms()
