"""Quotas of requests that the controller decides: it measures topic changes, and the broker of the client throttles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntityData,
    EntryData,
    OpData,
)
from odradek.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from tests.handlers.forwarding_cluster import TwoBrokers

if TYPE_CHECKING:
    from collections.abc import Iterator

CONTROLLER, OTHER = 0, 1


@pytest.fixture
def cluster() -> Iterator[TwoBrokers]:
    brokers = TwoBrokers()
    for member in brokers.members:
        member.cache.subscribe(member.services.quotas.follow)
    yield brokers
    brokers.close()


def limit(cluster: TwoBrokers, key: str, value: float) -> None:
    entity = [EntityData(entity_type="user", entity_name="ANONYMOUS")]
    request = AlterClientQuotasRequest(entries=[EntryData(entity=entity, ops=[OpData(key=key, value=value)])])
    answer = cluster.call(CONTROLLER, request, AlterClientQuotasResponse)
    assert answer.entries[0].error_code == ErrorCode.NONE
    cluster.run(cluster.settle())


def create(cluster: TwoBrokers, node_id: int, name: str, version: int = 7) -> Any:
    topic = CreatableTopic(name=name, num_partitions=30, replication_factor=1)
    return cluster.call(node_id, CreateTopicsRequest(topics=[topic], timeout_ms=10_000), CreateTopicsResponse, version)


@pytest.mark.parametrize("node_id", [CONTROLLER, OTHER])
def test_the_broker_of_the_client_mutes_it_for_the_throttle_time_of_the_controller(
    cluster: TwoBrokers, node_id: int
) -> None:
    limit(cluster, "controller_mutation_rate", 1)
    for name in ("a", "b"):
        created = create(cluster, node_id, name)
        if created.topics[0].error_code != ErrorCode.NONE:
            break
        assert (created.throttle_time_ms, cluster.client.throttle_ms) == (0, 0)
    refused = create(cluster, node_id, "c")
    assert refused.topics[0].error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert refused.throttle_time_ms > 0
    assert cluster.client.throttle_ms == refused.throttle_time_ms
    assert "c" not in cluster.members[CONTROLLER].cache.image.topics
    cluster.client.throttle_ms = 0
    cluster.pass_time(refused.throttle_time_ms / 1000 + 0.01)
    assert create(cluster, node_id, "c").topics[0].error_code == ErrorCode.NONE


@pytest.mark.parametrize("node_id", [CONTROLLER, OTHER])
def test_older_versions_are_served_and_throttled(cluster: TwoBrokers, node_id: int) -> None:
    limit(cluster, "controller_mutation_rate", 1)
    created = create(cluster, node_id, "a", 5)
    assert created.topics[0].error_code == ErrorCode.NONE
    assert created.throttle_time_ms > 0
    assert cluster.client.throttle_ms == created.throttle_time_ms


def test_a_request_that_is_refused_for_another_reason_is_not_charged(cluster: TwoBrokers) -> None:
    limit(cluster, "controller_mutation_rate", 1)
    assert create(cluster, OTHER, "a").topics[0].error_code == ErrorCode.NONE
    cluster.client.throttle_ms = 0
    cluster.pass_time(60)
    for _ in range(5):
        again = create(cluster, OTHER, "a")
        assert (again.topics[0].error_code, again.throttle_time_ms) == (ErrorCode.TOPIC_ALREADY_EXISTS, 0)


def test_quotas_follow_the_metadata_on_every_broker(cluster: TwoBrokers) -> None:
    assert not any(member.services.quotas.is_active for member in cluster.members)
    limit(cluster, "producer_byte_rate", 1_000)
    assert all(member.services.quotas.is_active for member in cluster.members)
