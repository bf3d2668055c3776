"""How long a connection may take for a frame, and how many it may send before authentication; in simulated time."""

import asyncio
import socket
import ssl
import struct
from collections.abc import Iterator
from typing import Any

import pytest

from odradek.coordinator.runtime.waiting_response import WaitingResponse
from odradek.handlers.context import ClientConnection
from odradek.handlers.dispatch import LaterAnswer
from odradek.host.frame_buffer import ReceiveBuffers
from odradek.host.network import ShortAnswers
from odradek.host.receive_budget import ReceiveBudget
from odradek.host.tls_connection import TlsConnection, TlsResources
from odradek.protocol.messages.api_versions import ApiVersionsResponse
from odradek.protocol.schema import Response
from odradek.server.connection import (
    FRAMES_BEFORE_AUTHENTICATION,
    LARGEST_FRAME_BEFORE_AUTHENTICATION_BYTES,
    Connection,
)
from odradek.server.connection_watch import (
    AUTHENTICATION_LIMIT_MS,
    FIRST_FRAME_LIMIT_MS,
    FRAME_LIMIT_MS,
    ConnectionWatch,
)
from odradek.server.refusal_log import RefusalLog
from tests.server.manual_clock import ManualClock

ANSWER = b"\0\0\0\4\0\0\0\0"
FRAME = struct.pack(">i", 8) + bytes(8)
LARGEST_BYTES = 100 << 20


class Transport:
    """Remembers what the connection did with it."""

    def __init__(self, own: socket.socket) -> None:
        self._own = own
        self.is_aborted = False
        self.is_reading = True

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._own if name == "socket" else default

    def is_closing(self) -> bool:
        return self.is_aborted

    def abort(self) -> None:
        self.is_aborted = True

    close = abort

    def pause_reading(self) -> None:
        self.is_reading = False

    def resume_reading(self) -> None:
        self.is_reading = True


class Owner:
    """A listener without a socket, whose dispatcher answers each frame at once or throttles the client."""

    name = "TEST"
    largest_frame_bytes = LARGEST_BYTES

    def __init__(self, *, needs_authentication: bool = False, receive_budget: ReceiveBudget | None = None) -> None:
        self.clock = ManualClock()
        self.loop = asyncio.new_event_loop()
        self.receive_buffers = ReceiveBuffers(receive_budget)
        self.short_answers = ShortAnswers()
        self.refusals = RefusalLog(self.clock)
        self.watch = ConnectionWatch(self.clock)
        self.needs_authentication = needs_authentication
        self.dispatcher: Any = self
        self.handled = 0
        self.throttle_ms = 0
        self.queue_ms: list[float] = []
        self.later: WaitingResponse | None = None

    def handle(
        self, frame: memoryview, client: ClientConnection, now_ms: float | None = None
    ) -> list[bytes] | LaterAnswer:
        self.handled += 1
        self.queue_ms.append(self.clock.monotonic_ms() - client.received_ms)
        client.throttle_ms = self.throttle_ms
        if self.later is not None:
            later, self.later = self.later, None
            return LaterAnswer(self, later)  # type: ignore[arg-type]  # stand-ins of dispatcher, listener and transport
        return [ANSWER]

    def finish(self, response: object) -> list[bytes] | None:
        return [ANSWER] if isinstance(response, Response) else None

    def abandon(self) -> None: ...

    def begin_connection(self, client: ClientConnection) -> None: ...

    def end_connection(self, client: ClientConnection) -> None: ...

    def connection_opened(self, connection: Connection) -> None: ...

    def connection_closed(self, connection: Connection) -> None: ...


class Peer:
    def __init__(self, owner: Owner) -> None:
        self.owner = owner
        self.ours, self.theirs = socket.socketpair()
        self.transport = Transport(self.ours)
        self.connection = Connection(owner)  # type: ignore[arg-type]
        self.connection.connection_made(self.transport)  # type: ignore[arg-type]

    def send(self, data: bytes) -> None:
        while data:
            memory = self.connection.get_buffer(-1)
            size = min(len(data), len(memory))
            memory[:size] = data[:size]
            self.connection.buffer_updated(size)
            data = data[size:]

    def close(self) -> None:
        self.connection.connection_lost(None)
        self.ours.close()
        self.theirs.close()
        self.owner.loop.close()


@pytest.fixture
def peer() -> Iterator[Peer]:
    peer = Peer(Owner())
    yield peer
    peer.close()


