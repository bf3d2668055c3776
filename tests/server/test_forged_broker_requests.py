"""Requests that only brokers send, from others: from strangers and users without ClusterAction on the listener of
brokers, and from everybody on the listener of clients."""

import socket
import struct
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from odradek.handlers.registry import build_cluster_registry
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages import (
    add_partitions_to_txn,
    allocate_producer_ids,
    alter_partition,
    broker_heartbeat,
    fetch,
    write_txn_markers,
)
from odradek.protocol.messages.create_acls import AclCreation, CreateAclsRequest, CreateAclsResponse
from odradek.protocol.messages.envelope import EnvelopeRequest, EnvelopeResponse
from odradek.protocol.schema import Request, Response, Struct
from odradek.security.principal_codec import encode_principal
from odradek.security.principals import Principal
from odradek.testing import zookeeper
from tests.server.attacked_broker import authenticate, handshake
from tests.server.conftest import watched_broker
from tests.server.requests import create_topic
from tests.wire import WireClient, encode_request

pytestmark = pytest.mark.timeout(300)
NODE, TOPIC = 1, "orders"
PASSWORDS = {name: f"{name} secret" for name in ("broker", "admin", "alice")}
MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
USERS = " ".join(f'user_{name}="{password}"' for name, password in PASSWORDS.items())
LOGIN = f'{MODULE} required username="broker" password="{PASSWORDS["broker"]}" {USERS};'
PROPERTIES: dict[str, str] = {
    "node.id": str(NODE),
    "listener.security.protocol.map": "CLIENTS:SASL_PLAINTEXT,BROKERS:SASL_PLAINTEXT",
    "inter.broker.listener.name": "BROKERS",
    "sasl.enabled.mechanisms": "PLAIN",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "listener.name.brokers.plain.sasl.jaas.config": LOGIN,
    "listener.name.clients.plain.sasl.jaas.config": LOGIN,
    "connection.failed.authentication.delay.ms": "10",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:broker;User:admin",
}


def everything_for_alice() -> CreateAclsRequest:
    rule = AclCreation(
        resource_type=4,
        resource_name="kafka-cluster",
        resource_pattern_type=3,
        principal="User:alice",
        host="*",
        operation=2,
        permission_type=3,
    )
    return CreateAclsRequest(creations=[rule])


def forged_envelope(name: str = "admin", listener: str = "") -> EnvelopeRequest:
    """A rule that lets Alice do everything, as if a super user had sent it to another broker."""
    return EnvelopeRequest(
        request_data=encode_request(everything_for_alice(), CreateAclsRequest.versions[1])[4:],
        request_principal=encode_principal(Principal("User", name), listener),
        client_host_address=bytes((127, 0, 0, 1)),
    )


def fetch_of_a_replica(**fields: Any) -> fetch.FetchRequest:
    wanted = fetch.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    return fetch.FetchRequest(topics=[fetch.FetchTopic(topic=TOPIC, partitions=[wanted])], **fields)


def joining(*, verify_only: bool) -> add_partitions_to_txn.AddPartitionsToTxnRequest:
    topic = add_partitions_to_txn.AddPartitionsToTxnTopic(name=TOPIC, partitions=[0])
    transaction = add_partitions_to_txn.AddPartitionsToTxnTransaction(
        transactional_id="payments", producer_id=7, verify_only=verify_only, topics=[topic]
    )
    return add_partitions_to_txn.AddPartitionsToTxnRequest(transactions=[transaction])


def markers() -> write_txn_markers.WriteTxnMarkersRequest:
    topic = write_txn_markers.WritableTxnMarkerTopic(name=TOPIC, partition_indexes=[0])
    marker = write_txn_markers.WritableTxnMarker(producer_id=7, topics=[topic], coordinator_epoch=2**31 - 1)
    return write_txn_markers.WriteTxnMarkersRequest(markers=[marker])


class Forged(NamedTuple):
    request: Request
    response: type[Response]
    version: int


def forged_requests() -> dict[str, Forged]:
    heartbeat = broker_heartbeat.BrokerHeartbeatRequest(broker_id=NODE, want_shut_down=True)
    proposal = alter_partition.AlterPartitionRequest(
        broker_id=NODE,
        topics=[alter_partition.TopicData(partitions=[alter_partition.PartitionData(new_isr=[NODE])])],
    )
    ids = allocate_producer_ids.AllocateProducerIdsRequest(broker_id=NODE)
    adding = add_partitions_to_txn.AddPartitionsToTxnResponse
    return {
        "AlterPartition": Forged(proposal, alter_partition.AlterPartitionResponse, 2),
        "Envelope": Forged(forged_envelope(), EnvelopeResponse, 0),
        "BrokerHeartbeat": Forged(heartbeat, broker_heartbeat.BrokerHeartbeatResponse, 0),
        "AllocateProducerIds": Forged(ids, allocate_producer_ids.AllocateProducerIdsResponse, 0),
        "AddPartitionsToTxn": Forged(joining(verify_only=False), adding, 4),
        "AddPartitionsToTxn, verify": Forged(joining(verify_only=True), adding, 5),
        "WriteTxnMarkers": Forged(markers(), write_txn_markers.WriteTxnMarkersResponse, 1),
        "Fetch": Forged(fetch_of_a_replica(replica_id=NODE), fetch.FetchResponse, 12),
    }


