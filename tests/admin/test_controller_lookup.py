"""The state of an Apache Kafka cluster whose KRaft controllers are away: its brokers answer, except for requests that
they forward to a controller."""

from __future__ import annotations

import time
from collections import Counter

from odradek.admin.broker_requests import BrokerRequests
from odradek.admin.cluster_state import ControllerLookup, read_state
from odradek.admin.doctor.cluster_rules import CHECKS
from odradek.admin.doctor.findings import exit_code, run_checks
from odradek.protocol.messages.describe_quorum import DescribeQuorumRequest
from odradek.protocol.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from tests.admin.doctor.cluster_facts import healthy
from tests.console.fake_cluster import FORWARDED, FakeCluster, fake_cluster

TIMEOUT_S = 0.5


def count_requests(cluster: FakeCluster) -> Counter[int]:
    """By API key."""
    return Counter(api_key for broker in cluster.brokers for api_key in broker.requests)


def test_a_cluster_without_a_quorum_costs_two_timeouts_and_is_a_problem() -> None:
    with fake_cluster() as cluster:
        cluster.quorum_leader, cluster.has_controller = 2, False
        requests = BrokerRequests(cluster.client(), TIMEOUT_S)
        lookup = ControllerLookup(requests)
        began_at = time.monotonic()
        state = read_state(requests, controllers=lookup)
        assert time.monotonic() - began_at >= 2 * TIMEOUT_S
        asked = count_requests(cluster)
        assert [asked[each.api_key] for each in FORWARDED] == [1, 1]  # those that get no answer
        assert len(state.partitions) == 3
        assert not state.cluster.knows_controller
        assert not state.knows_reassignments
        results = run_checks(CHECKS, healthy(state=state))
        (finding,) = {each.name: each for each in results}["controller"].findings
        assert "no controller answers" in finding.what
        assert exit_code(results) == 2
        read_state(requests, controllers=lookup)
        asked = count_requests(cluster)
        assert asked[DescribeQuorumRequest.api_key] == 1  # silence holds for some seconds
        assert asked[ListPartitionReassignmentsRequest.api_key] == 2


def test_a_broker_that_is_down_is_not_taken_for_a_silent_controller() -> None:
    with fake_cluster() as cluster:
        cluster.quorum_leader = 2
        cluster.brokers[0].close()
        state = read_state(requests := BrokerRequests(cluster.client(), TIMEOUT_S), None, ControllerLookup(requests))
        assert state.cluster.controller_id == 2
        assert state.knows_reassignments
