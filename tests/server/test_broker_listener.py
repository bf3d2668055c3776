"""With a listener of their own for brokers, clients on another listener cannot pretend to be brokers."""

import socket
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # not in __all__

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse
from odradek.protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from odradek.protocol.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse
from odradek.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from odradek.protocol.messages.envelope import EnvelopeRequest, EnvelopeResponse
from odradek.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, ReplicaState
from odradek.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from odradek.protocol.schema import Request, Response
from odradek.testing import RunningBroker, zookeeper
from tests.wire import WireClient

TOPIC = "t"
REFUSED = ErrorCode.CLUSTER_AUTHORIZATION_FAILED

REQUESTS: list[tuple[Request, type[Response], int]] = [
    (FetchRequest(replica_state=ReplicaState(replica_id=2)), FetchResponse, 17),
    (FetchRequest(replica_id=2), FetchResponse, 7),
    (AlterPartitionRequest(broker_id=2), AlterPartitionResponse, 3),
    (BrokerHeartbeatRequest(broker_id=2, want_shut_down=True), BrokerHeartbeatResponse, 0),
    (AllocateProducerIdsRequest(broker_id=2), AllocateProducerIdsResponse, 0),
    (EnvelopeRequest(request_data=b"", client_host_address=b""), EnvelopeResponse, 0),
    (AddPartitionsToTxnRequest(), AddPartitionsToTxnResponse, 5),
]


@pytest.fixture(scope="module")
def ports() -> Iterator[dict[str, int]]:
    """Of the listener of clients and the listener of brokers."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        broker_port = free.getsockname()[1]
    with zookeeper() as server:
        properties: dict[str, str | int] = {
            "zookeeper.connect": f"{server.connect}/listeners",
            "node.id": 1,
            "listeners": f"BROKERS://127.0.0.1:{broker_port},CLIENTS://127.0.0.1:0",
            "listener.security.protocol.map": "CLIENTS:PLAINTEXT,BROKERS:PLAINTEXT",
            "inter.broker.listener.name": "BROKERS",
        }
        broker = RunningBroker(properties)
        try:
            broker.start()
            admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
            admin.create_topics([NewTopic(TOPIC, 1, 1)])[TOPIC].result(60)
            yield {"CLIENTS": broker.port, "BROKERS": broker_port}
        finally:
            broker.close()


def ask(port: int, request: Request, response: type[Response], version: int) -> Any:
    with WireClient(port) as client:
        return client.call(request, response, version)


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("request_", "response", "version"), REQUESTS, ids=lambda each: getattr(each, "__name__", ""))
def test_requests_of_brokers_need_the_listener_of_brokers(
    ports: dict[str, int], request_: Request, response: type[Response], version: int
) -> None:
    assert ask(ports["CLIENTS"], request_, response, version).error_code == REFUSED
    assert ask(ports["BROKERS"], request_, response, version).error_code != REFUSED


def test_older_fetches_of_replicas_are_refused_for_each_partition(ports: dict[str, int]) -> None:
    topic = FetchTopic(topic=TOPIC, partitions=[FetchPartition(partition=0, partition_max_bytes=1)])
    request = FetchRequest(replica_id=2, topics=[topic])

    def error(listener: str) -> int:
        code: int = ask(ports[listener], request, FetchResponse, 5).responses[0].partitions[0].error_code
        return code

    assert error("CLIENTS") == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert error("BROKERS") == ErrorCode.NOT_LEADER_OR_FOLLOWER  # it has no replica


def test_ends_of_epochs_are_not_given_to_a_client_that_names_itself_a_replica(ports: dict[str, int]) -> None:
    topic = OffsetForLeaderTopic(topic=TOPIC, partitions=[OffsetForLeaderPartition(partition=0, leader_epoch=0)])

    def error(listener: str, replica_id: int) -> int:
        request = OffsetForLeaderEpochRequest(replica_id=replica_id, topics=[topic])
        answer = ask(ports[listener], request, OffsetForLeaderEpochResponse, 4)
        code: int = answer.topics[0].partitions[0].error_code
        return code

    assert error("CLIENTS", 2) == REFUSED
    assert error("CLIENTS", -1) == ErrorCode.NONE
    assert error("BROKERS", 2) == ErrorCode.NONE
