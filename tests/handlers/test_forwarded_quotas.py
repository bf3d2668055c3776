"""Quotas of requests that the controller decides: it measures topic changes, and the broker of the client throttles."""

import asyncio
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest

from odradek.handlers.context import ClientConnection
from odradek.handlers.metadata import CREATION_TIMEOUT_S
from odradek.metadata.store import StoreError
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntityData,
    EntryData,
    OpData,
)
from odradek.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from odradek.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from odradek.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from odradek.protocol.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from odradek.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from odradek.protocol.messages.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse
from tests.handlers.forwarding_cluster import BROKER_LISTENER, TwoBrokers

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


class TestCreationOnDemand:
    """Of 30 partitions, more than the quota allows at once: a second creation is refused for some time."""

    @pytest.fixture
    def cluster(self) -> Iterator[TwoBrokers]:
        brokers = TwoBrokers({node_id: {"num.partitions": "30"} for node_id in (CONTROLLER, OTHER)})
        for member in brokers.members:
            member.cache.subscribe(member.services.quotas.follow)
            member.services.partitions = cast("Any", SimpleNamespace(has_failures=False))
        limit(brokers, "controller_mutation_rate", 1)
        yield brokers
        brokers.close()

    def topics_after(self, cluster: TwoBrokers, node_id: int, name: str) -> set[str]:
        request = MetadataRequest(topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=True)
        answer = cluster.call(node_id, request, MetadataResponse)
        return {topic.name for topic in answer.topics if topic.error_code == ErrorCode.NONE}

    @pytest.mark.parametrize("node_id", [CONTROLLER, OTHER])
    @pytest.mark.parametrize("delay_s", [0, CREATION_TIMEOUT_S + 1])
    def test_a_topic_that_could_not_be_created_does_not_count(
        self, cluster: TwoBrokers, monkeypatch: pytest.MonkeyPatch, node_id: int, delay_s: float
    ) -> None:
        async def fail(*_: Any, **_version: Any) -> Any:
            await asyncio.sleep(delay_s)  # a measured time, by the simulated clock
            raise StoreError("away")

        with monkeypatch.context() as patch:
            patch.setattr(cluster.members[CONTROLLER].controller_store, "commit", fail)
            for _ in range(2):
                assert self.topics_after(cluster, node_id, "a") == set()
            cluster.pass_time(2 * delay_s)
        assert self.topics_after(cluster, node_id, "a") == {"a"}

    @pytest.mark.parametrize("node_id", [CONTROLLER, OTHER])
    def test_a_topic_that_is_created_after_the_answer_counts(
        self, cluster: TwoBrokers, monkeypatch: pytest.MonkeyPatch, node_id: int
    ) -> None:
        store = cluster.members[CONTROLLER].controller_store
        commit = store.commit

        async def commit_late(*changes: Any, **version: Any) -> Any:
            await asyncio.sleep(CREATION_TIMEOUT_S + 1)  # a measured time, by the simulated clock
            return await commit(*changes, **version)

        monkeypatch.setattr(store, "commit", commit_late)
        assert self.topics_after(cluster, node_id, "a") == set()
        assert self.topics_after(cluster, node_id, "b") == set()
        cluster.pass_time(CREATION_TIMEOUT_S + 2)
        assert self.topics_after(cluster, node_id, "c") == set()
        cluster.pass_time(CREATION_TIMEOUT_S + 2)
        assert cluster.members[node_id].cache.image.topics.keys() == {"a"}
        asked = [each for each in cluster.members[CONTROLLER].received if isinstance(each, CreateTopicsRequest)]
        assert len(asked) == (node_id == OTHER), "the other broker asks for `a` only"

    def test_a_topic_that_is_created_but_not_applied_in_time_counts(
        self, cluster: TwoBrokers, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        cache = cluster.members[CONTROLLER].cache
        with monkeypatch.context() as patch:
            patch.setattr(cache, "wait_until_applied", lambda _: asyncio.Event().wait())
            self.topics_after(cluster, CONTROLLER, "a")
        assert cache.image.topics.keys() == {"a"}
        assert self.topics_after(cluster, CONTROLLER, "b") == set()


def test_quotas_follow_the_metadata_on_every_broker(cluster: TwoBrokers) -> None:
    assert not any(member.services.quotas.is_active for member in cluster.members)
    limit(cluster, "producer_byte_rate", 1_000)
    assert all(member.services.quotas.is_active for member in cluster.members)


class TestRequestsOfBrokers:
    """On a plain cluster brokers are User:ANONYMOUS, like the clients."""

    THROTTLE_MS = 700

    @pytest.fixture
    def throttled(self, cluster: TwoBrokers, monkeypatch: pytest.MonkeyPatch) -> TwoBrokers:
        """Every request that is subject to the quota is over it."""
        limit(cluster, "request_percentage", 0.01)
        for member in cluster.members:
            clients = member.services.quotas.clients
            monkeypatch.setattr(clients, "record_request_time", lambda *_: self.THROTTLE_MS)
        return cluster

    def ask(self, cluster: TwoBrokers, peer: ClientConnection, request: Any, response: Any) -> int:
        version = type(request).versions[1]
        cluster.run(cluster.members[CONTROLLER].ask(request, response, peer, version))
        throttle_ms, peer.throttle_ms = peer.throttle_ms, 0
        return throttle_ms

    def test_heartbeats_are_not_throttled_and_clients_are(self, throttled: TwoBrokers) -> None:
        peer = ClientConnection(BROKER_LISTENER, "10.0.0.1")
        assert self.ask(throttled, peer, ApiVersionsRequest(), ApiVersionsResponse) == 0
        assert self.ask(throttled, throttled.client, ApiVersionsRequest(), ApiVersionsResponse) == self.THROTTLE_MS

    def test_the_request_of_a_broker_is_exempt_and_not_its_connection(self, throttled: TwoBrokers) -> None:
        """Without an authorizer a client can send what brokers send."""
        peer = ClientConnection(BROKER_LISTENER, "10.0.0.1")
        metadata = MetadataRequest(topics=[])
        assert self.ask(throttled, peer, metadata, MetadataResponse) == self.THROTTLE_MS
        heartbeat = BrokerHeartbeatRequest(broker_id=1, broker_epoch=101)
        assert self.ask(throttled, peer, heartbeat, BrokerHeartbeatResponse) == 0
        assert self.ask(throttled, peer, metadata, MetadataResponse) == self.THROTTLE_MS
        offsets = ListOffsetsRequest(replica_id=1, topics=[])
        assert self.ask(throttled, peer, offsets, ListOffsetsResponse) == 0
        assert self.ask(throttled, peer, metadata, MetadataResponse) == self.THROTTLE_MS

    def test_a_client_that_sends_what_only_brokers_send_is_throttled(self, throttled: TwoBrokers) -> None:
        heartbeat = BrokerHeartbeatRequest(broker_id=1, broker_epoch=101)
        assert self.ask(throttled, throttled.client, heartbeat, BrokerHeartbeatResponse) == self.THROTTLE_MS
        markers = WriteTxnMarkersRequest(markers=[])
        assert self.ask(throttled, throttled.client, markers, WriteTxnMarkersResponse) == self.THROTTLE_MS
        peer = ClientConnection(BROKER_LISTENER, "10.0.0.1")
        assert self.ask(throttled, peer, markers, WriteTxnMarkersResponse) == 0

    def test_a_client_does_not_become_a_broker_on_the_listener_of_clients(self, throttled: TwoBrokers) -> None:
        heartbeat = BrokerHeartbeatRequest(broker_id=1, broker_epoch=101)
        self.ask(throttled, throttled.client, heartbeat, BrokerHeartbeatResponse)
        metadata = MetadataRequest(topics=[])
        assert self.ask(throttled, throttled.client, metadata, MetadataResponse) == self.THROTTLE_MS
