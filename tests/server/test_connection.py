"""Connections: requests in order, answers whole however slowly they are read, and no more of them than allowed."""

import contextlib
import itertools
import os
import select
import socket
import struct
import time

import psutil
import pytest

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from odradek.protocol.messages.fetch import FetchResponse
from odradek.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from odradek.protocol.messages.produce import ProduceResponse
from odradek.testing import RunningBroker
from tests.server.conftest import watched_broker
from tests.server.requests import (
    VERSION,
    batch,
    create_topic,
    end_offset,
    fetch,
    fetch_request,
    greet,
    produce,
    produce_request,
    records_of,
)
from tests.waiting import eventually
from tests.wire import WireClient, decode_response, encode_request

MEBIBYTE = 1 << 20


def is_open(client: WireClient) -> bool:
    try:
        client.call(ApiVersionsRequest(), ApiVersionsResponse, 0)
    except (AssertionError, ConnectionError):
        return False
    return True


# --- order


def test_pipelined_requests_are_answered_in_order(client: WireClient) -> None:
    """Quick ones behind slow ones, acknowledged and not, in one go."""
    create_topic(client, "order")
    requests: list[tuple[int, bytes]] = []
    for number in range(0, 300, 3):
        requests += [
            (number, encode_request(produce_request("order", batch(b"%d" % number)), VERSION, number)),
            (number + 1, encode_request(fetch_request("order", number // 3, max_wait_ms=5), VERSION, number + 1)),
            (number + 2, encode_request(ApiVersionsRequest(), 0, number + 2)),
        ]
    client.send(b"".join(frame for _, frame in requests))
    for number, _ in requests:
        frame = client.read_frame()
        assert frame is not None
        assert struct.unpack_from(">i", frame)[0] == number


def test_a_long_poll_holds_up_its_own_connection_only(running: RunningBroker, client: WireClient) -> None:
    create_topic(client, "poll")
    with WireClient(running.port) as waiting:
        waiting.send(encode_request(fetch_request("poll", max_wait_ms=20_000), VERSION, 1))
        waiting.send(encode_request(ApiVersionsRequest(), 0, 2))
        greet(client)
        assert not select.select([waiting.socket], [], [], 0)[0], "the second answer waits for the first"
        produce(client, "poll", b"wake up")
        first, second = waiting.read_frame(), waiting.read_frame()
        assert first is not None
        assert second is not None
        assert b"wake up" in records_of(decode_response(FetchResponse, first, VERSION))
        assert struct.unpack_from(">i", second)[0] == 2


def test_unacknowledged_batches_keep_their_order_and_leave_no_answer(client: WireClient) -> None:
    create_topic(client, "silent")
    frames = [encode_request(produce_request("silent", batch(b"%03d" % n), acks=0), VERSION, n) for n in range(100)]
    client.send(b"".join(frames))
    assert end_offset(client, "silent") == 100, "its answer is the next thing to read"
    records = fetch(client, "silent")
    places = [records.index(b"%03d" % number) for number in range(100)]
    assert places == sorted(places)


def test_an_unacknowledged_batch_that_is_refused_closes_the_connection(
    running: RunningBroker, client: WireClient
) -> None:
    with WireClient(running.port) as refused:
        refused.send(encode_request(produce_request("no-such-topic", batch(), acks=0), VERSION))
        assert refused.is_closed_by_peer()
    assert is_open(client)


# --- large answers


@pytest.fixture(scope="module")
def large(running: RunningBroker) -> bytes:
    """A topic with 24 MiB of noise; what a quick reader gets of it."""
    with WireClient(running.port) as client:
        create_topic(client, "large", max_message_bytes=str(2 * MEBIBYTE))
        for _ in range(24):
            produce(client, "large", os.urandom(MEBIBYTE))
        return fetch(client, "large")


@pytest.mark.parametrize("piece", [1000, 77_777])
def test_a_slow_reader_gets_its_whole_answer(running: RunningBroker, large: bytes, piece: int) -> None:
    """In small pieces through a small window: each makes the broker go on where sendfile stopped."""
    sock = socket.socket()
    with sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sock.connect(("127.0.0.1", running.port))
        sock.settimeout(20)
        sock.sendall(encode_request(fetch_request("large"), VERSION))
        data = bytearray()
        size = 4
        while len(data) < size:
            data += sock.recv(piece)
            if size == 4 and len(data) >= 4:
                size = 4 + struct.unpack_from(">i", data)[0]
        assert len(data) == size
    assert records_of(decode_response(FetchResponse, bytes(data[4:]), VERSION)) == large


def test_several_large_answers_in_a_row_are_whole(running: RunningBroker, large: bytes) -> None:
    with WireClient(running.port) as reader:
        for number in range(5):
            reader.send(encode_request(fetch_request("large"), VERSION, number))
        for number in range(5):
            frame = reader.read_frame()
            assert frame is not None
            assert struct.unpack_from(">i", frame)[0] == number
            assert records_of(decode_response(FetchResponse, frame, VERSION)) == large


def test_a_reader_that_goes_in_the_middle_costs_nothing(running: RunningBroker, large: bytes) -> None:
    process = psutil.Process(running.pid)
    with WireClient(running.port) as other:
        assert fetch(other, "large") == large  # who has filled its socket once keeps what it waits with
        before = process.num_fds()
        for _ in range(20):
            with WireClient(running.port) as rude:
                rude.send(encode_request(fetch_request("large"), VERSION))
                assert rude.socket.recv(10)
        assert fetch(other, "large") == large
        eventually(lambda: process.num_fds() <= before, "the end of their connections")


def test_others_are_served_while_one_reads_slowly(running: RunningBroker, client: WireClient, large: bytes) -> None:
    with WireClient(running.port) as slow:
        slow.send(encode_request(fetch_request("large"), VERSION))
        for _ in range(20):
            greet(client)  # it must be answered while the other response is not read
        frame = slow.read_frame()
        assert frame is not None
        assert records_of(decode_response(FetchResponse, frame, VERSION)) == large


def test_a_topic_deleted_while_its_records_are_sent_is_sent_whole(running: RunningBroker, client: WireClient) -> None:
    from odradek.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse

    create_topic(client, "doomed", max_message_bytes=str(2 * MEBIBYTE))
    for _ in range(16):
        produce(client, "doomed", os.urandom(MEBIBYTE))
    expected = fetch(client, "doomed")
    with WireClient(running.port) as reader:
        reader.send(encode_request(fetch_request("doomed"), VERSION))
        size = reader.socket.recv(4, socket.MSG_WAITALL)
        deleted = client.call(DeleteTopicsRequest(topic_names=["doomed"]), DeleteTopicsResponse, 4)
        assert deleted.responses[0].error_code == ErrorCode.NONE
        frame = reader._read_exactly(struct.unpack(">i", size)[0])
        assert frame is not None
        assert records_of(decode_response(FetchResponse, frame, VERSION)) == expected


def test_a_large_batch_arrives_in_small_pieces(client: WireClient) -> None:
    create_topic(client, "pieces")
    value = os.urandom(900_000)
    frame = encode_request(produce_request("pieces", batch(value)), VERSION)
    for place in range(0, len(frame), 10_007):
        client.send(frame[place : place + 10_007])
    answer = client.read_frame()
    assert answer is not None
    reported = decode_response(ProduceResponse, answer, VERSION).responses[0].partition_responses[0]
    assert reported.error_code == ErrorCode.NONE
    assert value in fetch(client, "pieces")


# --- how many


def test_no_more_connections_than_allowed() -> None:
    with watched_broker({"max.connections": "3"}) as broker, contextlib.ExitStack() as stack:
        taken = [stack.enter_context(WireClient(broker.port)) for _ in range(3)]
        assert all(map(is_open, taken))
        assert not is_open(stack.enter_context(WireClient(broker.port)))
        eventually(lambda: "max.connections" in broker.output, "a word about it in the log")
        taken[0].close()
        eventually(lambda: is_open(stack.enter_context(WireClient(broker.port))), "a free place")
        assert all(map(is_open, taken[1:]))


def test_the_limit_is_of_the_broker_and_a_listener_may_have_its_own() -> None:
    properties = {
        "listeners": "PLAINTEXT://127.0.0.1:0,INNER://127.0.0.1:0",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,INNER:PLAINTEXT",
        "max.connections": "3",
        "listener.name.inner.max.connections": "1",
    }
    with watched_broker(properties) as broker, contextlib.ExitStack() as stack:
        outer, inner = broker.ports["PLAINTEXT"], broker.ports["INNER"]

        def lets_in(port: int) -> bool:
            return is_open(stack.enter_context(WireClient(port)))

        assert [lets_in(inner), lets_in(inner)] == [True, False]
        eventually(lambda: "listener.name.inner.max.connections" in broker.output, "a word about it in the log")
        assert [lets_in(outer), lets_in(outer), lets_in(outer)] == [True, True, False]
        eventually(lambda: "connection refused: max.connections " in broker.output, "the other limit in the log")


def test_no_more_connections_of_one_address_than_allowed_and_the_limit_can_change() -> None:
    with watched_broker({"max.connections.per.ip": "2"}) as broker, contextlib.ExitStack() as stack:
        taken = [stack.enter_context(WireClient(broker.port)) for _ in range(2)]
        assert all(map(is_open, taken))
        assert not is_open(stack.enter_context(WireClient(broker.port)))
        eventually(lambda: "max.connections.per.ip" in broker.output, "a word about it in the log")
        config = AlterableConfig(name="max.connections.per.ip", config_operation=0, value="3")
        requested = AlterConfigsResource(resource_type=4, resource_name="", configs=[config])
        request = IncrementalAlterConfigsRequest(resources=[requested])
        answer = taken[0].call(request, IncrementalAlterConfigsResponse)
        assert answer.responses[0].error_code == ErrorCode.NONE
        assert is_open(stack.enter_context(WireClient(broker.port)))
        assert not is_open(stack.enter_context(WireClient(broker.port)))


def test_idle_connections_are_closed_and_busy_ones_are_not() -> None:
    with (
        watched_broker({"connections.max.idle.ms": "3000"}) as broker,
        WireClient(broker.port) as idle,
        WireClient(broker.port) as busy,
    ):
        began = time.monotonic()
        while not select.select([idle.socket], [], [], 0.05)[0]:
            assert is_open(busy)
        assert idle.is_closed_by_peer()
        assert 2.9 < time.monotonic() - began < 20
        assert is_open(busy)


def test_a_slow_reader_is_not_idle() -> None:
    """It takes its answer for longer than idle connections live, a little at a time."""
    idle_s = 4
    properties = {"connections.max.idle.ms": str(idle_s * 1000), "socket.send.buffer.bytes": "32768"}
    with watched_broker(properties) as broker, WireClient(broker.port) as writer:
        create_topic(writer, "slow", max_message_bytes=str(2 * MEBIBYTE))
        for _ in range(16):
            produce(writer, "slow", os.urandom(MEBIBYTE))
        sock = socket.socket()
        with sock:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
            sock.connect(("127.0.0.1", broker.port))
            sock.settimeout(20)
            sock.sendall(encode_request(fetch_request("slow"), VERSION))
            began = time.monotonic()
            pieces = [(began, sock.recv(4, socket.MSG_WAITALL))]
            while pieces[-1][0] - began < 1.5 * idle_s:
                pieces.append((time.monotonic(), sock.recv(30_000)))
                select.select([], [], [], 0.02)  # its own pace
            missing = 4 + struct.unpack(">i", pieces[0][1])[0] - sum(len(piece) for _, piece in pieces)
            assert missing > 0, "the answer was too small to be slow"
            longest = max(after - before for (before, _), (after, _) in itertools.pairwise(pieces))
            while missing > 0:
                piece = sock.recv(MEBIBYTE)
                assert piece, f"the broker closed the connection of a client whose longest pause was {longest:.2f} s"
                missing -= len(piece)


def calls_again(client: WireClient) -> int:
    """How often the kernel had to send something twice: its call, as nothing else was sent (tcpi_total_retrans)."""
    (count,) = struct.unpack_from("I", client.socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104), 100)
    return int(count)


def test_a_thousand_idle_connections_are_cheap(running: RunningBroker, client: WireClient) -> None:
    greet(client)
    process = psutil.Process(running.pid)
    before = process.memory_info().rss
    with contextlib.ExitStack() as stack:
        crowd = [stack.enter_context(WireClient(running.port)) for _ in range(1000)]
        assert not any(calls_again(each) for each in crowd), "no connection was dropped"
        assert is_open(crowd[-1])
        assert is_open(crowd[0])
        assert process.memory_info().rss - before < 12 * MEBIBYTE
        used = process.cpu_times().user
        for _ in range(50):
            greet(client)
        assert process.cpu_times().user - used < 1, "those who say nothing take no time"
    eventually(lambda: process.num_fds() < 200, "the end of their connections")


def test_clients_that_leave_while_they_wait_leave_nothing_behind(running: RunningBroker, client: WireClient) -> None:
    create_topic(client, "left", 20)
    process = psutil.Process(running.pid)

    def come_and_go(times: int) -> None:
        for _ in range(times):
            with WireClient(running.port) as leaving:
                leaving.send(encode_request(fetch_request("left", max_wait_ms=2**31 - 1), VERSION))
                greet(client)

    come_and_go(100)
    fds, before = process.num_fds(), process.memory_info().rss
    come_and_go(500)
    eventually(lambda: process.num_fds() <= fds + 2, "the end of their connections")
    assert process.memory_info().rss - before < 2 * MEBIBYTE


@pytest.mark.parametrize("how", ["ordered", "reset"])
def test_both_ways_to_hang_up_end_a_wait(running: RunningBroker, client: WireClient, how: str) -> None:
    create_topic(client, f"hang-up-{how}")
    process = psutil.Process(running.pid)
    leaving = WireClient(running.port)
    port = leaving.socket.getsockname()[1]

    def is_held() -> bool:
        return any(each.raddr and each.raddr.port == port for each in process.net_connections("tcp"))

    leaving.send(encode_request(fetch_request(f"hang-up-{how}", max_wait_ms=60_000), VERSION))
    greet(client)
    assert is_held()
    if how == "reset":
        leaving.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    leaving.close()
    eventually(lambda: not is_held(), "the end of the connection")
