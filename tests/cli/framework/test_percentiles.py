"""Percentiles by nearest rank."""

from __future__ import annotations

from odradek.cli.framework.percentiles import percentiles


def test_percentiles_of_a_hundred_values() -> None:
    assert percentiles(range(100, 0, -1)) == {"p50": 51, "p90": 91, "p99": 100, "p99.9": 100, "max": 100}


def test_one_value_is_every_percentile_and_no_value_is_none() -> None:
    assert percentiles([3.0]) == {"p50": 3.0, "p90": 3.0, "p99": 3.0, "p99.9": 3.0, "max": 3.0}
    assert percentiles([]) == {}
