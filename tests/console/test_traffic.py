"""Rates and percentiles of what brokers count: over all brokers, without those that were started again."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.console.models.traffic import BrokerLoad, Traffic, loads_between, percentile_s, values_between


def records(time_ms: int, started_s: float = 0.5, **topics: float) -> Traffic:
    return Traffic(time_ms, {"records": topics}, started_s=started_s)


def test_rates_are_sums_over_brokers() -> None:
    before = {1: records(1000, a=10.0), 2: records(1000, a=5.0), 3: records(1000, a=9.0)}
    after = {1: records(3000, a=30.0), 2: records(2000, a=6.0), 3: records(3000, 1.5, a=100.0)}  # 3 was started again
    assert values_between(before, {**after, 4: records(1, a=7.0)}) == {"records": 11.0}
    assert values_between(before, before) == {}


def test_without_a_running_broker_there_are_no_rates() -> None:
    before = {each: records(1000, a=0.0) for each in (1, 2, 3)}
    after = {each: records(2000, a=100.0) for each in (1, 2, 3)}
    assert values_between(before, after, running=[1, 2, 3]) == {"records": 300.0}
    del after[3]
    assert values_between(before, after, running=[1, 2, 3]) == {}
    assert values_between(before, after, running=[1, 2]) == {"records": 200.0}  # the third is fenced


def test_a_deleted_topic_does_not_lower_the_rates_of_others() -> None:
    before = {1: records(1000, deleted=1e6, kept=10.0, again=50.0)}
    after = {1: records(2000, kept=40.0, again=5.0, new=3.0)}
    assert values_between(before, after) == {"records": 38.0}


def test_a_topic_that_gets_a_series_of_its_own_is_no_growth() -> None:
    before = {1: records(1000, other=1e6, kept=10.0)}
    after = {1: records(2000, other=4e5, kept=15.0, named=6e5)}
    assert values_between(before, after) == {"records": 5.0}
    assert values_between(before, {1: records(2000, kept=15.0, other=0.0)}) == {"records": 0.0}


def test_the_load_of_a_broker_is_that_between_two_moments() -> None:
    before = {1: Traffic(1000, {"bytes": {"a": 0.0}, "bytes_out": {"a": 7.0}}, {0.1: 0.0, math.inf: 0.0}, 10.0, 3)}
    after = {1: Traffic(3000, {"bytes": {"a": 500.0}, "bytes_out": {"a": 7.0}}, {0.1: 9.0, math.inf: 9.0}, 30.0, 4)}
    (load,) = loads_between(before, after).values()
    assert load[:4] == (4, 250.0, 0.0, 10.0)
    assert load.produce_p99_ms == pytest.approx(99.0)
    assert loads_between({}, after) == {1: BrokerLoad(4)}


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
