"""Connections share the memory for incomplete requests: one that must wait for it is not read, and its time is not
counted; one that makes others wait has less time. On a broker all requests are answered all the same."""

import contextlib
import socket
import ssl
import struct
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from odradek.host.receive_budget import FREE_BYTES, ReceiveBudget
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.produce import ProduceResponse
from odradek.server.connection_watch import (
    DELAYING_FRAME_LIMIT_MS,
    FIRST_FRAME_LIMIT_MS,
    FRAME_LIMIT_MS,
    SLOWEST_BYTES_PER_MS,
)
from tests.metrics.exposed import exposed
from tests.security.tls.certificates import write_certificates
from tests.server.conftest import watched_broker
from tests.server.requests import VERSION, batch, create_topic, end_offset, greet, produce_request
from tests.server.test_hostile_peers import error_of
from tests.server.test_time_limits import FRAME, Owner, Peer
from tests.waiting import eventually
from tests.wire import WireClient, decode_response, encode_request

LIMIT_BYTES = 256 << 10
BODY = bytes(300 << 10)
LARGE_FRAME = struct.pack(">i", len(BODY)) + BODY
SWEEP_MS = 1_500
CONNECTIONS = 4


@pytest.fixture
def peers() -> Iterator[list[Peer]]:
    """Of one listener. Each has sent a complete request."""
    owner = Owner(receive_budget=ReceiveBudget(LIMIT_BYTES))
    peers = [Peer(owner) for _ in range(CONNECTIONS)]
    for peer in peers:
        peer.send(FRAME)
    yield peers
    for peer in peers:
        lose(peer)
    assert owner.receive_buffers.budget.used_bytes == 0
    owner.loop.close()


def lose(peer: Peer) -> None:
    peer.connection.connection_lost(None)
    peer.ours.close()
    peer.theirs.close()


def handled(peers: list[Peer]) -> int:
    return peers[0].owner.handled - CONNECTIONS


def send_until_it_waits(peer: Peer, data: bytes) -> bytes:
    """The bytes that the connection did not read."""
    while data and peer.transport.is_reading:
        size = min(len(data), len(peer.connection.get_buffer(-1)))
        peer.send(data[:size])
        data = data[size:]
    return data


def test_a_connection_waits_while_others_have_the_memory_and_goes_on_afterwards(peers: list[Peer]) -> None:
    first, second, third, small = peers
    rest = send_until_it_waits(first, LARGE_FRAME[:-1])
    assert (rest, first.transport.is_reading) == (b"", True), "one connection may exceed the limit"
    second_rest = send_until_it_waits(second, LARGE_FRAME)
    assert len(LARGE_FRAME) - len(second_rest) <= LIMIT_BYTES + 2 * FREE_BYTES
    third_rest = send_until_it_waits(third, LARGE_FRAME)
    assert len(LARGE_FRAME) - len(third_rest) == FREE_BYTES, "it is read no further than a small request is long"
    small.send(FRAME)
    assert handled(peers) == 1
    first.send(LARGE_FRAME[-1:])
    assert second.transport.is_reading
    assert not third.transport.is_reading
    assert send_until_it_waits(second, second_rest) == b""
    assert send_until_it_waits(third, third_rest) == b""
    assert handled(peers) == 4


def test_a_connection_that_closes_gives_its_memory_back(peers: list[Peer]) -> None:
    first, second = peers[:2]
    send_until_it_waits(first, LARGE_FRAME[:-1])
    rest = send_until_it_waits(second, LARGE_FRAME)
    assert not second.transport.is_reading
    lose(first)
    assert send_until_it_waits(second, rest) == b""
    assert handled(peers) == 1
    peers.remove(first)


def test_the_time_for_which_a_connection_waits_for_memory_is_not_its_own(peers: list[Peer]) -> None:
    new, others = Peer(peers[0].owner), peers[:3]
    for peer in others:
        send_until_it_waits(peer, LARGE_FRAME[:-1])
    rest = send_until_it_waits(new, LARGE_FRAME)
    assert not new.transport.is_reading
    peers.append(new)
    for peer in others[1:]:
        lose(peer)
        peers.remove(peer)
    # The limit of the first, whose memory others wait for, ends earlier.
    others[0].owner.clock.advance(max(FIRST_FRAME_LIMIT_MS, FRAME_LIMIT_MS))
    assert others[0].transport.is_aborted
    assert not new.transport.is_aborted
    lose(others[0])
    peers.remove(others[0])
    assert send_until_it_waits(new, rest) == b""


def test_a_frame_that_makes_others_wait_has_less_time(peers: list[Peer]) -> None:
    first, second = peers[:2]
    rest = send_until_it_waits(first, LARGE_FRAME[:-1])
    assert rest == b""
    first.owner.clock.advance(DELAYING_FRAME_LIMIT_MS + SWEEP_MS)
    assert not first.transport.is_aborted, "nobody waits"
    send_until_it_waits(second, LARGE_FRAME)
    first.owner.clock.advance(len(LARGE_FRAME) / SLOWEST_BYTES_PER_MS)
    assert first.transport.is_aborted
    assert not second.transport.is_aborted


