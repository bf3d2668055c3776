"""The dashboard's figures for given records and times."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.pipelines.rigs.dashboard_model import (
    CURRENT_S,
    MOST_EPISODES,
    MOST_PUMPS,
    MOST_REASONS,
    DashboardModel,
    PumpState,
    Topics,
)
from odradek.pipelines.rigs.dashboard_records import WarningRecord

TOPICS = Topics()


@pytest.fixture
def model() -> DashboardModel:
    made = DashboardModel(TOPICS, 1000.0)
    made.take_ends(1000.0, {"rigs": {0: 500, 1: 700}, "pressure": {0: 90}})
    return made


def test_only_what_came_since_the_start_counts(model: DashboardModel) -> None:
    assert (model.total("rigs"), model.total("warnings"), model.lag) == (0, 0, 0)
    model.take_ends(1001.0, {"rigs": {0: 600, 1: 710}, "pressure": {0: 190}})
    assert (model.total("rigs"), model.total("pressure")) == (110, 100)


def test_a_topic_and_a_partition_that_appear_later_count_whole(model: DashboardModel) -> None:
    model.take_ends(1001.0, {"warnings": {0: 30}, "rigs": {2: 5}})
    assert (model.total("warnings"), model.total("rigs"), model.lag) == (30, 5, 5)


@given(rate=st.integers(0, 100_000), samples=st.integers(2, 150))
def test_a_steady_stream_has_its_rate_at_any_time(rate: int, samples: int) -> None:
    steady = DashboardModel(TOPICS, 0.0)
    for sample in range(samples):
        steady.take_ends(sample * 0.5, {"rigs": {0: sample * rate}})
    now_s = (samples - 1) * 0.5
    assert steady.rate("rigs", now_s) == pytest.approx(2 * rate)
    history = steady.rate_history("rigs", now_s, 20)
    assert len(history) == 20
    assert all(value == pytest.approx(2 * rate) for value in history if value)
    assert steady.rate("pressure", now_s) == 0
    assert steady.rate("rigs", now_s + 100) == 0  # no recent record


def test_lag_is_what_no_output_was_seen_of(model: DashboardModel) -> None:
    model.take_ends(1000.5, {"rigs": {0: 510, 1: 720}})
    assert model.lag == 30
    model.take_reading(1000.6, "7", (0, 509))
    model.take_reading(1000.6, "7", (1, 704))
    assert model.lag == 15
    model.take_dead_letter("not a record", (1, 719))
    model.take_reading(1000.7, "8", (1, 701))  # a replay goes back, progress does not
    model.take_reading(1000.7, "8", None)
    assert (model.lag, model.greatest_lag) == (0, 30)


def test_lag_in_seconds_follows_the_rate(model: DashboardModel) -> None:
    assert model.lag_s(1000.0) is None
    model.take_ends(1001.0, {"rigs": {0: 600, 1: 700}})
    assert model.lag_s(1001.0) == pytest.approx(1.0)


def test_latency_is_of_the_last_minute(model: DashboardModel) -> None:
    assert model.latencies_ms(1000.0) == {}
    for index in range(100):
        model.take_warning(
            1000.0 + index, WarningRecord("7", "pressure high", reported_s=1000.0 + index - 0.001 * (index + 1))
        )
    model.take_warning(1099.0, WarningRecord("7", "pressure high"))  # says no time
    spread = model.latencies_ms(1099.0)
    assert spread["p50"] == pytest.approx(70, abs=2)
    assert spread["max"] == pytest.approx(100)
    assert model.all_latencies_ms()["p50"] == pytest.approx(51, abs=2)
    assert model.latencies_ms(1300.0) == {}


def test_a_clock_that_is_ahead_gives_no_negative_latency(model: DashboardModel) -> None:
    model.take_warning(1000.0, WarningRecord("7", "pressure high", reported_s=1005.0))
    assert model.latencies_ms(1000.0)["p50"] == 0


def test_a_pump_is_in_the_state_of_its_last_warnings(model: DashboardModel) -> None:
    def states(now_s: float) -> dict[PumpState, int]:
        return {state: count for state, count in model.pump_states(now_s).items() if count}

    for pump in ("1", "2", "3", "4"):
        model.take_reading(1000.0, pump, None)
    assert states(1000.0) == {PumpState.CALM: 4}
    model.take_warning(1001.0, WarningRecord("2", "pressure rising"))
    model.take_warning(1001.0, WarningRecord("3", "pressure rising"))
    model.take_warning(1002.0, WarningRecord("3", "temperature high"))
    model.take_warning(1003.0, WarningRecord("4", "silent"))
    model.take_warning(1003.0, WarningRecord("99", "silent"))  # an unknown pump
    assert states(1004.0) == {
        PumpState.CALM: 1, PumpState.RISING: 1, PumpState.OVER_LIMIT: 1, PumpState.SILENT: 1
    }  # fmt: skip
    model.take_reading(1005.0, "4", None)
    assert states(1005.0)[PumpState.CALM] == 2
    assert states(1003.0 + CURRENT_S) == {PumpState.CALM: 4}


def test_a_warning_that_repeats_is_one_episode_in_its_place(model: DashboardModel) -> None:
    model.take_warning(1000.0, WarningRecord("1", "pressure high", 151, 150))
    model.take_warning(1001.0, WarningRecord("2", "pressure high", 160, 150))
    model.take_warning(1002.0, WarningRecord("1", "pressure high", 155, 150))
    first, second = model.latest_episodes(5)
    assert (first.pump, second.pump) == ("2", "1")
    assert (second.times, second.value, second.last_s - second.began_s) == (2, 155, 2.0)
    model.take_warning(1002.0 + CURRENT_S + 1, WarningRecord("1", "pressure high", 152, 150))
    assert [(episode.pump, episode.times) for episode in model.latest_episodes(1)] == [("1", 1)]


def test_what_is_kept_has_limits(model: DashboardModel) -> None:
    for index in range(MOST_PUMPS + 10):
        model.take_reading(1000.0, str(index), None)
    for index in range(MOST_EPISODES + 10):
        model.take_warning(1000.0, WarningRecord(str(index), f"rule {index}"))
        model.take_dead_letter(f"reason {index}", None)
    assert sum(model.pump_states(1000.0).values()) == MOST_PUMPS
    assert len(model.episodes) == MOST_EPISODES
    assert len(model.reasons) == len(model.rules) == MOST_REASONS + 1
    assert model.reasons.total() == model.rules.total() == MOST_EPISODES + 10
