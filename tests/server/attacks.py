"""Attacks of hostile peers. `python -m tests.server.attacks NAME PLAIN_PORT SASL_PORT` repeats one until it is killed.

An attack that succeeds, or that gets another answer than the one that it must get, ends the process with an assertion.
When the first round is complete, the process prints FIRST_ROUND.
"""

import contextlib
import functools
import random
import socket
import struct
import sys
import time
from collections.abc import Callable
from uuid import UUID

import scramp

from odradek.protocol.compression import Compression, compress
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.api_versions import ApiVersionsRequest
from odradek.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from odradek.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from odradek.protocol.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)
from odradek.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from odradek.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from odradek.protocol.messages.push_telemetry import PushTelemetryRequest, PushTelemetryResponse
from odradek.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from odradek.protocol.records import Record, build_batch
from odradek.protocol.varints import encode_unsigned_varint
from odradek.server.connection import FRAMES_BEFORE_AUTHENTICATION, LARGEST_FRAME_BEFORE_AUTHENTICATION_BYTES
from tests.server.attacked_broker import (
    COMPACTED,
    HARMLESS,
    INTERNAL_TOPICS,
    RECOMPRESSED,
    SCRAM_PASSWORD,
    SCRAM_USER,
    Target,
    authenticate,
    handshake,
)
from tests.server.requests import VERSION, batch, produce_request
from tests.server.state_attacks import STATE_ATTACKS
from tests.server.test_hostile_peers import bomb, error_of, produce_as
from tests.telemetry.otlp_data import counter, metrics_data
from tests.wire import WireClient, decode_response, encode_request

MEBIBYTE = 1 << 20
HELD_CONNECTIONS = 200
ADMIN_CLIENT_ID = "__admin_client"
FIRST_ROUND = "the first round is complete"
CLOSING_S = 2.0  # within which the broker closes a connection that it does not serve
PRODUCERS = 100
BATCHES_OF_ONE_REQUEST = 2_000
ANSWERED_IN_TIME = (ErrorCode.NONE, ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.REQUEST_TIMED_OUT)


def assert_closed(client: WireClient) -> None:
    """TimeoutError, which ends the process as well, if the broker leaves the connection open."""
    client.socket.settimeout(CLOSING_S)
    assert client.is_closed_by_peer()


# --- before authentication


def large_frames_before_authentication(target: Target) -> None:
    with WireClient(target.sasl_port) as stranger:
        with contextlib.suppress(ConnectionError):
            stranger.send(struct.pack(">i", LARGEST_FRAME_BEFORE_AUTHENTICATION_BYTES + 1) + bytes(60_000))
        assert_closed(stranger)


def many_frames_before_authentication(target: Target) -> None:
    with WireClient(target.sasl_port) as stranger:
        with contextlib.suppress(ConnectionError):
            stranger.send(encode_request(ApiVersionsRequest(), 0) * (FRAMES_BEFORE_AUTHENTICATION + 1))
        stranger.socket.settimeout(CLOSING_S)
        answered = 0
        while stranger.read_frame() is not None:
            answered += 1
        assert answered <= FRAMES_BEFORE_AUTHENTICATION


def sasl_out_of_order(target: Target) -> None:
    """A request, a token before the handshake, and a request between handshake and token."""
    metadata = encode_request(MetadataRequest(topics=None), 12)
    for sent in (metadata, encode_request(SaslAuthenticateRequest(auth_bytes=b"\0alice\0alice secret"), 2)):
        with WireClient(target.sasl_port) as stranger:
            stranger.send(sent)
            assert_closed(stranger)
    with WireClient(target.sasl_port) as stranger:
        handshake(stranger, "PLAIN")
        stranger.send(metadata)
        assert_closed(stranger)


_overheard: list[tuple[bytes, bytes]] = []