FORGED = forged_requests()
OTHER_APIS_OF_BROKERS = (4, 5, 6, 7, 52, 53, 54, 59, 62, 70, 73, 80, 81, 82)
"""LeaderAndIsr, StopReplica, UpdateMetadata and ControlledShutdown of clusters with ZooKeeper; those of KRaft."""
REFUSALS = {ErrorCode.CLUSTER_AUTHORIZATION_FAILED, ErrorCode.TOPIC_AUTHORIZATION_FAILED}


class Listeners(NamedTuple):
    clients: int
    brokers: int


@pytest.fixture(scope="module")
def listeners() -> Iterator[Listeners]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        broker_port = free.getsockname()[1]
    with zookeeper() as server:
        properties = {
            **PROPERTIES,
            "zookeeper.connect": f"{server.connect}/forged",
            "listeners": f"BROKERS://127.0.0.1:{broker_port},CLIENTS://127.0.0.1:0",
        }
        with watched_broker(properties) as broker:
            ports = Listeners(broker.ports["CLIENTS"], broker_port)
            with logged_in(ports.clients, "admin") as admin:
                create_topic(admin, TOPIC)
            yield ports


def logged_in(port: int, user: str) -> WireClient:
    client = WireClient(port)
    handshake(client, "PLAIN")
    assert authenticate(client, f"\0{user}\0{PASSWORDS[user]}".encode()).error_code == ErrorCode.NONE
    return client


def errors_in(value: object) -> set[ErrorCode]:
    """Every error code of a response, at any depth, apart from NONE."""
    if isinstance(value, list):
        return set().union(*map(errors_in, value))
    if not isinstance(value, Struct):
        return set()
    own = {field.name: getattr(value, field.name) for field in type(value).fields}
    codes = {ErrorCode(code) for name, code in own.items() if name.endswith("error_code")}
    return codes.union(*map(errors_in, own.values())) - {ErrorCode.NONE}


def answer(port: int, user: str, forged: Forged) -> set[ErrorCode]:
    with logged_in(port, user) as client:
        return errors_in(client.call(*forged))


def test_every_request_between_brokers_is_forged_here() -> None:
    between_brokers = {api.name for api in build_cluster_registry().values() if api.is_between_brokers}
    assert between_brokers <= set(FORGED)


@pytest.mark.parametrize("name", FORGED)
def test_only_a_broker_on_the_listener_of_brokers_is_obeyed(listeners: Listeners, name: str) -> None:
    forged = FORGED[name]
    with WireClient(listeners.brokers) as stranger:
        stranger.send(encode_request(forged.request, forged.version))
        assert stranger.is_closed_by_peer(), "it has not authenticated"
    assert answer(listeners.brokers, "alice", forged) in [{each} for each in REFUSALS]
    assert answer(listeners.clients, "alice", forged) in [{each} for each in REFUSALS]
    if name != "WriteTxnMarkers":  # for which Alter is enough
        assert answer(listeners.clients, "broker", forged) in [{each} for each in REFUSALS], "not its listener"


def test_a_forged_principal_in_an_envelope_grants_nothing(listeners: Listeners) -> None:
    """Those of clients are refused; a broker's, with a client that is no super user, is decided as of that client."""
    for port in listeners:
        with logged_in(port, "alice") as alice:
            for envelope in (
                forged_envelope(),
                forged_envelope("broker", "BROKERS"),
                forged_envelope("admin", "x" * 999),
            ):
                refused = alice.call(envelope, EnvelopeResponse, 0)
                assert (refused.error_code, refused.response_data) == (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, None)
    with logged_in(listeners.brokers, "broker") as broker:
        envelope = forged_envelope("alice", "A_LISTENER_THAT_DOES_NOT_EXIST")
        carried = broker.call(envelope, EnvelopeResponse, 0)
        assert carried.error_code == ErrorCode.NONE
        assert ErrorCode.CLUSTER_AUTHORIZATION_FAILED.to_bytes(2, "big") in bytes(carried.response_data or b"")
    with logged_in(listeners.clients, "alice") as alice:
        own = alice.call(everything_for_alice(), CreateAclsResponse)
        assert own.results[0].error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED


def test_a_marker_of_a_client_cannot_lock_out_the_coordinator(listeners: Listeners) -> None:
    """On the listener of clients a super user is no broker: its coordinator epoch must be one that was seen."""
    refused = answer(listeners.clients, "admin", FORGED["WriteTxnMarkers"])
    assert refused == {ErrorCode.TRANSACTION_COORDINATOR_FENCED}


@pytest.mark.parametrize("api_key", OTHER_APIS_OF_BROKERS)
def test_requests_of_other_kinds_of_brokers_close_the_connection(listeners: Listeners, api_key: int) -> None:
    assert api_key not in build_cluster_registry()
    for user in ("alice", "broker"):
        with logged_in(listeners.brokers, user) as client:
            client.send(struct.pack(">ihhih", 74, api_key, 0, 1, -1) + bytes(64))
            assert client.is_closed_by_peer()