@pytest.fixture
def stranger(monkeypatch: pytest.MonkeyPatch) -> Iterator[Peer]:
    """A client of a listener with SASL that is not authenticated."""
    monkeypatch.setattr(ClientConnection, "is_authenticated", False)
    peer = Peer(Owner(needs_authentication=True))
    yield peer
    peer.close()


# --- time


@pytest.mark.parametrize("sent", [b"", FRAME[:3], FRAME[:-1]], ids=["nothing", "half a size", "all but a byte"])
def test_a_connection_without_a_first_frame_is_closed_after_ten_seconds(peer: Peer, sent: bytes) -> None:
    peer.send(sent)
    peer.owner.clock.advance(FIRST_FRAME_LIMIT_MS - 1)
    assert not peer.transport.is_aborted
    peer.owner.clock.advance(1_500)
    assert peer.transport.is_aborted


def test_a_frame_that_was_begun_is_closed_after_thirty_seconds(peer: Peer) -> None:
    peer.send(FRAME)
    peer.owner.clock.advance(3_600_000)
    assert not peer.transport.is_aborted, "a quiet connection has nothing begun"
    peer.send(FRAME[:5])
    peer.owner.clock.advance(FRAME_LIMIT_MS - 1_000)
    peer.send(FRAME[5:-1])  # a byte now and then does not help
    assert not peer.transport.is_aborted
    peer.owner.clock.advance(2_500)
    assert peer.transport.is_aborted


def test_a_large_frame_may_take_longer_as_long_as_it_arrives_fast_enough(peer: Peer) -> None:
    peer.send(FRAME)
    peer.send(struct.pack(">i", 32 << 20))
    for _ in range(100):
        peer.send(bytes(128 << 10))
        peer.owner.clock.advance(1_000)
    assert not peer.transport.is_aborted
    peer.owner.clock.advance(200_000)
    assert peer.transport.is_aborted


def test_frames_that_arrive_in_pieces_are_handled_and_no_longer_watched(peer: Peer) -> None:
    peer.send(FRAME)
    for _ in range(10):
        peer.send(FRAME[:6])
        peer.owner.clock.advance(20_000)
        peer.send(FRAME[6:])
        peer.owner.clock.advance(100_000 if peer.owner.handled % 2 else 0)
    assert peer.owner.handled == 11
    peer.owner.clock.advance(60_000)
    assert not peer.transport.is_aborted
    assert len(peer.owner.watch) == 0


def test_a_client_whose_bytes_never_end_with_a_frame_is_not_slow(peer: Peer) -> None:
    peer.send(FRAME[:6])
    for _ in range(100):
        peer.owner.clock.advance(FRAME_LIMIT_MS / 10)
        peer.send(FRAME[6:] + FRAME[:6])
    assert peer.owner.handled == 100
    assert not peer.transport.is_aborted


def test_a_muted_connection_handles_nothing_until_its_time_is_over(peer: Peer) -> None:
    peer.owner.throttle_ms = 50_000
    peer.send(FRAME + FRAME + FRAME[:5])
    assert peer.owner.handled == 1
    assert not peer.transport.is_reading
    peer.owner.throttle_ms = 0
    peer.owner.clock.advance(49_999)
    assert peer.owner.handled == 1
    assert not peer.transport.is_aborted, "the time of the third frame has not begun"
    peer.owner.clock.advance(1)
    assert peer.owner.handled == 2
    assert peer.transport.is_reading
    peer.owner.clock.advance(FRAME_LIMIT_MS + 1_000)
    assert peer.transport.is_aborted, "now it has"


def test_throttle_time_is_no_time_of_the_request_behind_it(peer: Peer) -> None:
    peer.owner.throttle_ms = 50_000
    peer.send(FRAME + FRAME)
    peer.owner.throttle_ms = 0
    peer.owner.clock.advance(50_000)
    assert peer.owner.queue_ms == [0, 0]


@pytest.mark.parametrize("response", [ApiVersionsResponse(), None], ids=["answered", "unanswered"])
def test_the_wait_of_a_request_is_no_time_of_the_request_behind_it(peer: Peer, response: Response | None) -> None:
    waiting: Any = WaitingResponse(lambda _: None)
    peer.owner.later = waiting
    peer.send(FRAME + FRAME)
    peer.owner.clock.advance(20_000)
    waiting(response)
    peer.owner.clock.advance(7)  # the event loop has other work
    peer.owner.loop.run_until_complete(asyncio.sleep(0))
    assert peer.owner.queue_ms == [0, 7]


