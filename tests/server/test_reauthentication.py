"""Authentication again, in the midst of other requests of a connection: answers keep their order, no request is handled
as another user, and an exchange that is refused, cut off or repeated harms nobody."""

import time
from collections.abc import Iterator
from typing import Any

import pytest

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntityData,
    EntryData,
    OpData,
)
from odradek.protocol.messages.create_acls import AclCreation, CreateAclsRequest, CreateAclsResponse
from odradek.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from odradek.protocol.messages.fetch import FetchResponse
from odradek.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from odradek.protocol.messages.produce import ProduceResponse
from odradek.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from odradek.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from odradek.protocol.schema import Request, Response
from tests.server.requests import VERSION, batch, create_topic, end_offset, fetch_request, produce_request
from tests.server.sasl_broker import SaslBroker, sasl_broker
from tests.wire import WireClient, decode_response, encode_request

TOPIC = "orders"
TOPIC_TYPE, LITERAL, ALLOW, READ, WRITE = 2, 3, 3, 3, 4
SESSION_MS, SHORT_SESSION_MS = 600_000, 400
ALICE, ADMIN = b"\0alice\0alice secret", b"\0bob\0bob secret"
HANDSHAKE, TOKEN = SaslHandshakeRequest(mechanism="PLAIN"), SaslAuthenticateRequest(auth_bytes=ALICE)
AS_ADMIN = SaslAuthenticateRequest(auth_bytes=ADMIN)
METADATA = MetadataRequest(topics=[])
LONG_POLL_MS = 300
VERSIONS: dict[type[Request], tuple[int, type[Response]]] = {
    SaslHandshakeRequest: (1, SaslHandshakeResponse),
    SaslAuthenticateRequest: (2, SaslAuthenticateResponse),
    MetadataRequest: (12, MetadataResponse),
    CreateTopicsRequest: (5, CreateTopicsResponse),
    type(fetch_request(TOPIC)): (VERSION, FetchResponse),
    type(produce_request(TOPIC, b"")): (VERSION, ProduceResponse),
}


@pytest.fixture(scope="module")
def secured() -> Iterator[SaslBroker]:
    """Alice writes and reads a topic; bob may do everything, and so may anonymous clients of the plain listener."""
    with sasl_broker(
        connections__max__reauth__ms=str(SESSION_MS),
        authorizer__class__name="org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        super__users="User:bob;User:ANONYMOUS",
    ) as running:
        with WireClient(running.plain_port) as admin:
            create_topic(admin, TOPIC)
            rules = [
                AclCreation(
                    resource_type=TOPIC_TYPE,
                    resource_name=TOPIC,
                    resource_pattern_type=LITERAL,
                    principal="User:alice",
                    host="*",
                    operation=operation,
                    permission_type=ALLOW,
                )
                for operation in (READ, WRITE)
            ]
            added = admin.call(CreateAclsRequest(creations=rules), CreateAclsResponse)
            assert [each.error_code for each in added.results] == [ErrorCode.NONE] * 2
        yield running


@pytest.fixture
def admin(secured: SaslBroker) -> Iterator[WireClient]:
    with WireClient(secured.plain_port) as client:
        yield client


@pytest.fixture
def alice(secured: SaslBroker) -> Iterator[WireClient]:
    with WireClient(secured.sasl_port) as client:
        assert errors(converse(client, HANDSHAKE, TOKEN)) == [ErrorCode.NONE] * 2
        yield client


def converse(client: WireClient, *requests: Request) -> list[Response]:
    """Send all requests at once; the answers, which are in the order of the requests, until the connection ends."""
    client.send(b"".join(encode_request(each, VERSIONS[type(each)][0], number) for number, each in enumerate(requests)))
    answers: list[Response] = []
    for number, request in enumerate(requests):
        frame = client.read_frame()
        if frame is None:
            break
        assert int.from_bytes(frame[:4], "big") == number
        version, response = VERSIONS[type(request)]
        answers.append(decode_response(response, frame, version))
    return answers


def errors(answers: list[Any]) -> list[int]:
    return [each.error_code for each in answers]


def long_poll(admin: WireClient, wait_ms: int = LONG_POLL_MS) -> Request:
    return fetch_request(TOPIC, end_offset(admin, TOPIC), max_wait_ms=wait_ms)


def write() -> Request:
    return produce_request(TOPIC, batch())


def new_topic(name: str) -> Request:
    return CreateTopicsRequest(topics=[CreatableTopic(name=name, num_partitions=1, replication_factor=1)])


def exists(admin: WireClient, topic: str) -> bool:
    asked = MetadataRequest(topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False)
    return admin.call(asked, MetadataResponse).topics[0].error_code == ErrorCode.NONE


def test_requests_in_flight_are_answered_in_order_around_it(alice: WireClient, admin: WireClient) -> None:
    end = end_offset(admin, TOPIC)
    answers: list[Any] = converse(alice, write(), long_poll(admin), HANDSHAKE, TOKEN, write(), write(), METADATA)
    assert len(answers) == 7
    assert errors(answers[2:4]) == [ErrorCode.NONE] * 2
    assert answers[3].session_lifetime_ms == SESSION_MS
    written = [answers[index].responses[0].partition_responses[0] for index in (0, 4, 5)]
    assert [(each.error_code, each.base_offset) for each in written] == [
        (ErrorCode.NONE, end + number) for number in range(3)
    ]


