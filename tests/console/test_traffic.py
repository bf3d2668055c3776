"""What brokers of Odradek count of their clients: how it is read, and the rates between two moments."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.admin.broker_requests import BrokerRequests
from odradek.admin.cluster_state import read_state
from odradek.console.cluster.snapshot import (
    BrokerLoad,
    Traffic,
    TrafficReader,
    loads_between,
    percentile_ms,
    sample_values,
    values_between,
)
from odradek.console.cluster.watch import ClusterWatch
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.describe_broker_metrics import (
    DescribeBrokerMetricsRequest,
    DescribeBrokerMetricsResponse,
)
from tests.console.fake_cluster import TOPIC, fake_cluster

if TYPE_CHECKING:
    from odradek.console.cluster.snapshot import Snapshot

TIMEOUT_S = 0.5


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
    assert load.growth is not None
    assert (load.connections, load.growth.requests_per_s) == (4, 10.0)
    assert load.growth.rates == {"bytes": 250.0, "bytes_out": 0.0}
    assert load.produce_p99_ms == pytest.approx(99.0)
    assert loads_between({}, after) == {1: BrokerLoad(4, None)}


def test_percentiles_are_those_of_the_requests_in_between() -> None:
    before = {1: Traffic(1000, {}, {0.001: 90.0, 0.01: 100.0, math.inf: 100.0})}
    after = {1: Traffic(2000, {}, {0.001: 90.0, 0.01: 200.0, math.inf: 200.0})}
    assert values_between(before, after)["produce_p50"] == pytest.approx(5.5)  # the middle of 1 to 10 ms


@given(st.lists(st.floats(0.0001, 20.0), min_size=1, max_size=200), st.sampled_from([0.5, 0.99]))
def test_a_percentile_lies_in_the_bucket_of_the_exact_one(times: list[float], share: float) -> None:
    bounds = [0.001, 0.01, 0.1, 1.0, 10.0, math.inf]
    buckets = {bound: float(sum(each <= bound for each in times)) for bound in bounds}
    found = percentile_ms(buckets, share)
    assert found is not None
    exact = sorted(times)[max(0, math.ceil(share * len(times)) - 1)]
    upper = next(bound for bound in bounds if exact <= bound)
    lower = max([0.0, *(bound for bound in bounds if bound < upper)])
    assert lower <= found / 1000 <= upper * (1 + 1e-9)


def test_without_requests_there_is_no_percentile() -> None:
    assert percentile_ms({0.1: 0.0, math.inf: 0.0}, 0.5) is None
    assert percentile_ms({}, 0.5) is None


def test_a_broker_whose_metrics_fail_once_is_asked_in_the_next_round() -> None:
    with fake_cluster() as cluster:
        cluster.serves_metrics = True
        requests, reader = BrokerRequests(cluster.client(), TIMEOUT_S), TrafficReader()
        state = read_state(requests)
        assert [*reader.read(requests, state)] == [1, 2, 3]
        cluster.brokers[2].goes_on.clear()
        assert [*reader.read(requests, state)] == [1, 2]
        cluster.brokers[2].goes_on.set()
        assert [*reader.read(requests, state)] == [1, 2, 3]


def test_refused_metrics_are_not_asked_for_again_at_once() -> None:
    with fake_cluster(1) as cluster:
        cluster.serves_metrics = True
        cluster.overrides[DescribeBrokerMetricsRequest] = lambda _broker, _request: DescribeBrokerMetricsResponse(
            error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        )
        requests, reader = BrokerRequests(cluster.client(), TIMEOUT_S), TrafficReader()
        state = read_state(requests)
        for _ in range(3):
            assert reader.read(requests, state) == {}
        assert cluster.brokers[0].requests.count(DescribeBrokerMetricsRequest.api_key) == 1


def test_rates_without_the_metrics_of_a_running_broker_are_those_of_the_offsets() -> None:
    with fake_cluster() as cluster:
        watch = ClusterWatch(cluster.client(), 1.0)
        watch.start()
        first = watch.snapshot()
        watch.stop()
    counted = {each: Traffic(1_000, {"records": {TOPIC: 0.0}, "bytes": {TOPIC: 0.0}}) for each in (1, 2, 3)}
    grown = {each: Traffic(2_000, {"records": {TOPIC: 10.0}, "bytes": {TOPIC: 70.0}}) for each in (1, 2, 3)}
    before = replace(first, traffic=counted)
    ends = {key: end + 10 for key, end in first.ends.items()}
    complete = replace(first, monotonic_s=first.monotonic_s + 1, ends=ends, traffic=grown)
    assert sample_of(before, complete) == {"records": 30.0, "bytes": 210.0}
    del grown[3]
    incomplete = replace(first, monotonic_s=first.monotonic_s + 1, ends=ends, traffic=grown)
    assert sample_of(before, incomplete) == {"records": pytest.approx(30.0), "bytes": None}


def sample_of(before: Snapshot, after: Snapshot) -> dict[str, float | None]:
    values = sample_values(before, after)
    return {name: values.get(name) for name in ("records", "bytes")}
