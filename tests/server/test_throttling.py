"""Clients that exceed a quota, on real sockets: the throttle time in the response, and the muted connection."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Iterator

import psutil
import pytest

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntityData,
    EntryData,
    OpData,
)
from odradek.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from odradek.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from odradek.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse, DeleteTopicState
from odradek.protocol.messages.fetch import FetchPartition, FetchResponse
from odradek.protocol.messages.metadata import MetadataRequest, MetadataResponse
from odradek.protocol.messages.produce import ProduceResponse
from odradek.protocol.schema import Request
from odradek.testing import RunningBroker
from tests.server.conftest import watched_broker
from tests.server.requests import VERSION, batch, create_topic, end_offset, fetch_request, greet, produce_request
from tests.waiting import eventually
from tests.wire import AnyResponse, WireClient, decode_response, encode_request

# With two samples of a second the rate is measured over at least one second, so that tests need not wait for long.
PROPERTIES = {
    "quota.window.num": "2",
    "controller.quota.window.num": "2",
    "connections.max.idle.ms": "1500",
    "auto.create.topics.enable": "false",
}
LONG_S = 60


@pytest.fixture(scope="module")
def limited() -> Iterator[RunningBroker]:
    with watched_broker(PROPERTIES) as broker:
        with WireClient(broker.port) as admin:
            create_topic(admin, "t", max_message_bytes="4000000")
        yield broker


@pytest.fixture
def admin(limited: RunningBroker) -> Iterator[Admin]:
    connected = Admin(limited.port)
    with connected:
        yield connected
        connected.clear()


class Admin(WireClient):
    """Sets quotas of client ids, and removes them at the end."""

    def limit(self, client_id: str, **quotas: float) -> None:
        self._alter("client-id", client_id, dict(quotas))

    def limit_address(self, address: str, rate: float | None) -> None:
        self._alter("ip", address, {"connection_creation_rate": rate})

    def _alter(self, kind: str, name: str, quotas: dict[str, float | None]) -> None:
        entry = EntryData(
            entity=[EntityData(entity_type=kind, entity_name=name)],
            ops=[OpData(key=key, value=value or 0.0, remove=value is None) for key, value in quotas.items()],
        )
        with WireClient(self.socket.getpeername()[1]) as fresh:  # this one may be idle for long
            answer = fresh.call(AlterClientQuotasRequest(entries=[entry]), AlterClientQuotasResponse)
        assert answer.entries[0].error_code == ErrorCode.NONE, answer.entries[0].error_message
        self._set = [*getattr(self, "_set", []), (kind, name, tuple(quotas))]

    def clear(self) -> None:
        for kind, name, keys in getattr(self, "_set", []):
            self._alter(kind, name, dict.fromkeys(keys))


def produce_frame(size_bytes: int, client_id: str, *, acks: int = -1) -> bytes:
    return encode_request(produce_request("t", batch(bytes(size_bytes)), acks=acks), VERSION, client_id=client_id)


def read_produce(client: WireClient) -> ProduceResponse:
    frame = client.read_frame()
    assert frame is not None
    return decode_response(ProduceResponse, frame, VERSION)


def call_as(
    client: WireClient, client_id: str, request: Request, response: type[AnyResponse], version: int
) -> AnyResponse:
    client.send(encode_request(request, version, client_id=client_id))
    frame = client.read_frame()
    assert frame is not None
    return decode_response(response, frame, version)


def patient(port: int) -> WireClient:
    client = WireClient(port)
    client.socket.settimeout(LONG_S)
    return client


# --- the throttle time and the muted connection


@pytest.mark.parametrize("acks", [-1, 0])
def test_a_producer_that_ignores_its_throttle_time_is_throttled_all_the_same(
    limited: RunningBroker, admin: Admin, acks: int
) -> None:
    """It sends two requests at once; the second is handled when the throttle time of the first is over. The connection
    is not idle meanwhile, although the time is longer than idle connections live."""
    client_id = f"ignorant-{acks}"
    admin.limit(client_id, producer_byte_rate=100_000)
    with patient(limited.port) as client:
        began = time.monotonic()
        client.send(produce_frame(300_000, client_id, acks=acks))
        client.send(encode_request(MetadataRequest(topics=[]), 12, 7, client_id))
        if acks:
            answer = read_produce(client)
            assert answer.responses[0].partition_responses[0].error_code == ErrorCode.NONE
            assert 1_500 < answer.throttle_time_ms < 2_200
        frame = client.read_frame()
        assert frame is not None
        assert struct.unpack_from(">i", frame) == (7,)
        assert time.monotonic() - began > 1.5


def test_a_client_within_its_quota_and_one_without_a_quota_are_not_throttled(
    limited: RunningBroker, admin: Admin
) -> None:
    admin.limit("modest", producer_byte_rate=1_000_000)
    with patient(limited.port) as client:
        for client_id in ("modest", "unlimited"):
            client.send(produce_frame(100_000, client_id))
            assert read_produce(client).throttle_time_ms == 0


def test_a_consumer_over_its_quota_gets_an_empty_response_and_later_the_records(
    limited: RunningBroker, admin: Admin
) -> None:
    with patient(limited.port) as writer:
        start_offset = end_offset(writer, "t")
        for _ in range(2):
            writer.send(produce_frame(60_000, "writer"))
            read_produce(writer)
    admin.limit("reader", consumer_byte_rate=100_000)
    with patient(limited.port) as client:

        def fetch() -> FetchResponse:
            client.send(encode_request(fetch_request("t", start_offset, max_bytes=60_000), VERSION, client_id="reader"))
            frame = client.read_frame()
            assert frame is not None
            return decode_response(FetchResponse, frame, VERSION)

        first, second, third = fetch(), fetch(), fetch()
    assert first.throttle_time_ms == 0
    assert len(first.responses[0].partitions[0].records or b"") > 60_000
    assert second.throttle_time_ms > 0
    assert second.responses == []
    assert third.responses, "after its throttle time it gets records"


def test_a_client_that_takes_too_much_time_is_throttled(limited: RunningBroker, admin: Admin) -> None:
    admin.limit("busy", request_percentage=0.001)
    with patient(limited.port) as client:
        throttles = []
        for _ in range(3):
            client.send(encode_request(MetadataRequest(topics=None), 12, client_id="busy"))
            frame = client.read_frame()
            assert frame is not None
            throttles.append(decode_response(MetadataResponse, frame, 12).throttle_time_ms)
    assert max(throttles) > 0
    assert max(throttles) <= 1_000, "at most one window"


def test_a_client_that_disconnects_during_its_requests_pays_for_their_time(
    limited: RunningBroker, admin: Admin
) -> None:
    """The request that is answered takes far less than the quota."""
    create_topic(admin, "wide", 200)
    admin.limit("leaving", request_percentage=10.0)
    fetch = fetch_request("wide", max_wait_ms=600_000)
    partition = fetch.topics[0].partitions[0]
    fetch.topics[0].partitions = [
        FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=partition.partition_max_bytes)
        for index in range(200)
    ]
    waiting = encode_request(fetch, VERSION, client_id="leaving")
    for _ in range(400):
        with WireClient(limited.port) as leaving:
            leaving.send(waiting)
    with patient(limited.port) as client:
        answered = call_as(client, "leaving", MetadataRequest(topics=[]), MetadataResponse, 12)
    assert answered.throttle_time_ms > 0


@pytest.mark.parametrize("how", ["ordered", "reset"])
def test_a_muted_connection_that_its_client_closes_ends(limited: RunningBroker, admin: Admin, how: str) -> None:
    """Its throttle time is hours, and more requests wait in the socket, so that the broker does not read."""
    client_id = f"gone-{how}"
    admin.limit(client_id, producer_byte_rate=1)
    process = psutil.Process(limited.pid)
    leaving = patient(limited.port)
    port = leaving.socket.getsockname()[1]
    leaving.send(produce_frame(100_000, client_id))
    assert read_produce(leaving).throttle_time_ms > 60_000_000
    leaving.send(encode_request(MetadataRequest(topics=[]), 12, client_id=client_id))
    if how == "reset":
        leaving.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    leaving.close()
    eventually(
        lambda: not any(each.raddr and each.raddr.port == port for each in process.net_connections("tcp")),
        "the end of the connection",
    )


def test_a_broker_stops_while_a_client_is_throttled() -> None:
    with watched_broker(PROPERTIES) as broker:
        admin = Admin(broker.port)
        with admin:
            create_topic(admin, "t")
            admin.limit("stuck", producer_byte_rate=1)
        with patient(broker.port) as client:
            client.send(produce_frame(100_000, "stuck"))
            assert read_produce(client).throttle_time_ms > 0
            began = time.monotonic()
            broker.stop()
            assert time.monotonic() - began < LONG_S
            assert client.is_closed_by_peer()


# --- changes of topics (KIP-599)


def topic_request(name: str, partitions: int) -> CreateTopicsRequest:
    return CreateTopicsRequest(topics=[CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)])


def test_topic_changes_over_the_quota_are_refused_from_the_version_that_knows_the_error(
    limited: RunningBroker, admin: Admin
) -> None:
    admin.limit("strict", controller_mutation_rate=0.5)  # a burst of one partition; 4 are allowed once
    with patient(limited.port) as client:
        created = call_as(client, "strict", topic_request("quota-a", 4), CreateTopicsResponse, 7)
        assert (created.topics[0].error_code, created.throttle_time_ms) == (ErrorCode.NONE, 0)
        refused = call_as(client, "strict", topic_request("quota-b", 1), CreateTopicsResponse, 7)
        assert refused.topics[0].error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
        assert refused.topics[0].error_message == "The throttling quota has been exceeded."
        assert 0 < refused.throttle_time_ms <= 6_000
        deletion = DeleteTopicsRequest(topics=[DeleteTopicState(name="quota-a")])
        deleted = call_as(client, "strict", deletion, DeleteTopicsResponse, 6)
        assert deleted.responses[0].error_code == ErrorCode.NONE, "the throttle time was served"
        more = CreatePartitionsRequest(topics=[CreatePartitionsTopic(name="t", count=5, assignments=None)])
        added = call_as(client, "strict", more, CreatePartitionsResponse, 3)
        assert added.results[0].error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED


# --- connections


def test_an_address_that_connects_too_fast_is_refused_and_served_later(limited: RunningBroker, admin: Admin) -> None:
    admin.limit_address("127.0.0.1", 3)
    refused, served = 0, 0
    for _ in range(12):
        with patient(limited.port) as client:
            try:
                greet(client)
                served += 1
            except (AssertionError, ConnectionError):
                refused += 1
    assert refused > 0
    assert served >= 3
    eventually(lambda: _is_served(limited.port), "another connection")
    eventually(lambda: _clears(admin), "the end of the quota, which needs a connection")


def _is_served(port: int) -> bool:
    with patient(port) as client:
        try:
            greet(client)
        except (AssertionError, ConnectionError):
            return False
    return True


def _clears(admin: Admin) -> bool:
    try:
        admin.limit_address("127.0.0.1", None)
    except (AssertionError, ConnectionError):
        return False
    return True


def test_connections_over_the_rate_of_the_broker_wait_for_their_turn() -> None:
    with watched_broker({"max.connection.creation.rate": "5", "quota.window.num": "2"}) as broker:
        began = time.monotonic()
        for _ in range(15):
            with patient(broker.port) as client:
                greet(client)
        # 5 at once, and about one more in each fifth of a second
        assert time.monotonic() - began > 1