def replayed_scram_messages(target: Target) -> None:
    """Both messages of a login that succeeded, sent again on a connection of their own."""
    if not _overheard:
        with WireClient(target.sasl_port) as user:
            side = scramp.ScramClient(["SCRAM-SHA-512"], SCRAM_USER, SCRAM_PASSWORD)
            handshake(user, "SCRAM-SHA-512")
            first = side.get_client_first().encode()
            side.set_server_first(bytes(authenticate(user, first).auth_bytes).decode())
            final = side.get_client_final().encode()
            assert authenticate(user, final).error_code == ErrorCode.NONE
            _overheard.append((first, final))
    with WireClient(target.sasl_port) as stranger:
        handshake(stranger, "SCRAM-SHA-512")
        first, final = _overheard[0]
        assert authenticate(stranger, first).error_code == ErrorCode.NONE
        assert authenticate(stranger, final).error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        assert_closed(stranger)


# --- counts


def array_bomb(target: Target) -> None:
    head = struct.pack(">hhih", 3, 12, 1, 1) + b"c" + b"\0"
    _send_and_be_closed(target, head + b"\xff\xff\x03" + b"\1" * 64_000)


def tagged_field_bomb(target: Target) -> None:
    """In the header of a request, and in its body."""
    header = struct.pack(">hhih", 18, 3, 1, 1) + b"c" + encode_unsigned_varint(2**31 - 1)
    _send_and_be_closed(target, header + b"\5\0" * 500_000)
    body = struct.pack(">hhih", 3, 12, 1, 1) + b"c\0" + b"\1\0\0" + encode_unsigned_varint(2**31 - 1)
    _send_and_be_closed(target, body + b"\5\0" * 500_000)


def _send_and_be_closed(target: Target, frame: bytes) -> None:
    with WireClient(target.plain_port) as attacker:
        with contextlib.suppress(ConnectionError):
            attacker.send(struct.pack(">i", len(frame)) + frame)
        assert_closed(attacker)


@functools.cache
def _names(count: int) -> bytes:
    topics = [MetadataRequestTopic(name=f"none-{number}") for number in range(count)]
    return encode_request(MetadataRequest(topics=topics, allow_auto_topic_creation=False), 12)


def many_elements(target: Target) -> None:
    """As many as a request may have."""
    with WireClient(target.plain_port) as attacker:
        attacker.send(_names(MetadataRequest.element_limit()))
        answer = attacker.read_frame()
        assert answer is not None
        assert len(answer) > MetadataRequest.element_limit()


def too_many_elements(target: Target) -> None:
    with WireClient(target.plain_port) as attacker:
        with contextlib.suppress(ConnectionError):
            attacker.send(_names(8 * MetadataRequest.element_limit()))
        assert_closed(attacker)


# --- decompression


def decompression_bomb(target: Target) -> None:
    """In each codec that takes a batch of so many zeros, and such that are just small enough to be read."""
    codecs = [Compression.GZIP, Compression.LZ4, Compression.ZSTD]
    bombs = [bomb(codec, 15 * MEBIBYTE) for codec in (*codecs, Compression.SNAPPY)]
    bombs += [bomb(codec, 100 * MEBIBYTE) for codec in codecs]
    bombs.append(bomb(Compression.ZSTD, 15 * MEBIBYTE, level=22))  # the window is as large as the records
    with WireClient(target.plain_port) as attacker:
        for records in bombs * 2:
            assert error_of(produce_as(attacker, "attacker", COMPACTED, records)) is not ErrorCode.NONE


def many_records(target: Target) -> None:
    """Valid batches with as many records as fit one, which all have to be read."""
    records = build_batch([Record(each, 1_000, b"k", b"") for each in range(100_000)], compression=Compression.ZSTD)
    with WireClient(target.plain_port) as attacker:
        for _ in range(5):
            assert error_of(produce_as(attacker, "attacker", COMPACTED, records)) is ErrorCode.NONE


def recompression(target: Target) -> None:
    """Valid batches that the broker has to compress again."""
    records = build_batch([Record(0, 1_000, b"k", random.Random(1).randbytes(900_000))])
    with WireClient(target.plain_port) as attacker:
        for _ in range(20):
            assert error_of(produce_as(attacker, "attacker", RECOMPRESSED, records)) is ErrorCode.NONE


