"""The figures of a live view for given records and times. Times are seconds after the start."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.examples.live_view.entity_states import MOST_ENTITIES
from odradek.examples.live_view.model import LiveViewModel
from odradek.examples.live_view.tallies import MOST_EPISODES, MOST_NAMES, CountTable, EpisodeList
from odradek.examples.live_view.topic_counts import TopicCounts
from tests.examples.live_view.seen import (
    BEGAN_S,
    CARDS,
    dead_letter,
    iso,
    reading,
    record,
    rigs_model,
    warning,
)

CURRENT_S = 30.0
WARM_UP_S = 30.0


@pytest.fixture
def model() -> LiveViewModel:
    made = rigs_model()
    made.take_ends(BEGAN_S, {"rigs": {0: 500, 1: 700}, "pressure": {0: 90}})
    return made


def lag(model: LiveViewModel) -> int:
    assert model.lag is not None
    return model.lag.records


def test_only_what_came_since_the_start_counts(model: LiveViewModel) -> None:
    assert (model.topics.total("rigs"), model.topics.total("warnings"), lag(model)) == (0, 0, 0)
    assert not model.has_output
    model.take_ends(BEGAN_S + 1, {"rigs": {0: 600, 1: 710}, "pressure": {0: 190}})
    assert (model.topics.total("rigs"), model.topics.total("pressure")) == (110, 100)
    assert model.has_output


def test_a_topic_and_a_partition_that_appear_later_count_whole(model: LiveViewModel) -> None:
    model.take_ends(BEGAN_S + 1, {"warnings": {0: 30}, "rigs": {2: 5}})
    assert (model.topics.total("warnings"), model.topics.total("rigs"), lag(model)) == (30, 5, 5)


@given(rate=st.integers(0, 100_000), samples=st.integers(2, 150))
def test_a_steady_stream_has_its_rate_at_any_time(rate: int, samples: int) -> None:
    steady = TopicCounts(["rigs", "pressure"])
    for sample in range(samples):
        steady.take_ends(sample * 0.5, {"rigs": {0: sample * rate}})
    now_s = (samples - 1) * 0.5
    assert steady.rate("rigs", now_s) == pytest.approx(2 * rate)
    for columns in (20, 200):  # fewer and more than there are samples
        history = steady.rate_history("rigs", now_s, columns)
        assert len(history) == columns
        assert all(value == pytest.approx(2 * rate) for value in history if value)
    assert steady.rate("pressure", now_s) == 0
    assert steady.rate("rigs", now_s + 100) == 0  # no recent record


def test_lag_is_what_no_output_was_seen_of(model: LiveViewModel) -> None:
    model.take_ends(BEGAN_S + 0.5, {"rigs": {0: 510, 1: 720}})
    assert lag(model) == 30
    model.take(BEGAN_S, reading("7", "0:509"))
    model.take(BEGAN_S, reading("7", "1:704"))
    assert lag(model) == 15
    model.take(BEGAN_S, dead_letter("not a record", "1:719"))
    model.take(BEGAN_S, reading("8", "1:701"))  # a replay goes back, progress does not
    model.take(BEGAN_S, reading("8"))
    assert lag(model) == 0
    assert model.lag is not None
    assert model.lag.greatest == 30


def test_lag_in_seconds_follows_the_rate(model: LiveViewModel) -> None:
    assert model.lag is not None
    assert model.lag.seconds(BEGAN_S) is None
    model.take_ends(BEGAN_S + 1, {"rigs": {0: 600, 1: 700}})
    assert model.lag.seconds(BEGAN_S + 1) == pytest.approx(1.0)


def test_latency_is_of_the_last_minute_and_without_the_warm_up(model: LiveViewModel) -> None:
    meter = model.latency
    assert meter is not None
    assert meter.last_minute_ms(BEGAN_S) == {}
    model.take(BEGAN_S, warning(7, "pressure high", BEGAN_S - 9))
    assert meter.warm_up_left_s(BEGAN_S + 10) == WARM_UP_S - 10
    assert meter.is_of_warm_up
    assert meter.last_minute_ms(BEGAN_S)["p99"] == pytest.approx(9000)
    for index in range(100):
        now_s = BEGAN_S + 40 + index
        model.take(now_s, warning(7, "pressure high", now_s - 0.001 * (index + 1)))
    model.take(BEGAN_S + 140, warning(7, "pressure high"))  # says no time
    model.take(BEGAN_S + 140, warning(7, "pressure high", BEGAN_S + 20))  # an event of the warm-up
    assert not meter.is_of_warm_up
    assert meter.warm_up_left_s(BEGAN_S + 10) == 0
    spread = meter.last_minute_ms(BEGAN_S + 139)
    assert spread["p50"] == pytest.approx(70, abs=2)
    assert spread["max"] == pytest.approx(100, abs=1)
    assert meter.all_ms()["p50"] == pytest.approx(51, abs=2)
    assert meter.last_minute_ms(BEGAN_S + 400) == {}


def test_a_clock_that_is_ahead_gives_no_negative_latency(model: LiveViewModel) -> None:
    model.take(BEGAN_S, warning(7, "pressure high", BEGAN_S + 5))
    assert model.latency is not None
    assert model.latency.last_minute_ms(BEGAN_S)["p50"] == 0


def test_a_pump_is_in_the_state_of_its_last_warnings(model: LiveViewModel) -> None:
    assert model.states is not None
    meter = model.states

    def states(second: float) -> dict[str, int]:
        return {state: count for state, count in meter.counts(BEGAN_S + second).items() if count}

    for pump in ("1", "2", "3", "4"):
        model.take(BEGAN_S, reading(pump))
    assert states(0) == {"calm": 4}
    model.take(BEGAN_S + 1, warning(2, "pressure rising"))
    model.take(BEGAN_S + 1, warning(3, "pressure rising"))
    model.take(BEGAN_S + 2, warning(3, "temperature high"))
    model.take(BEGAN_S + 3, warning(4, "silent"))
    model.take(BEGAN_S + 3, warning(4, "unknown"))
    model.take(BEGAN_S + 3, warning(99, "silent"))  # an unknown pump
    assert states(4) == {"calm": 1, "rising": 1, "over limit": 1, "silent": 1}
    assert list(meter.counts(BEGAN_S)) == ["calm", "rising", "over limit", "silent"]
    model.take(BEGAN_S + 5, reading("4"))
    assert states(5)["calm"] == 2
    assert states(3 + CURRENT_S) == {"calm": 4}


def test_a_warning_that_repeats_is_one_episode_in_its_place(model: LiveViewModel) -> None:
    episodes = model.tables["latest warnings"]
    assert isinstance(episodes, EpisodeList)
    model.take(BEGAN_S, warning(1, "pressure high", value=151))
    model.take(BEGAN_S + 1, warning(2, "pressure high", value=160))
    model.take(BEGAN_S + 2, warning(1, "pressure high", value=155))
    first, second = episodes.latest(5)
    assert (first.columns["hcid"], second.columns["hcid"]) == (2, 1)
    assert (second.times, second.columns["value"], second.last_s - second.began_s) == (2, 155, 2.0)
    model.take(BEGAN_S + 2 + CURRENT_S + 1, warning(1, "pressure high", value=152))
    assert [(each.columns["hcid"], each.times) for each in episodes.latest(1)] == [(1, 1)]


def test_what_is_kept_has_limits(model: LiveViewModel) -> None:
    for index in range(MOST_ENTITIES + 10):
        model.take(BEGAN_S, reading(str(index)))
    for index in range(MOST_EPISODES + 10):
        model.take(BEGAN_S, warning(index, f"rule {index}"))
        model.take(BEGAN_S, dead_letter(f"reason {index}"))
    episodes, letters = model.tables["latest warnings"], model.tables["dead letters"]
    assert isinstance(episodes, EpisodeList)
    assert model.states is not None
    assert sum(model.states.counts(BEGAN_S).values()) == MOST_ENTITIES
    assert len(episodes) == MOST_EPISODES
    assert len(letters.counts) == len(episodes.counts) == MOST_NAMES + 1
    assert letters.counts.total() == episodes.counts.total() == MOST_EPISODES + 10


def test_totals_and_counts_of_another_example() -> None:
    model = LiveViewModel(CARDS, BEGAN_S)
    for amount, country in ((10.5, "US"), (20, "BR"), ("much", "US")):
        model.take(BEGAN_S + 10, record("alerts", account="a", amount=amount, country=country, at=iso(BEGAN_S + 9)))
    assert [total.total for total in model.totals] == [30.5, 3]
    counts = model.tables["alerts by country"]
    assert isinstance(counts, CountTable)
    assert counts.counts == {"US": 2, "BR": 1}
    assert model.lag is None
    assert model.followed == ("alerts",)