def test_a_connection_that_waits_for_its_turn_is_given_its_time_afterwards(peer: Peer) -> None:
    peer.connection.mute(25_000)
    peer.owner.clock.advance(25_000 + FIRST_FRAME_LIMIT_MS - 1_000)
    assert not peer.transport.is_aborted
    peer.send(FRAME)
    assert peer.owner.handled == 1


def test_a_stopping_connection_does_not_wait_for_the_end_of_its_throttle_time(peer: Peer) -> None:
    peer.owner.throttle_ms = 10**9
    peer.send(FRAME)
    peer.connection.finish()
    assert peer.transport.is_closing()


def test_a_refused_connection_begins_no_handshake() -> None:
    """Its ClientHello arrived while it was held."""
    owner, resources = Owner(), TlsResources()
    ours, theirs = socket.socketpair()
    transport, connection = Transport(ours), Connection(owner)  # type: ignore[arg-type]
    tls = TlsConnection(
        connection,
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER),
        resources,
        owner.loop,
        on_secured=connection.connection_secured,
        on_failed=connection.refuse,
    )
    tls.connection_made(transport)  # type: ignore[arg-type]
    connection.refuse_after(1_000)
    tls.get_buffer(-1)[:5] = b"\x16\x03\x01\x02\x00"
    tls.buffer_updated(5)
    owner.clock.advance(1_000)
    assert (tls.is_held, transport.is_closing()) == (True, True)
    tls.connection_lost(None)
    resources.close()
    owner.loop.close()
    ours.close()
    theirs.close()


# --- before authentication


def test_a_frame_before_authentication_is_small(stranger: Peer) -> None:
    stranger.send(struct.pack(">i", LARGEST_FRAME_BEFORE_AUTHENTICATION_BYTES + 1) + bytes(100))
    assert stranger.transport.is_aborted


def test_frames_before_authentication_are_few(stranger: Peer) -> None:
    for _ in range(FRAMES_BEFORE_AUTHENTICATION):
        stranger.send(FRAME)
    assert not stranger.transport.is_aborted
    stranger.send(FRAME)
    assert stranger.transport.is_aborted
    assert stranger.owner.handled == FRAMES_BEFORE_AUTHENTICATION


def test_authentication_has_one_time_for_all_its_frames(stranger: Peer) -> None:
    for _ in range(3):
        stranger.send(FRAME)
        stranger.owner.clock.advance(AUTHENTICATION_LIMIT_MS / 4)
    stranger.send(FRAME)
    assert not stranger.transport.is_aborted
    stranger.owner.clock.advance(AUTHENTICATION_LIMIT_MS / 4 + 1_000)
    assert stranger.transport.is_aborted


def test_an_authenticated_client_may_be_silent(stranger: Peer, monkeypatch: pytest.MonkeyPatch) -> None:
    stranger.send(FRAME)
    stranger.owner.clock.advance(AUTHENTICATION_LIMIT_MS / 2)
    monkeypatch.setattr(ClientConnection, "is_authenticated", True)
    stranger.owner.clock.advance(10 * AUTHENTICATION_LIMIT_MS)
    assert not stranger.transport.is_aborted
    assert len(stranger.owner.watch) == 0


def test_the_time_of_authentication_begins_when_the_turn_of_a_connection_comes(stranger: Peer) -> None:
    stranger.connection.mute(25_000)
    stranger.owner.clock.advance(25_000)
    stranger.send(FRAME)
    stranger.owner.clock.advance(AUTHENTICATION_LIMIT_MS - 1_500)
    assert not stranger.transport.is_aborted
    stranger.owner.clock.advance(2_500)
    assert stranger.transport.is_aborted


def test_authentication_lifts_both_limits(stranger: Peer, monkeypatch: pytest.MonkeyPatch) -> None:
    stranger.send(FRAME)
    monkeypatch.setattr(ClientConnection, "is_authenticated", True)
    stranger.send(struct.pack(">i", 1 << 20) + bytes(1 << 20))
    for _ in range(2 * FRAMES_BEFORE_AUTHENTICATION):
        stranger.send(FRAME)
    assert not stranger.transport.is_aborted
    assert stranger.owner.handled == 2 + 2 * FRAMES_BEFORE_AUTHENTICATION
