"""The delays and limits of restarts after failures."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from odradek.pipelines.operating.backoff import Backoff, Retry

BACKOFF = Backoff()


@given(failures=st.integers(1, 10**6), chance=st.floats(0, 1))
def test_pauses_have_a_least_and_a_greatest_length(failures: int, chance: float) -> None:
    pause_s = BACKOFF.delay_s(failures, chance)
    assert BACKOFF.first_s * (1 - BACKOFF.spread) <= pause_s <= BACKOFF.most_s * (1 + BACKOFF.spread)


def test_pauses_double_until_they_are_long_enough() -> None:
    pauses = [BACKOFF.delay_s(failures, 0.5) for failures in range(1, 12)]
    assert pauses == [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]


def test_pauses_of_many_pipelines_are_spread() -> None:
    assert BACKOFF.delay_s(5, 0.0) < BACKOFF.delay_s(5, 0.5) < BACKOFF.delay_s(5, 1.0)


@given(failures=st.integers(0, 100), ran_s=st.floats(0, 10**6))
def test_a_run_of_some_length_makes_up_for_earlier_failures(failures: int, ran_s: float) -> None:
    after = BACKOFF.failures_after(failures, ran_s, has_progressed=True)
    assert after == (1 if ran_s >= BACKOFF.well_s else failures + 1)


def test_a_batch_that_takes_long_to_fail_makes_up_for_nothing() -> None:
    assert BACKOFF.failures_after(7, 2 * BACKOFF.well_s, has_progressed=False) == 8


def test_what_never_heals_is_not_tried_again() -> None:
    assert BACKOFF.gives_up(Retry.NEVER, 1, has_run=True)


def test_what_heals_perhaps_is_tried_so_many_times() -> None:
    for has_run, most in ((True, BACKOFF.most_failures), (False, BACKOFF.most_failed_starts)):
        assert not BACKOFF.gives_up(Retry.PERHAPS, most - 1, has_run=has_run)
        assert BACKOFF.gives_up(Retry.PERHAPS, most, has_run=has_run)


def test_what_is_away_is_waited_for() -> None:
    assert not BACKOFF.gives_up(Retry.LIKELY, 10**6, has_run=False)
