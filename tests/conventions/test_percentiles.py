"""Percentiles by nearest rank."""

from __future__ import annotations

from odradek.conventions.figures import percentiles


def test_percentiles_of_a_hundred_values() -> None:
    assert percentiles(range(100, 0, -1)) == {"p50": 50, "p90": 90, "p99": 99, "p99.9": 100, "max": 100}


def test_the_rank_is_rounded_up() -> None:
    assert percentiles([2, 1])["p50"] == 1
    assert percentiles([3, 2, 1])["p50"] == 2
    assert percentiles(range(1, 1001), {"p99.9": 0.999}) == {"p99.9": 999, "max": 1000}


def test_one_value_is_every_percentile_and_no_value_is_none() -> None:
    assert percentiles([3.0]) == {"p50": 3.0, "p90": 3.0, "p99": 3.0, "p99.9": 3.0, "max": 3.0}
    assert percentiles([]) == {}
