"""Metrics of brokers: which brokers are asked for them, and what a sample has while one of them does not answer."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from odradek.admin.broker_requests import BrokerRequests
from odradek.admin.cluster_state import read_state
from odradek.console.cluster.broker_traffic import TrafficReader
from odradek.console.cluster.snapshot import from_offsets_and_sizes, from_traffic
from odradek.console.cluster.watch import ClusterWatch
from odradek.console.models.traffic import Traffic
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.describe_broker_metrics import (
    DescribeBrokerMetricsRequest,
    DescribeBrokerMetricsResponse,
)
from tests.console.fake_cluster import TOPIC, fake_cluster

if TYPE_CHECKING:
    from odradek.console.cluster.snapshot import Snapshot

TIMEOUT_S = 0.5


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
    values = {**from_offsets_and_sizes(before, after), **from_traffic(before, after)}
    return {name: values[name] for name in ("records", "bytes")}
