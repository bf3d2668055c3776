"""Each kind of attack on Apache Kafka that was published on 28 October 2026, on a real broker that has no
`delegation.token.secret.key`: its memory hardly grows, nothing stays open, and others are served."""

import struct
from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID

import psutil
import pytest

from odradek.handlers.registry import build_cluster_registry
from odradek.protocol.compression import Compression, compress
from odradek.protocol.errors import ErrorCode
from odradek.protocol.fields import array_levels
from odradek.protocol.messages import (
    api_versions,
    create_delegation_token,
    describe_delegation_token,
    expire_delegation_token,
    fetch,
    get_telemetry_subscriptions,
    push_telemetry,
    renew_delegation_token,
    sasl_authenticate,
    sasl_handshake,
)
from odradek.protocol.varints import encode_unsigned_varint
from odradek.server.connection import LARGEST_FRAME_BEFORE_AUTHENTICATION_BYTES
from tests.server.attacked_broker import HARMLESS, AttackedBroker, attacked_broker, authenticate, handshake, log_in
from tests.waiting import eventually
from tests.wire import WireClient, encode_request

MOST_GROWTH_BYTES = 16 << 20
MOST_TAGGED_FIELDS, MOST_PARTITIONS = 1000, 400
API_VERSIONS, SASL_AUTHENTICATE, FETCH_SNAPSHOT, METADATA = 18, 36, 59, 3
LARGEST_API_KEY = 100
NO_KEY = {"delegation.token.secret.key": ""}


@pytest.fixture(scope="module")
def attacked() -> Iterator[AttackedBroker]:
    with attacked_broker(NO_KEY) as running:
        yield running


@pytest.fixture(autouse=True)
def unharmed(attacked: AttackedBroker) -> Iterator[None]:
    process = psutil.Process(attacked.process.pid)

    def connections() -> int:
        return len(process.net_connections("tcp"))

    before, memory = connections(), process.memory_info().rss
    yield
    with WireClient(attacked.target.plain_port) as witness:
        assert witness.call(api_versions.ApiVersionsRequest(), api_versions.ApiVersionsResponse, 0).api_keys
    eventually(lambda: connections() <= before, "the end of the connections")
    assert process.memory_info().rss - memory < MOST_GROWTH_BYTES


@pytest.fixture
def stranger(attacked: AttackedBroker) -> Iterator[WireClient]:
    with WireClient(attacked.target.sasl_port) as client:
        yield client


@pytest.fixture
def anonymous(attacked: AttackedBroker) -> Iterator[WireClient]:
    with WireClient(attacked.target.plain_port) as client:
        yield client


def frame(api_key: int, version: int, *, body: bytes, tags: bytes = b"\0") -> bytes:
    """A request with a flexible header."""
    content = struct.pack(">hhih", api_key, version, 1, 1) + b"c" + tags + body
    return struct.pack(">i", len(content)) + content


# --- tagged fields before authentication


def tagged_fields(count: int, *, size_bytes: int = 0, declared: int | None = None) -> bytes:
    fields = b"".join(
        encode_unsigned_varint(tag + 20_000) + encode_unsigned_varint(size_bytes) + bytes(size_bytes)
        for tag in range(count)
    )
    return encode_unsigned_varint(count if declared is None else declared) + fields


NAMES_OF_CLIENT = b"\2a\2b"
TOO_MANY_TAGGED_FIELDS = {
    "billions in the header": (API_VERSIONS, 3, tagged_fields(10_000, declared=2**31 - 1), NAMES_OF_CLIENT + b"\0"),
    "more than allowed in the header": (
        API_VERSIONS,
        3,
        tagged_fields(MOST_TAGGED_FIELDS + 1),
        NAMES_OF_CLIENT + b"\0",
    ),
    "more than allowed in the body": (API_VERSIONS, 3, b"\0", NAMES_OF_CLIENT + tagged_fields(MOST_TAGGED_FIELDS + 1)),
    "in the body of a token": (SASL_AUTHENTICATE, 2, b"\0", b"\1" + tagged_fields(10_000, declared=2**31 - 1)),
    "one that is longer than the frame": (API_VERSIONS, 3, b"\1\5\xff\xff\xff\xff\7", NAMES_OF_CLIENT + b"\0"),
    "a size that never ends": (API_VERSIONS, 3, b"\1\5" + b"\xff" * 10, NAMES_OF_CLIENT + b"\0"),
}


@pytest.mark.parametrize("name", TOO_MANY_TAGGED_FIELDS)
def test_tagged_fields_of_a_stranger_close_its_connection(stranger: WireClient, name: str) -> None:
    api_key, version, tags, body = TOO_MANY_TAGGED_FIELDS[name]
    if api_key == SASL_AUTHENTICATE:
        handshake(stranger, "PLAIN")
    stranger.send(frame(api_key, version, tags=tags, body=body))
    assert stranger.is_closed_by_peer()