def many_large_batches(target: Target) -> None:
    """Many connections send valid batches that the broker has to compress again, more than may wait for it."""
    records = build_batch([Record(0, 1_000, b"k", random.Random(1).randbytes(900_000))])
    frame = encode_request(produce_request(RECOMPRESSED, records), VERSION)
    with contextlib.ExitStack() as stack:
        producers = [stack.enter_context(WireClient(target.plain_port)) for _ in range(PRODUCERS)]
        for producer in producers:
            producer.send(frame)
        for producer in producers:
            assert _first_error(producer) in ANSWERED_IN_TIME


def many_batches_in_a_request(target: Target) -> None:
    """Each is small, and has to be decompressed and compressed again."""
    records = memoryview(build_batch([Record(0, 1_000, b"k", bytes(200))], compression=Compression.ZSTD))
    data = [PartitionProduceData(index=0, records=records) for _ in range(BATCHES_OF_ONE_REQUEST)]
    topic = TopicProduceData(name=RECOMPRESSED, partition_data=data)
    with WireClient(target.plain_port) as attacker:
        attacker.send(encode_request(ProduceRequest(acks=1, timeout_ms=1_000, topic_data=[topic]), VERSION))
        assert _first_error(attacker) in ANSWERED_IN_TIME


def _first_error(client: WireClient) -> ErrorCode:
    frame = client.read_frame()
    assert frame is not None
    return error_of(decode_response(ProduceResponse, frame, VERSION))


@functools.cache
def _compressed_zeros() -> bytes:
    return compress(Compression.GZIP, bytes(100 * MEBIBYTE))


@functools.cache
def _largest_metrics() -> bytes:
    return metrics_data(*(counter(f"metric.{n}", n, first="v" * 100, second="v" * 100) for n in range(600)))


def telemetry_bomb(target: Target) -> None:
    refusals = (ErrorCode.INVALID_RECORD, ErrorCode.THROTTLING_QUOTA_EXCEEDED)
    assert _push(target, _compressed_zeros(), Compression.GZIP) in refusals


def largest_telemetry(target: Target) -> None:
    """Each push has an instance id of its own, so that no interval holds it back."""
    _push(target, _largest_metrics(), Compression.NONE)


def _push(target: Target, metrics: bytes, compression: Compression) -> int:
    with WireClient(target.plain_port) as attacker:
        asked = GetTelemetrySubscriptionsRequest(client_instance_id=UUID(int=0))
        given = attacker.call(asked, GetTelemetrySubscriptionsResponse)
        push = PushTelemetryRequest(
            client_instance_id=given.client_instance_id,
            subscription_id=given.subscription_id,
            compression_type=compression,
            metrics=metrics,
        )
        return attacker.call(push, PushTelemetryResponse).error_code


# --- connections


def flood(target: Target) -> None:
    with contextlib.suppress(OSError), WireClient(target.plain_port) as visitor:
        visitor.send(b"\0\0")
        visitor.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def half_open_connections(target: Target) -> None:
    """Each has sent a part of a frame and shut its sending side."""
    with contextlib.ExitStack() as stack:
        for _ in range(HELD_CONNECTIONS):
            half_open = stack.enter_context(WireClient(target.plain_port))
            half_open.send(struct.pack(">i", 1_000) + bytes(100))
            half_open.socket.shutdown(socket.SHUT_WR)


_held: list[WireClient] = []


def silent_connections(target: Target) -> None:
    """They stay until the broker closes them."""
    if not _held:
        _held.extend(WireClient(target.plain_port) for _ in range(HELD_CONNECTIONS))
    time.sleep(1)  # a measured time


def slow_connections(target: Target) -> None:
    """Each sends a byte of its frame at a time, after a request that was complete, until the broker closes it."""
    if not _held:
        for _ in range(HELD_CONNECTIONS):
            slow = WireClient(target.plain_port)
            slow.send(encode_request(ApiVersionsRequest(), 0) + struct.pack(">i", 100_000))
            _held.append(slow)
    for slow in _held:
        with contextlib.suppress(OSError):
            slow.send(b"\0")
    time.sleep(0.2)  # a measured time


