"""Peers that mean harm, on real sockets: the broker's memory grows by less than 16 MB, nothing of them stays open, and
others are served.

Malformed frames, names and batches are in test_bad_input, time limits in test_time_limits, quotas in test_throttling.
"""

import contextlib
import gzip
import socket
import struct
from collections.abc import Iterator

import cramjam
import crc32c
import psutil
import pytest

from odradek.protocol.batch import ATTRIBUTES_POSITION, HEADER_SIZE_BYTES
from odradek.protocol.compression import Compression
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from odradek.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from odradek.protocol.messages.produce import ProduceResponse
from odradek.protocol.records import Record, build_batch
from odradek.protocol.varints import encode_unsigned_varint
from odradek.testing import RunningBroker
from tests.server.conftest import watched_broker
from tests.server.requests import VERSION, batch, create_topic, end_offset, greet, produce_request
from tests.waiting import eventually
from tests.wire import WireClient, decode_response, encode_request

MEBIBYTE = 1 << 20
MOST_GROWTH_BYTES = 16 * MEBIBYTE
PATIENCE_S = 60


@pytest.fixture(scope="module")
def target() -> Iterator[RunningBroker]:
    with watched_broker() as broker:
        with WireClient(broker.port) as admin:
            create_topic(admin, "plain")
            create_topic(admin, "compacted", cleanup_policy="compact")
            create_topic(admin, "recompressed", compression_type="lz4")
            for topic in ("plain", "compacted", "recompressed"):  # so that its code paths have their memory
                assert error_of(produce_as(admin, "wire", topic, batch())) is ErrorCode.NONE
        yield broker


@pytest.fixture(autouse=True)
def unharmed(target: RunningBroker) -> Iterator[None]:
    """Each test leaves as many connections and as much memory, and others are served meanwhile."""
    process = psutil.Process(target.pid)

    def connections() -> int:
        return len(process.net_connections("tcp"))

    before, memory = connections(), process.memory_info().rss
    with WireClient(target.port) as witness:
        witness.socket.settimeout(PATIENCE_S)
        greet(witness)
        yield
        assert error_of(produce_as(witness, "wire", "plain", batch())) is ErrorCode.NONE
    eventually(lambda: connections() <= before, "the end of the connections")
    assert process.memory_info().rss - memory < MOST_GROWTH_BYTES


@pytest.fixture
def attacker(target: RunningBroker) -> Iterator[WireClient]:
    with WireClient(target.port) as client:
        client.socket.settimeout(PATIENCE_S)
        yield client


def produce_as(client: WireClient, client_id: str, topic: str, records: bytes | bytearray) -> ProduceResponse:
    client.send(encode_request(produce_request(topic, records), VERSION, client_id=client_id))
    frame = client.read_frame()
    assert frame is not None
    return decode_response(ProduceResponse, frame, VERSION)


def error_of(response: ProduceResponse) -> ErrorCode:
    return ErrorCode(response.responses[0].partition_responses[0].error_code)


# --- counts


def test_an_array_that_declares_millions_of_elements(attacker: WireClient) -> None:
    head = struct.pack(">hhih", 3, 12, 1, 1) + b"c" + b"\0"
    body = encode_unsigned_varint(4_000_000) + bytes(64 << 10)
    attacker.send(struct.pack(">i", len(head) + len(body)) + head + body)
    assert attacker.is_closed_by_peer()


def test_millions_of_tagged_fields(attacker: WireClient) -> None:
    """In the header, the first thing that is read of a request."""
    head = struct.pack(">hhih", 18, 3, 1, 1) + b"c" + encode_unsigned_varint(2**31 - 1)
    body = b"\5\0" * (1 << 20)
    attacker.send(struct.pack(">i", len(head) + len(body)) + head + body)
    assert attacker.is_closed_by_peer()


def test_as_many_elements_as_a_message_may_have(attacker: WireClient) -> None:
    topics = [MetadataRequestTopic(name="plain") for _ in range(MetadataRequest.elements_per_level)]
    answer = attacker.call(MetadataRequest(topics=topics, allow_auto_topic_creation=False), MetadataResponse, 12)
    assert answer.topics


# --- frames that never end


def test_sixteen_connections_that_declare_a_hundred_megabytes_each(target: RunningBroker) -> None:
    process = psutil.Process(target.pid)
    before = process.memory_info().rss
    with contextlib.ExitStack() as stack:
        for _ in range(16):
            liar = stack.enter_context(WireClient(target.port))
            liar.send(struct.pack(">i", 100 * MEBIBYTE) + bytes(200_000))
        with WireClient(target.port) as other:
            greet(other)
        assert process.memory_info().rss - before < MOST_GROWTH_BYTES


