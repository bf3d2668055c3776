"""Rates and percentiles of what brokers count: over all brokers, without those that were started again."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.console.traffic import Traffic, percentile_s, values_between


def test_rates_are_sums_over_brokers() -> None:
    before = {
        1: Traffic(1000, {"records": 10.0}),
        2: Traffic(1000, {"records": 5.0}),
        3: Traffic(1000, {"records": 9.0}),
    }
    after = {
        1: Traffic(3000, {"records": 30.0}),
        2: Traffic(2000, {"records": 6.0}),
        3: Traffic(3000, {"records": 1.0}),
    }
    assert values_between(before, {**after, 4: Traffic(1, {"records": 7.0})}) == {"records": 11.0}
    assert values_between(before, before) == {}


def test_percentiles_are_those_of_the_requests_in_between() -> None:
    before = {1: Traffic(1000, {}, {0.001: 90.0, 0.01: 100.0, math.inf: 100.0})}
    after = {1: Traffic(2000, {}, {0.001: 90.0, 0.01: 200.0, math.inf: 200.0})}
    assert values_between(before, after)["produce_p50"] == pytest.approx(5.5)  # the middle of 1 to 10 ms


@given(st.lists(st.floats(0.0001, 20.0), min_size=1, max_size=200), st.sampled_from([0.5, 0.99]))
def test_a_percentile_lies_in_the_bucket_of_the_exact_one(times: list[float], share: float) -> None:
    bounds = [0.001, 0.01, 0.1, 1.0, 10.0, math.inf]
    buckets = {bound: float(sum(each <= bound for each in times)) for bound in bounds}
    found = percentile_s(buckets, share)
    assert found is not None
    exact = sorted(times)[max(0, math.ceil(share * len(times)) - 1)]
    upper = next(bound for bound in bounds if exact <= bound)
    lower = max([0.0, *(bound for bound in bounds if bound < upper)])
    assert lower <= found <= upper


def test_without_requests_there_is_no_percentile() -> None:
    assert percentile_s({0.1: 0.0, math.inf: 0.0}, 0.5) is None
    assert percentile_s({}, 0.5) is None
