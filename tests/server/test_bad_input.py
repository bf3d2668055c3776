"""Bad input is answered or refused at once, memory stays flat, and others are unharmed."""

import socket
import struct
import time
from collections.abc import Iterator

import psutil
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from odradek.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from odradek.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from odradek.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from odradek.protocol.records import Record, build_batch
from odradek.testing import RunningBroker
from tests.wire import WireClient, encode_request

PRODUCE_VERSION = 9
MEBIBYTE = 1 << 20


@pytest.fixture(scope="module")
def broker() -> Iterator[RunningBroker]:
    from odradek.testing import broker as running_broker

    with running_broker(**{"socket.request.max.bytes": str(100 * MEBIBYTE)}) as started:
        with WireClient(started.port) as client:
            topic = CreatableTopic(name="victim", num_partitions=1, replication_factor=1)
            client.call(CreateTopicsRequest(topics=[topic]), CreateTopicsResponse)
        yield started


@pytest.fixture
def client(broker: RunningBroker) -> Iterator[WireClient]:
    with WireClient(broker.port) as connected:
        yield connected


@pytest.fixture
def witness(broker: RunningBroker) -> Iterator[WireClient]:
    """Another client of the same broker, connected before the bad input and served after it."""
    with WireClient(broker.port) as other:
        yield other
        assert other.call(
            ApiVersionsRequest(client_software_name="w", client_software_version="1"), ApiVersionsResponse
        )
        assert produce(other, batch()) is ErrorCode.NONE


def batch(value: bytes = b"fine") -> bytearray:
    return build_batch([Record(offset=0, timestamp=1_000, key=None, value=value, headers=[])])


def produce_request(records: bytes | bytearray, topic: str = "victim") -> ProduceRequest:
    data = PartitionProduceData(index=0, records=memoryview(records))
    return ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[TopicProduceData(name=topic, partition_data=[data])])


def produce(client: WireClient, records: bytes | bytearray) -> ErrorCode:
    answer = client.call(produce_request(records), ProduceResponse, PRODUCE_VERSION)
    return ErrorCode(answer.responses[0].partition_responses[0].error_code)