def test_a_silent_connection_and_a_slow_one_are_closed(target: RunningBroker) -> None:
    """After ten seconds, whatever the machine does meanwhile."""
    with WireClient(target.port) as silent, WireClient(target.port) as slow:
        silent.socket.settimeout(PATIENCE_S)
        slow.socket.settimeout(0.5)
        frame = iter(struct.pack(">i", 1000) + bytes(1000))
        with contextlib.suppress(ConnectionError):
            while True:
                slow.send(bytes([next(frame)]))
                with contextlib.suppress(TimeoutError):
                    if not slow.socket.recv(1):
                        break
        assert silent.is_closed_by_peer()


@pytest.mark.parametrize("how", ["ordered", "reset", "half-closed"])
def test_a_flood_of_connections(target: RunningBroker, how: str) -> None:
    """Opened and left in each way, with a part of a frame."""
    for _ in range(500):
        with WireClient(target.port) as visitor:
            visitor.send(b"\0\0")
            if how == "reset":
                visitor.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            elif how == "half-closed":
                visitor.socket.shutdown(socket.SHUT_WR)


# --- decompression


def bomb(codec: Compression, size_bytes: int, level: int = 3) -> bytearray:
    """A batch whose header is right and whose records decompress to `size_bytes` zeros."""
    zeros = bytes(size_bytes)
    packed = {
        Compression.GZIP: lambda: gzip.compress(zeros, 6),
        Compression.ZSTD: lambda: bytes(cramjam.zstd.compress(zeros, level)),
        Compression.LZ4: lambda: bytes(cramjam.lz4.compress(zeros)),
        Compression.SNAPPY: lambda: bytes(cramjam.snappy.compress_raw(zeros)),
    }[codec]()
    made = build_batch([Record(0, 1_000, b"k", b"v")])[:HEADER_SIZE_BYTES] + packed
    struct.pack_into(">i", made, 8, len(made) - 12)
    made[ATTRIBUTES_POSITION + 1] = codec
    struct.pack_into(">I", made, 17, crc32c.crc32c(memoryview(made)[21:]))
    return made


@pytest.mark.parametrize(
    ("topic", "codec", "size_bytes"),
    [
        ("compacted", Compression.GZIP, 100 * MEBIBYTE),
        ("compacted", Compression.ZSTD, 100 * MEBIBYTE),
        ("compacted", Compression.LZ4, 100 * MEBIBYTE),
        ("compacted", Compression.SNAPPY, 17 * MEBIBYTE),
        ("recompressed", Compression.GZIP, 100 * MEBIBYTE),
        ("recompressed", Compression.SNAPPY, 17 * MEBIBYTE),
        *(("plain", codec, 17 * MEBIBYTE) for codec in list(Compression)[1:]),
    ],
)
def test_records_that_decompress_to_a_multiple_are_refused(
    target: RunningBroker, topic: str, codec: Compression, size_bytes: int
) -> None:
    """Also where no record is read: what the broker has not decompressed may hang its readers. The records are made
    before the connection, which the broker would close if they took ten seconds."""
    records = bomb(codec, size_bytes)
    assert len(records) < MEBIBYTE, "it fits a request"
    with WireClient(target.port) as attacker:
        attacker.socket.settimeout(PATIENCE_S)
        assert error_of(produce_as(attacker, "wire", topic, records)) is ErrorCode.MESSAGE_TOO_LARGE


# --- pretending


def test_a_client_that_pretends_to_be_a_replica_learns_and_moves_nothing(attacker: WireClient) -> None:
    before = end_offset(attacker, "plain")
    wanted = FetchPartition(partition=0, fetch_offset=0, current_leader_epoch=-1, partition_max_bytes=MEBIBYTE)
    request = FetchRequest(
        replica_id=0, max_wait_ms=0, min_bytes=0, topics=[FetchTopic(topic="plain", partitions=[wanted])]
    )
    for replica_id in (0, 1, 2**31 - 1):
        request.replica_id = replica_id
        answer = attacker.call(request, FetchResponse, VERSION)
        (partition,) = answer.responses[0].partitions
        assert partition.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert not partition.records
    assert end_offset(attacker, "plain") == before


@pytest.mark.parametrize("topic", ["__consumer_offsets", "__transaction_state"])
def test_a_client_does_not_write_to_the_topics_of_coordinators(attacker: WireClient, topic: str) -> None:
    found = attacker.call(
        MetadataRequest(topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=True), MetadataResponse, 12
    )
    assert found.topics
    error = error_of(produce_as(attacker, "someone", topic, batch()))
    assert error in (ErrorCode.INVALID_TOPIC_EXCEPTION, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def test_a_batch_of_a_transaction_in_a_request_without_a_transactional_id_is_refused(attacker: WireClient) -> None:
    hidden = build_batch(
        [Record(0, 1_000, None, b"v")], producer_id=7, producer_epoch=0, base_sequence=0, transactional=True
    )
    before = end_offset(attacker, "plain")
    assert error_of(produce_as(attacker, "wire", "plain", hidden)) is ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    behind = batch() + hidden
    assert error_of(produce_as(attacker, "wire", "plain", behind)) is ErrorCode.INVALID_RECORD
    assert end_offset(attacker, "plain") == before
