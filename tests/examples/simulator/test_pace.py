"""A rate without drift, and without a burst after a pause."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.examples.simulator.pace import LONGEST_DELAY_S, Pace


@given(rate=st.floats(0.5, 50_000), steps=st.lists(st.floats(0.0001, 0.9), max_size=40), began_s=st.floats(0, 1e6))
def test_as_many_are_taken_as_the_rate_says(rate: float, steps: list[float], began_s: float) -> None:
    pace, now_s, taken = Pace(rate, began_s), began_s, 0
    steps = steps if rate < 500 else steps[:2]
    for step in steps:
        now_s += step
        while (due_s := pace.take(now_s)) is not None:
            assert due_s == taken / rate
            taken += 1
        assert abs(taken - (now_s - began_s) * rate) <= 1.001
        assert 0 < pace.wait_s(now_s) <= 1 / rate + 1e-6


@given(rate=st.floats(0.5, 10_000), pause_s=st.floats(LONGEST_DELAY_S + 3, 1e6))
def test_after_a_pause_it_goes_on_from_now(rate: float, pause_s: float) -> None:
    pace = Pace(rate, 100.0)
    while pace.take(100.0) is not None:
        pass
    now_s = 100.0 + pause_s
    due_s = pace.take(now_s)
    assert due_s is not None
    assert abs(100 + due_s - now_s) < 1e-6
    assert pace.take(now_s - 1e-3) is None


def test_a_changed_rate_begins_with_the_next_record() -> None:
    pace = Pace(10.0, 0.0)
    assert [pace.take(0.25) for _ in range(4)] == [0.0, 0.1, 0.2, None]
    pace.change_rate(100.0)
    due = [pace.take(0.35) for _ in range(7)]
    assert due[:-1] == [pytest.approx(0.3 + number / 100) for number in range(6)]
    assert due[-1] is None