def test_a_frame_that_arrives_fast_enough_may_make_others_wait() -> None:
    owner = Owner(receive_budget=ReceiveBudget(LIMIT_BYTES))
    first, second = Peer(owner), Peer(owner)
    send_until_it_waits(first, struct.pack(">i", 8 << 20) + bytes(2 * LIMIT_BYTES))
    send_until_it_waits(second, LARGE_FRAME)
    for _ in range(20):
        first.send(bytes(128 << 10))
        owner.clock.advance(1_000)
    assert not first.transport.is_aborted
    assert not second.transport.is_reading
    for peer in (first, second):
        lose(peer)
    owner.loop.close()


# --- on a broker


def finish(producer: WireClient, part: memoryview, end: bytes) -> ErrorCode:
    """Sends the rest of a request, as soon as the broker takes it, and returns the error code of the answer."""
    producer.socket.settimeout(30)
    producer.send(bytes(part) + end)
    answer = producer.read_frame()
    assert answer is not None
    return error_of(decode_response(ProduceResponse, answer, VERSION))


@pytest.mark.parametrize(
    ("limit_bytes", "other_listener"), [(1 << 20, ""), (1 << 20, "OTHER://127.0.0.1:0,"), (-1, "")]
)
def test_requests_of_many_connections_are_answered_in_whatever_order_they_are_complete(
    limit_bytes: int, other_listener: str
) -> None:
    """Each connection sends most of a request, and the rest when all others have done so. A broker without a cluster
    has the limit on the listener that is the one of brokers in a cluster, too."""
    frame = encode_request(produce_request("t", batch(bytes(900_000))), VERSION)
    properties = {
        "queued.max.request.bytes": str(limit_bytes),
        "listeners": f"{other_listener}PLAINTEXT://127.0.0.1:0",
        "listener.security.protocol.map": "OTHER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
    }
    with watched_broker(properties) as broker, contextlib.ExitStack() as stack:
        admin = stack.enter_context(WireClient(broker.port))
        create_topic(admin, "t")
        process = psutil.Process(broker.pid)
        before = process.memory_info().rss
        producers = [stack.enter_context(WireClient(broker.port)) for _ in range(40)]
        for producer in producers:
            greet(producer)
            producer.socket.setblocking(False)
        parts = [memoryview(frame)[:-1] for _ in producers]

        def send_more() -> bool:
            """Whether the broker has taken what it takes: the rest stays in the clients."""
            sent = 0
            for number, producer in enumerate(producers):
                with contextlib.suppress(BlockingIOError):
                    count = producer.socket.send(parts[number])
                    parts[number] = parts[number][count:]
                    sent += count
            return sent == 0

        eventually(send_more, "the end of the first parts")
        greet(admin)
        grown = process.memory_info().rss - before
        with ThreadPoolExecutor(len(producers)) as threads:
            answers = threads.map(finish, producers, parts, [frame[-1:]] * len(producers))
            assert set(answers) == {ErrorCode.NONE}
        assert end_offset(admin, "t") == len(producers)
    if limit_bytes > 0:
        assert grown < 10 << 20


def test_an_address_that_leaves_its_requests_incomplete_does_not_delay_others() -> None:
    frame = encode_request(produce_request("t", batch(bytes(900_000))), VERSION)
    with watched_broker() as broker, contextlib.ExitStack() as stack:
        client = stack.enter_context(WireClient(broker.port))
        create_topic(client, "t")
        for _ in range(100):
            attacker = socket.create_connection(("127.0.0.1", broker.port), source_address=("127.0.0.2", 0))
            stack.enter_context(attacker).setblocking(False)
            with contextlib.suppress(BlockingIOError):
                attacker.send(frame[:-1])
        eventually(lambda: exposed(broker).value("odradek_connections_waiting_for_memory") > 50)
        began = time.monotonic()
        for _ in range(5):
            client.send(frame)
            answer = client.read_frame()
            assert answer is not None
            assert error_of(decode_response(ProduceResponse, answer, VERSION)) is ErrorCode.NONE
        assert time.monotonic() - began < DELAYING_FRAME_LIMIT_MS / 1000


def test_requests_over_tls_are_answered(tmp_path: Path) -> None:
    """Decrypted bytes wait in the broker, encrypted ones in the sockets."""
    files = write_certificates(tmp_path)
    context = ssl.create_default_context(cafile=files.ca)
    context.load_cert_chain(files.client)
    frame = encode_request(produce_request("t", batch(bytes(900_000))), VERSION)
    properties = {
        "listeners": "SSL://127.0.0.1:0",
        "queued.max.request.bytes": str(1 << 20),
        "auto.create.topics.enable": "true",
        **files.listener_properties(),
    }

    def produce_thrice(client: WireClient) -> list[ErrorCode]:
        return [finish(client, memoryview(frame), b"") for _ in range(3)]

    with watched_broker(properties) as broker, contextlib.ExitStack() as stack:
        clients = []
        for _ in range(20):
            client = WireClient(broker.port)
            client.socket = context.wrap_socket(client.socket, server_hostname="127.0.0.1")
            clients.append(stack.enter_context(client))
        create_topic(clients[0], "t")
        with ThreadPoolExecutor(len(clients)) as threads:
            answers = [error for errors in threads.map(produce_thrice, clients) for error in errors]
        assert set(answers) == {ErrorCode.NONE}
        assert end_offset(clients[0], "t") == len(answers)