def test_no_request_is_handled_as_the_user_that_it_would_change_to(alice: WireClient, admin: WireClient) -> None:
    """Neither those behind it nor the long poll before it; afterwards the connection is closed."""
    end = end_offset(admin, TOPIC)
    answers: list[Any] = converse(
        alice, new_topic("before"), long_poll(admin), HANDSHAKE, AS_ADMIN, new_topic("after"), write()
    )
    assert answers[0].topics[0].error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert errors(answers[2:]) == [ErrorCode.NONE, ErrorCode.SASL_AUTHENTICATION_FAILED]
    assert alice.is_closed_by_peer()
    assert not exists(admin, "before")
    assert not exists(admin, "after")
    assert end_offset(admin, TOPIC) == end


def test_another_mechanism_is_refused(alice: WireClient, admin: WireClient) -> None:
    end = end_offset(admin, TOPIC)
    other = SaslHandshakeRequest(mechanism="SCRAM-SHA-256")
    first = SaslAuthenticateRequest(auth_bytes=b"n,,n=alice,r=clientnonce")
    answers: list[Any] = converse(alice, other, first, write())
    assert errors(answers) == [ErrorCode.NONE, ErrorCode.SASL_AUTHENTICATION_FAILED]
    assert answers[1].error_message == "SASL mechanism is not that of the first authentication, which was PLAIN"
    assert end_offset(admin, TOPIC) == end


@pytest.mark.parametrize("version", [0, 1])
def test_a_request_between_handshake_and_token_closes_the_connection(
    alice: WireClient, admin: WireClient, version: int
) -> None:
    """After a handshake of version 0 it is taken for a token."""
    end = end_offset(admin, TOPIC)
    requests = [(HANDSHAKE, version), (write(), VERSION), (TOKEN, 2), (METADATA, 12)]
    alice.send(b"".join(encode_request(request, version) for request, version in requests))
    assert alice.read_frame() is not None
    assert alice.is_closed_by_peer()
    assert end_offset(admin, TOPIC) == end


def test_it_waits_for_the_end_of_a_throttle_time(alice: WireClient, admin: WireClient) -> None:
    throttle(admin, 1_000.0)
    try:
        began = time.monotonic()
        answers: list[Any] = converse(alice, produce_request(TOPIC, batch(bytes(12_000))), HANDSHAKE, TOKEN, METADATA)
        assert time.monotonic() - began >= answers[0].throttle_time_ms / 1000 > 0
    finally:
        throttle(admin, None)
    assert errors(answers[1:3]) == [ErrorCode.NONE] * 2
    assert len(answers) == 4


def throttle(admin: WireClient, bytes_per_s: float | None) -> None:
    operation = OpData(key="producer_byte_rate", value=bytes_per_s or 0.0, remove=bytes_per_s is None)
    entry = EntryData(entity=[EntityData(entity_type="user", entity_name="alice")], ops=[operation])
    answer = admin.call(AlterClientQuotasRequest(entries=[entry]), AlterClientQuotasResponse)
    assert answer.entries[0].error_code == ErrorCode.NONE


def test_many_at_once_are_refused_but_one(alice: WireClient) -> None:
    """One a second: each of the others costs the broker an answer, and no exchange."""
    answers: list[Any] = converse(alice, *[HANDSHAKE, TOKEN] * 200, METADATA)
    assert len(answers) == 401
    assert errors(answers[:2]) == [ErrorCode.NONE] * 2
    assert set(errors(answers[2:-1])) == {ErrorCode.ILLEGAL_SASL_STATE}


def test_one_that_is_cut_off_harms_nobody(alice: WireClient, admin: WireClient) -> None:
    alice.send(encode_request(HANDSHAKE, 1) + encode_request(TOKEN, 2)[:-5])
    alice.close()
    assert end_offset(admin, TOPIC) >= 0


def test_its_token_is_as_small_as_the_first_one(alice: WireClient) -> None:
    """Kafka's limit, `sasl.server.max.receive.size`, is of each request of an exchange."""
    large = SaslAuthenticateRequest(auth_bytes=b"\0alice\0" + bytes(1 << 20))
    assert errors(converse(alice, HANDSHAKE, large)) == [ErrorCode.NONE]
    assert alice.is_closed_by_peer()


def test_a_session_that_ends_during_a_long_poll_is_renewed_or_closed_after_the_answer() -> None:
    with sasl_broker(connections__max__reauth__ms=str(SHORT_SESSION_MS)) as running:
        with WireClient(running.plain_port) as client:
            create_topic(client, TOPIC)
            poll = long_poll(client, 2 * SHORT_SESSION_MS)
        with WireClient(running.sasl_port) as client:
            assert len(converse(client, HANDSHAKE, TOKEN, poll, METADATA)) == 3
            assert client.is_closed_by_peer()
        with WireClient(running.sasl_port) as client:
            assert len(converse(client, HANDSHAKE, TOKEN, poll, HANDSHAKE, TOKEN, METADATA)) == 6
