"""A clock that leaps ahead must not make records old."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from odradek.replica.believed_time import HOUR_MS, PATIENCE_MS, START_PATIENCE_MS, BelievedTime
from tests.simulation.simulated_host import Simulation

if TYPE_CHECKING:
    from collections.abc import Iterator

DAY_MS = 24 * HOUR_MS
STEP_MS = 60_000


@pytest.fixture
def simulation() -> Iterator[Simulation]:
    simulation = Simulation(0)
    yield simulation
    simulation.close()


def pass_time(simulation: Simulation, time: BelievedTime, duration_ms: int) -> None:
    """As housekeeping does, which asks all the time."""
    for _ in range(duration_ms // STEP_MS):
        simulation.clock.advance(STEP_MS)
        time.now_ms()


def test_a_clock_that_goes_well_is_believed(simulation: Simulation) -> None:
    time = BelievedTime(simulation.clock)
    for _ in range(5):
        simulation.clock.advance(HOUR_MS)
        simulation.clock.wall_offset_ms += 1000
        assert time.now_ms() == simulation.clock.now_ms()


def test_a_leap_ahead_is_not_believed_for_a_day(simulation: Simulation, caplog: pytest.LogCaptureFixture) -> None:
    time = BelievedTime(simulation.clock)
    right_ms = simulation.clock.now_ms()
    simulation.clock.wall_offset_ms += 8 * DAY_MS
    pass_time(simulation, time, PATIENCE_MS)
    assert time.now_ms() == right_ms + PATIENCE_MS
    assert time.is_in_doubt
    assert len(caplog.records) == 1, "said once"
    pass_time(simulation, time, STEP_MS)
    assert time.now_ms() == simulation.clock.now_ms()
    assert not time.is_in_doubt
    caplog.clear()


def test_a_leap_that_is_taken_back_leaves_no_trace(simulation: Simulation, caplog: pytest.LogCaptureFixture) -> None:
    time = BelievedTime(simulation.clock)
    for _ in range(3):
        simulation.clock.wall_offset_ms += 8 * DAY_MS
        pass_time(simulation, time, 23 * HOUR_MS)
        simulation.clock.wall_offset_ms -= 8 * DAY_MS
        assert time.now_ms() == simulation.clock.now_ms()
    caplog.clear()


def test_a_clock_that_is_set_back_is_believed(simulation: Simulation) -> None:
    time = BelievedTime(simulation.clock)
    simulation.clock.wall_offset_ms -= 8 * DAY_MS
    assert time.now_ms() == simulation.clock.now_ms()


def test_after_a_long_absence_there_is_an_hour_to_set_the_clock(
    simulation: Simulation, caplog: pytest.LogCaptureFixture
) -> None:
    last_seen_ms = simulation.clock.now_ms() - 3 * DAY_MS
    time = BelievedTime(simulation.clock, last_seen_ms)
    assert time.now_ms() == last_seen_ms
    pass_time(simulation, time, START_PATIENCE_MS - STEP_MS)
    assert time.now_ms() == last_seen_ms + START_PATIENCE_MS - STEP_MS
    pass_time(simulation, time, STEP_MS)
    assert time.now_ms() == simulation.clock.now_ms()
    caplog.clear()


@pytest.mark.parametrize("absence_ms", [-8 * DAY_MS, 0, 23 * HOUR_MS])
def test_after_a_short_absence_the_clock_is_believed(simulation: Simulation, absence_ms: int) -> None:
    time = BelievedTime(simulation.clock, simulation.clock.now_ms() - absence_ms)
    assert time.now_ms() == simulation.clock.now_ms()
