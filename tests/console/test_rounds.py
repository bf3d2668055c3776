"""When a watch reads again, and what pages say about the age of its state."""

from __future__ import annotations

import pytest

from odradek.console.cluster.watch import Freshness, Round, old_after_s, pause_s
from odradek.console.views.overview import state_notice


@pytest.mark.parametrize(
    ("last", "expected_s"),
    [
        (Round(0.1, 0.05), 1.9),
        (Round(1.5, 0.1), 1.5),  # brokers that answer slowly rest as long
        (Round(5.0, 0.1), 2.0),  # one did not answer: the next round is not put off
        (Round(3.0, 1.5), 15.0),  # many partitions: a tenth of a processor
        (Round(30.0, 20.0), 60.0),
    ],
)
def test_the_pause_follows_processor_time_and_not_waiting(last: Round, expected_s: float) -> None:
    assert pause_s(last, 2.0) == pytest.approx(expected_s)


def test_watches_share_a_tenth_of_a_processor() -> None:
    assert pause_s(Round(1.0, 0.5), 2.0, watches=5) == 25.0
    assert pause_s(Round(30.0, 20.0), 2.0, watches=25) == 300.0
    assert old_after_s(Round(3.0, 2.0), 2.0, watches=25) == 180.0


def test_a_state_is_old_after_three_intervals() -> None:
    assert old_after_s(Round(5.0, 0.1), 2.0) == 6.0
    assert old_after_s(Round(3.0, 1.5), 2.0) == 45.0


@pytest.mark.parametrize(
    ("freshness", "expected"),
    [
        (Freshness(), ""),
        (Freshness(1.0), ""),
        (Freshness(8.0, is_old=True), "Shown is the state of 8 s ago."),
        (Freshness(8.0, trouble="no broker answers"), "no broker answers. Shown is the state of 8 s ago."),
        (Freshness(1.0, silent=(2,)), "Broker 2 does not answer: figures of the partitions there are missing."),
        (
            Freshness(12.0, is_old=True, silent=(1, 2)),
            "Shown is the state of 12 s ago. Brokers 1, 2 do not answer: figures of the partitions there are missing.",
        ),
    ],
)
def test_a_page_says_what_is_old_or_missing(freshness: Freshness, expected: str) -> None:
    assert state_notice(freshness) == expected