def declared_megabytes(target: Target) -> None:
    with contextlib.suppress(OSError), contextlib.ExitStack() as stack:
        liars = [stack.enter_context(WireClient(target.plain_port)) for _ in range(16)]
        for liar in liars:
            liar.send(struct.pack(">i", 100 * MEBIBYTE))
        for _ in range(20):
            for liar in liars:
                liar.send(bytes(4_000))


# --- pretending


def pretended_replica(target: Target) -> None:
    wanted = FetchPartition(partition=0, fetch_offset=0, current_leader_epoch=-1, partition_max_bytes=MEBIBYTE)
    with WireClient(target.plain_port) as attacker:
        for replica_id in (0, 1, 2**31 - 1):
            topics = [FetchTopic(topic=HARMLESS, partitions=[wanted])]
            request = FetchRequest(replica_id=replica_id, max_wait_ms=0, min_bytes=0, topics=topics)
            answer = attacker.call(request, FetchResponse, VERSION)
            for topic in answer.responses:
                for partition in topic.partitions:
                    assert partition.error_code != ErrorCode.NONE
                    assert not partition.records


def internal_topics(target: Target) -> None:
    _write_to_internal_topics(target, "attacker")


def pretended_admin_client(target: Target) -> None:
    _write_to_internal_topics(target, ADMIN_CLIENT_ID)


def _write_to_internal_topics(target: Target, client_id: str) -> None:
    with WireClient(target.plain_port) as attacker:
        for topic in INTERNAL_TOPICS:
            assert error_of(produce_as(attacker, client_id, topic, batch())) is not ErrorCode.NONE


def names_outside_the_directory(target: Target) -> None:
    with WireClient(target.plain_port) as attacker:
        for name in ("..", ".", "../outside", "../../etc/passwd", "/tmp/outside", "a/../b", "a\0b"):
            topic = CreatableTopic(name=name, num_partitions=1, replication_factor=1)
            created = attacker.call(CreateTopicsRequest(topics=[topic]), CreateTopicsResponse)
            assert created.topics[0].error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
            asked = MetadataRequest(topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=True)
            described = attacker.call(asked, MetadataResponse, 12)
            assert described.topics[0].error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
            assert error_of(produce_as(attacker, "attacker", name, batch())) is not ErrorCode.NONE


def hidden_transactional_id(target: Target) -> None:
    """A batch of a transaction in a request without a transactional id, alone and behind a batch of no transaction."""
    hidden = build_batch(
        [Record(0, 1_000, None, b"v")], producer_id=7, producer_epoch=0, base_sequence=0, transactional=True
    )
    with WireClient(target.plain_port) as attacker:
        alone = error_of(produce_as(attacker, "attacker", HARMLESS, hidden))
        assert alone is ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        assert error_of(produce_as(attacker, "attacker", HARMLESS, batch() + hidden)) is ErrorCode.INVALID_RECORD


ATTACKS: dict[str, Callable[[Target], None]] = {
    each.__name__: each
    for each in (
        large_frames_before_authentication,
        many_frames_before_authentication,
        tagged_field_bomb,
        array_bomb,
        many_elements,
        too_many_elements,
        decompression_bomb,
        many_records,
        recompression,
        many_large_batches,
        many_batches_in_a_request,
        telemetry_bomb,
        largest_telemetry,
        half_open_connections,
        slow_connections,
        silent_connections,
        declared_megabytes,
        flood,
        sasl_out_of_order,
        replayed_scram_messages,
        pretended_replica,
        pretended_admin_client,
        names_outside_the_directory,
        hidden_transactional_id,
        internal_topics,
        *STATE_ATTACKS,
    )
}

HOLDING = {"declared_megabytes", "half_open_connections", "silent_connections", "slow_connections"}
"""Attacks whose connections the broker must close itself."""


def main() -> None:
    attack, plain_port, sasl_port = ATTACKS[sys.argv[1]], int(sys.argv[2]), int(sys.argv[3])
    with WireClient(plain_port):  # by which the test sees that the attack begins
        attack(Target(plain_port, sasl_port))
        print(FIRST_ROUND, flush=True)
        while True:
            attack(Target(plain_port, sasl_port))


if __name__ == "__main__":
    main()