def test_as_many_large_tagged_fields_as_a_stranger_may_send_are_skipped(stranger: WireClient) -> None:
    room = LARGEST_FRAME_BEFORE_AUTHENTICATION_BYTES - 100
    tags = tagged_fields(MOST_TAGGED_FIELDS, size_bytes=room // MOST_TAGGED_FIELDS - 6)
    stranger.send(frame(API_VERSIONS, 3, tags=tags, body=NAMES_OF_CLIENT + b"\0"))
    assert stranger.read_frame() is not None


# --- arrays


def test_a_stranger_can_send_no_array() -> None:
    """Apart from the requests that it may send, none is decoded."""
    for request in (
        api_versions.ApiVersionsRequest,
        sasl_handshake.SaslHandshakeRequest,
        sasl_authenticate.SaslAuthenticateRequest,
    ):
        assert not array_levels(request)


@pytest.mark.parametrize("count", [4_000_000, 2**31 - 1, 2**32 - 1])
def test_an_array_that_is_declared_and_not_sent_closes_the_connection(
    stranger: WireClient, anonymous: WireClient, count: int
) -> None:
    bomb = frame(METADATA, 12, body=encode_unsigned_varint(count) + b"\1" * 60_000)
    for attacker in (stranger, anonymous):
        attacker.send(bomb)
        assert attacker.is_closed_by_peer()


def test_the_elements_of_nested_arrays_are_bounded_together(anonymous: WireClient) -> None:
    """Topics with many partitions, all of them there: neither array alone is large."""
    request = fetch.FetchRequest
    count = 1 + request.element_limit() // MOST_PARTITIONS
    partitions = [fetch.FetchPartition(partition=index) for index in range(MOST_PARTITIONS)]
    topics = [fetch.FetchTopic(topic=HARMLESS, partitions=partitions) for _ in range(count)]
    anonymous.send(encode_request(request(topics=topics), 12))
    assert anonymous.is_closed_by_peer()


# --- telemetry


@pytest.mark.parametrize("codec", [Compression.GZIP, Compression.SNAPPY, Compression.LZ4, Compression.ZSTD])
def test_telemetry_that_decompresses_to_a_multiple_is_refused(anonymous: WireClient, codec: Compression) -> None:
    asked = get_telemetry_subscriptions.GetTelemetrySubscriptionsRequest(client_instance_id=UUID(int=0))
    given = anonymous.call(asked, get_telemetry_subscriptions.GetTelemetrySubscriptionsResponse)
    assert given.requested_metrics, "a subscription asks for metrics"
    push = push_telemetry.PushTelemetryRequest(
        client_instance_id=given.client_instance_id,
        subscription_id=given.subscription_id,
        compression_type=codec,
        metrics=compress(codec, bytes(100 << 20))[: 1 << 20],
    )
    assert anonymous.call(push, push_telemetry.PushTelemetryResponse).error_code == ErrorCode.INVALID_RECORD


# --- tokens without a key


def test_without_a_key_no_token_can_be_made_seen_or_changed(attacked: AttackedBroker) -> None:
    """HMACs with an empty key could be computed by everyone."""
    requests: list[Callable[[WireClient], Any]] = [
        lambda client: client.call(
            create_delegation_token.CreateDelegationTokenRequest(max_lifetime_ms=-1),
            create_delegation_token.CreateDelegationTokenResponse,
        ),
        lambda client: client.call(
            describe_delegation_token.DescribeDelegationTokenRequest(owners=None),
            describe_delegation_token.DescribeDelegationTokenResponse,
        ),
        lambda client: client.call(
            renew_delegation_token.RenewDelegationTokenRequest(hmac=bytes(64)),
            renew_delegation_token.RenewDelegationTokenResponse,
        ),
        lambda client: client.call(
            expire_delegation_token.ExpireDelegationTokenRequest(hmac=bytes(64), expiry_time_period_ms=-1),
            expire_delegation_token.ExpireDelegationTokenResponse,
        ),
    ]
    with WireClient(attacked.target.sasl_port) as client:
        log_in(client)
        for request in requests:
            assert request(client).error_code == ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED


def test_without_a_key_nobody_logs_in_with_a_token(stranger: WireClient) -> None:
    from tests.security.sasl.test_scram import sign

    handshake(stranger, "SCRAM-SHA-256")
    bare = "n=a-token,r=clientnonce,tokenauth=true"
    challenge = bytes(authenticate(stranger, b"n,," + bare.encode()).auth_bytes).decode()
    assert authenticate(stranger, sign(bare, challenge, "")).error_code == ErrorCode.SASL_AUTHENTICATION_FAILED


# --- FetchSnapshot, and all other APIs that this broker does not have

EMPTY_SNAPSHOTS = {
    "no topics": b"\xff\xff\xff\xff" + struct.pack(">i", 1000) + b"\1\0",
    "a topic without partitions": b"\xff\xff\xff\xff" + struct.pack(">i", 1000) + b"\2\2t\1\0\0",
    "a partition without a snapshot": struct.pack(">ii", 1, 1000) + b"\2\2t\2" + bytes(30) + b"\0\0\0",
    "nothing": b"",
}


@pytest.mark.parametrize("name", EMPTY_SNAPSHOTS)
@pytest.mark.parametrize("version", [0, 1])
def test_an_empty_fetch_of_a_snapshot_closes_the_connection(
    stranger: WireClient, anonymous: WireClient, name: str, version: int
) -> None:
    for attacker in (stranger, anonymous):
        attacker.send(frame(FETCH_SNAPSHOT, version, body=EMPTY_SNAPSHOTS[name]))
        assert attacker.is_closed_by_peer()


def test_every_api_that_this_broker_does_not_have_closes_the_connection(attacked: AttackedBroker) -> None:
    own = build_cluster_registry()
    for api_key in (key for key in range(LARGEST_API_KEY) if key not in own):
        for port in attacked.target:
            for body in (b"", bytes(64), b"\xff" * 64):
                with WireClient(port) as attacker:
                    attacker.send(frame(api_key, 0, body=body))
                    assert attacker.is_closed_by_peer(), api_key