def framed(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


def header(api_key: int, version: int, *, flexible: bool) -> bytes:
    return struct.pack(">hhih", api_key, version, 1, 1) + b"c" + (b"\0" if flexible else b"")


# --- frames


@pytest.mark.parametrize("size", [0x7FFFFFFF, -1, 0, 3, 100 * MEBIBYTE + 1])
def test_an_impossible_frame_size_closes_the_connection(client: WireClient, witness: WireClient, size: int) -> None:
    client.send(struct.pack(">i", size) + b"12345678")
    assert client.is_closed_by_peer()


# --- headers


@pytest.mark.parametrize("api_key", [-1, 999, 32767, 4, 27])
def test_an_unknown_api_closes_the_connection(client: WireClient, witness: WireClient, api_key: int) -> None:
    client.send(framed(header(api_key, 0, flexible=False)))
    assert client.is_closed_by_peer()


@pytest.mark.parametrize(("api_key", "version"), [(0, 99), (0, 2), (1, 3), (3, 99), (3, -1), (19, 0)])
def test_an_unknown_version_closes_the_connection(
    client: WireClient, witness: WireClient, api_key: int, version: int
) -> None:
    client.send(framed(header(api_key, version, flexible=False) + bytes(40)))
    assert client.is_closed_by_peer()


@pytest.mark.parametrize("version", [5, 99, 32767, -1])
def test_an_unknown_version_of_api_versions_is_answered_in_version_0(client: WireClient, version: int) -> None:
    client.send(framed(header(18, version, flexible=version >= 3) + bytes(4)))
    frame = client.read_frame()
    assert frame is not None
    answer = ApiVersionsResponse.decode(memoryview(frame), 4, 0)
    assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert {key.api_key for key in answer.api_keys} >= {0, 1, 3, 18}


def test_a_truncated_client_id_closes_the_connection(client: WireClient, witness: WireClient) -> None:
    client.send(framed(struct.pack(">hhih", 18, 0, 1, 500) + b"short"))
    assert client.is_closed_by_peer()


# --- bodies

MALFORMED_BODIES = {
    "array count beyond the bytes": (3, 1, struct.pack(">i", 0x7FFFFFFF)),
    "array count below -1": (3, 1, struct.pack(">i", -5)),
    "array count of a million, no bytes": (3, 4, struct.pack(">i", 1_000_000)),
    "compact array count beyond the bytes": (3, 12, b"\xff\xff\xff\xff\x07"),
    "varint without an end": (3, 12, b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"),
    "truncated string": (3, 1, struct.pack(">ih", 1, 30) + b"abc"),
    "string length below -1": (3, 1, struct.pack(">ih", 1, -7)),
    "truncated compact string": (3, 12, b"\x02" + bytes(16) + b"\x20abc"),
    "string that is not UTF-8": (3, 1, struct.pack(">ih", 1, 2) + b"\xff\xfe"),
    "tagged field longer than the frame": (3, 12, b"\x00\x01\x00\x01\x05\x7f"),
    "nothing at all": (1, 11, b""),
    "records longer than the frame": (
        0, 7, struct.pack(">hhii", -1, -1, 1000, 1) + struct.pack(">h", 6) + b"victim"
        + struct.pack(">iii", 1, 0, 0x7FFFFFFF),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MALFORMED_BODIES)
def test_a_malformed_body_closes_the_connection(client: WireClient, witness: WireClient, name: str) -> None:
    api_key, version, body = MALFORMED_BODIES[name]
    client.send(framed(header(api_key, version, flexible=version >= 12) + body))
    assert client.is_closed_by_peer()


# --- clients that do not read


def test_a_client_that_never_reads_costs_no_memory(broker: RunningBroker, witness: WireClient) -> None:
    """It asks for a megabyte a thousand times and takes none of it: the broker stops reading it."""
    for _ in range(3):
        assert produce(witness, batch(bytes(900_000))) is ErrorCode.NONE
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=MEBIBYTE)
    wanted = FetchRequest(
        max_wait_ms=0, min_bytes=1, session_epoch=-1, topics=[FetchTopic(topic="victim", partitions=[partition])]
    )
    greedy = encode_request(wanted, 12)
    before = psutil.Process(broker.pid).memory_info().rss
    with WireClient(broker.port) as deaf:
        deaf.socket.setblocking(False)
        stuffed = 0
        deadline = time.monotonic() + 5
        while stuffed < 64 * MEBIBYTE and time.monotonic() < deadline:
            try:
                stuffed += deaf.socket.send(greedy * 200)
            except BlockingIOError:
                break
        assert produce(witness, batch()) is ErrorCode.NONE
        fetched = witness.call(wanted, FetchResponse, 12)
        assert fetched.responses[0].partitions[0].records
        assert psutil.Process(broker.pid).memory_info().rss - before < 16 * MEBIBYTE


# --- fuzz


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    api_key=st.sampled_from([0, 1, 2, 3, 18, 19, 20, 21, 22, 23, 32, 33, 35, 37, 44, 48, 60, 74, 75]),
    version=st.integers(0, 18),
    body=st.binary(max_size=400),
)
def test_random_requests_are_answered_or_refused(
    broker: RunningBroker, api_key: int, version: int, body: bytes
) -> None:
    with WireClient(broker.port) as fuzzer:
        fuzzer.send(framed(header(api_key, version, flexible=True) + body))
        fuzzer.socket.shutdown(socket.SHUT_WR)
        fuzzer.read_frame()
    with WireClient(broker.port) as other:
        request = ApiVersionsRequest(client_software_name="w", client_software_version="1")
        assert other.call(request, ApiVersionsResponse).error_code == ErrorCode.NONE


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(noise=st.binary(max_size=600))
def test_random_bytes_are_refused(broker: RunningBroker, noise: bytes) -> None:
    with WireClient(broker.port) as fuzzer:
        fuzzer.send(noise)
        fuzzer.socket.shutdown(socket.SHUT_WR)
        while fuzzer.read_frame() is not None:
            pass
    with WireClient(broker.port) as other:
        assert produce(other, batch()) is ErrorCode.NONE
