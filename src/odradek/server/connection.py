"""One client's connection: passes requests from the socket to handlers and responses back, in order.

Requests are handled one at a time, as in Kafka: the next frame is processed when the response to the last one has been
handed to the socket. This keeps the order without a queue, and stops reading from a client that does not read its
responses. After the response to a client that exceeds a quota, the connection is muted: it handles no request for the
throttle time (KIP-219).
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol, cast

from odradek.handlers.context import ClientConnection, CloseConnection
from odradek.handlers.dispatch import LaterAnswer, discard_unstarted
from odradek.host.frame_buffer import SMALLEST_REQUEST_BYTES, FrameBuffer, InvalidFrameSize
from odradek.host.logs import get_logger
from odradek.host.network import SocketWriter, peer_has_closed
from odradek.host.tls_connection import TlsConnection
from odradek.protocol.malformed import MalformedMessage
from odradek.server.connection_counts import CloseReason
from odradek.server.connection_watch import AUTHENTICATION_LIMIT_MS, delaying_frame_limit_ms, frame_limit_ms

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from odradek.handlers.dispatch import Answer, Dispatcher
    from odradek.host.clock import Clock, Timer
    from odradek.host.frame_buffer import ReceiveBuffers
    from odradek.host.network import ShortAnswers
    from odradek.security.principals import Principal
    from odradek.server.connection_watch import ConnectionWatch
    from odradek.server.refusal_log import RefusalLog

log = get_logger(__name__)

LARGEST_FRAME_BEFORE_AUTHENTICATION_BYTES = 64 << 10
FRAMES_BEFORE_AUTHENTICATION = 32  # clients send ApiVersions, SaslHandshake and a few SaslAuthenticate

_NO_FRAME = 0.0
_UNRESTRICTED = -1


class ConnectionOwner(Protocol):
    """The interface of the listener that a connection uses."""

    name: str
    clock: Clock
    loop: asyncio.AbstractEventLoop
    receive_buffers: ReceiveBuffers
    short_answers: ShortAnswers
    largest_frame_bytes: int
    watch: ConnectionWatch
    refusals: RefusalLog
    needs_authentication: bool

    @property
    def dispatcher(self) -> Dispatcher: ...

    def connection_opened(self, connection: Connection) -> None: ...

    def connection_closed(self, connection: Connection) -> None: ...

    def principal_of(self, certificate: bytes | None) -> Principal:
        """`ValueError` for a certificate that names no principal."""


class Connection(asyncio.BufferedProtocol):
    """An asyncio protocol for one connection; `Listener` owns it and may call `finish`."""

    __slots__ = (
        "_awaited",
        "_awaits_first_frame",
        "_begun_ms",
        "_client",
        "_frame_started_ms",
        "_frames",
        "_frames_left",
        "_is_muted",
        "_is_paused",
        "_listener",
        "_transport",
        "_waiting",
        "_writer",
        "close_reason",
        "is_finishing",
        "last_active_ms",
    )

    def __init__(self, listener: ConnectionOwner) -> None:
        self._listener = listener
        largest_bytes, smallest_bytes = listener.largest_frame_bytes, SMALLEST_REQUEST_BYTES
        self._frames_left = _UNRESTRICTED
        if listener.needs_authentication:
            largest_bytes = min(largest_bytes, LARGEST_FRAME_BEFORE_AUTHENTICATION_BYTES)
            smallest_bytes, self._frames_left = 0, FRAMES_BEFORE_AUTHENTICATION  # a token has no request header
        self._frames = FrameBuffer(listener.receive_buffers, largest_bytes, smallest_bytes, self._resume_reading)
        # What the next request waits for: the answer to the last one, or the end of a throttle time.
        self._waiting: asyncio.Future[None] | LaterAnswer | Timer | None = None
        self._awaited: Awaitable[Answer] | None = None  # what the last task was begun for
        self._is_paused = False
        self._is_muted = False
        self._awaits_first_frame = True
        self._frame_started_ms = _NO_FRAME
        self.last_active_ms = 0.0
        self.is_finishing = False
        self.close_reason = CloseReason.CLIENT

    # --- asyncio.BufferedProtocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transport has the methods of asyncio.Transport, but not the base class.
        self._transport = cast("asyncio.Transport", transport)
        listener = self._listener
        self._writer = (
            transport.open_writer(listener.short_answers, self._output_progressed, self._output_failed)
            if isinstance(transport, TlsConnection)
            else SocketWriter(
                transport, listener.loop, listener.short_answers, self._output_progressed, self._output_failed
            )
        )
        peer = transport.get_extra_info("peername")
        self._client = ClientConnection(self._listener.name, *(peer[:2] if peer else ("",)))
        self._frames.set_owner(self._client.host)
        self.last_active_ms = self._frame_started_ms = self._begun_ms = self._listener.clock.monotonic_ms()
        self._listener.dispatcher.begin_connection(self._client)
        self._listener.watch.add(self)
        self._listener.connection_opened(self)

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002 - asyncio's signature
        return self._frames.writable()

    def buffer_updated(self, nbytes: int) -> None:
        self._frames.filled(nbytes)
        self.last_active_ms = self._client.received_ms = now_ms = self._listener.clock.monotonic_ms()
        self._handle_frames(now_ms)

    def eof_received(self) -> bool:
        return False  # lets the transport close: a client that shuts down its sending side is done

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        if self._waiting is not None:
            self._waiting.cancel()
            discard_unstarted(self._awaited)
        self._writer.close()
        self._frames.release()
        self._listener.dispatcher.end_connection(self._client)
        self._listener.watch.remove(self)
        self._listener.connection_closed(self)

    # --- TLS

    def connection_secured(self, peer_certificate: bytes | None) -> None:
        try:
            self._client.principal = self._listener.principal_of(peer_certificate)
        except ValueError as problem:
            self.refuse(str(problem))
            return
        if peer_certificate is not None and self._client.authentication is None:
            self._listener.dispatcher.certificate_accepted(self._client)

    @property
    def client_host(self) -> str:
        return self._client.host

    # --- requests and responses

    def _handle_frames(self, now_ms: float | None = None) -> None:
        """Handles complete frames until one must wait, or the client does not read. `now_ms` is the time if the caller
        has just read the clock."""
        frames, writer, client = self._frames, self._writer, self._client
        try:
            while self._waiting is None and not writer.unsent and not self.is_finishing:
                if self._frames_left != _UNRESTRICTED and client.is_authenticated:
                    frames.largest_frame_bytes = self._listener.largest_frame_bytes
                    self._frames_left = _UNRESTRICTED
                frame = frames.next_frame()
                if frame is None:
                    break
                self._awaits_first_frame = False
                self._frame_started_ms = _NO_FRAME
                if self._frames_left != _UNRESTRICTED:
                    self._count_frame_before_authentication()
                answer = self._listener.dispatcher.handle(frame, client, now_ms)
                now_ms = None
                if isinstance(answer, list):
                    writer.write(answer)
                elif isinstance(answer, LaterAnswer):
                    self._waiting = answer
                    answer.then(self._answer_came)
                elif answer is not None:
                    self._await(answer)
                if client.throttle_ms:
                    self._mute()
            has_unread = frames.settle()
        except (InvalidFrameSize, MalformedMessage) as problem:
            self.refuse(str(problem))
            return
        except CloseConnection as closing:
            self.refuse(str(closing))
            return
        if has_unread or self._is_paused or self._frame_started_ms != _NO_FRAME:
            self._update_reading(has_unread)

    def _count_frame_before_authentication(self) -> None:
        if self._frames_left == 0:
            raise CloseConnection(f"more than {FRAMES_BEFORE_AUTHENTICATION} requests before authentication")
        self._frames_left -= 1

    # --- throttling

    def _mute(self) -> None:
        throttle_ms, self._client.throttle_ms = self._client.throttle_ms, 0
        if not self.is_finishing:
            self.mute(throttle_ms)

    def mute(self, throttle_ms: float) -> None:
        """Handles no request for this long. A closed socket is noticed all the same: at once while reading continues,
        otherwise by the watch."""
        self._is_muted = True
        self._waiting = self._listener.clock.call_after(throttle_ms, self._unmute)
        self._listener.watch.add(self)

    def begin_after(self, delay_ms: float) -> None:
        """For a new connection whose turn comes later: no request is handled, and no TLS handshake begins."""
        if isinstance(self._transport, TlsConnection):
            self._transport.hold()
        self.mute(delay_ms)

    def _unmute(self) -> None:
        self._is_muted = False
        if isinstance(self._transport, TlsConnection) and not self.is_finishing:
            self._transport.release()
        self._waiting = None
        self._resume_clock()
        if self._awaits_first_frame:
            self._frame_started_ms = self._begun_ms = self.last_active_ms
        self._proceed_if_open()

    def refuse_after(self, delay_ms: float) -> None:
        """Reads nothing, and closes after a delay, so that the peer does not connect again at once."""
        self.close_reason = CloseReason.RATE
        self._is_paused = True
        self._transport.pause_reading()
        self.begin_after(delay_ms)
        self.is_finishing = True

    # --- time limits

    @property
    def is_muted(self) -> bool:
        return self._is_muted

    @property
    def needs_watch(self) -> bool:
        return self._is_muted or self._frame_started_ms != _NO_FRAME or self._awaits_authentication

    @property
    def _awaits_authentication(self) -> bool:
        return self._frames_left != _UNRESTRICTED and not self._client.is_authenticated

    def overdue(self, now_ms: float) -> str | None:
        if self._is_muted:
            is_held = isinstance(self._transport, TlsConnection) and self._transport.is_held
            is_closed = (self._is_paused or is_held) and peer_has_closed(self._transport)
            return "the client has disconnected while it was throttled" if is_closed else None
        if self._awaits_authentication and now_ms - self._begun_ms >= AUTHENTICATION_LIMIT_MS:
            return f"not authenticated within {AUTHENTICATION_LIMIT_MS // 1000} s"
        if self._frame_started_ms == _NO_FRAME or self._frames.is_waiting:
            return None
        if self._frames.delays_others:
            limit_ms = delaying_frame_limit_ms(self._frames.received_bytes)
        else:
            limit_ms = frame_limit_ms(self._frames.unread_bytes, is_first=self._awaits_first_frame)
        if now_ms - self._frame_started_ms < limit_ms:
            return None
        what = "no complete request since the connection was opened" if self._awaits_first_frame else "incomplete frame"
        return f"{what}: {self._frames.unread_bytes} bytes in {(now_ms - self._frame_started_ms) / 1000:.0f} s"

    def _resume_clock(self) -> None:
        """The next request of the connection can be handled. The time that it waited for this is not counted as its
        own: a client decides itself to send a request behind a long poll or in its throttle time."""
        self.last_active_ms = self._client.received_ms = self._listener.clock.monotonic_ms()

    # --- answers that come later

    def _answer_came(self, answer: Answer | Awaitable[Answer] | CloseConnection) -> None:
        """Sends the response in the call that gives it. The next request waits for the next turn of the event loop:
        the coordinator that calls this must not get a request in the middle of its work."""
        self._waiting = None
        if isinstance(answer, list):
            self._writer.write(answer)
            if self._client.throttle_ms:
                self._mute()
        elif isinstance(answer, CloseConnection):
            self.refuse(str(answer))
            return
        elif answer is not None:
            self._await(answer)
            return
        self._resume_clock()
        if self._frames.unread_bytes or self.is_finishing:
            self._listener.loop.call_soon(self._proceed_if_open)

    def _proceed_if_open(self) -> None:
        if not self._transport.is_closing():
            self._proceed()

    def _await(self, answer: Awaitable[Answer]) -> None:
        self._awaited = answer
        self._waiting = asyncio.ensure_future(self._answer_later(answer))

    async def _answer_later(self, awaited: Awaitable[Answer]) -> None:
        """Sends the response in the task that computes it: a callback would add an iteration of the event loop."""
        try:
            answer = await awaited
        except CloseConnection as closing:
            self._waiting = None
            self.refuse(str(closing))
            return
        except Exception as problem:
            self._waiting = None
            log.error("request failed", client=self._client.host, exc_info=problem)
            self.abort(CloseReason.FAILED)
            return
        self._waiting = None
        if self._transport.is_closing():
            return
        self._resume_clock()
        if answer is not None:
            self._writer.write(answer)
        if self._client.throttle_ms:
            self._mute()
        self._proceed()

    def _output_progressed(self) -> None:
        """Called when the client has received more of its response: even a slow client is not idle."""
        self._resume_clock()
        if self._writer.is_drained and not self._transport.is_closing():
            self._proceed()

    def _output_failed(self, error: OSError) -> None:
        log.debug("client disconnected", client=self._client.host, reason=error)
        self._transport.abort()

    def _proceed(self) -> None:
        if self.is_finishing or self._client.closes_after_answer:
            self.finish()
        else:
            self._handle_frames()

    def _update_reading(self, has_unread: bool) -> None:
        """Resumes or pauses reading. While a response is pending, reading continues up to one frame's worth of
        unprocessed bytes, so that a closed socket is noticed at once."""
        is_paused = has_unread and (
            self._waiting is not None
            or bool(self._writer.unsent)
            or self.is_finishing
            or not self._frames.may_read()  # asked last: it queues the connection for memory
        )
        if has_unread and not is_paused:
            if self._frame_started_ms == _NO_FRAME:
                self._frame_started_ms = self.last_active_ms
                self._listener.watch.add(self)
        elif not self._awaits_first_frame:
            self._frame_started_ms = _NO_FRAME
        if is_paused and self._client.waiting_replica_fetch is not None:
            self._client.waiting_replica_fetch.finish()  # the follower has sent another request
        if is_paused is self._is_paused or self._transport.is_closing():
            return
        self._is_paused = is_paused
        if is_paused:
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()

    def _resume_reading(self) -> None:
        """There is memory for the rest of the frame. The time that it waited for this is not counted as its own."""
        if self._transport.is_closing():
            return
        self._resume_clock()
        self._frame_started_ms = self.last_active_ms
        self._listener.watch.add(self)
        self._is_paused = False
        self._transport.resume_reading()

    # --- closing

    def refuse(self, reason: str) -> None:
        self._listener.refusals.report("connection closed", client=self._client.host, reason=reason)
        self.abort(CloseReason.REFUSED)

    def finish(self) -> None:
        """Stops accepting requests, sends the response in flight, then closes."""
        if not self.is_finishing and not self._client.closes_after_answer:
            self.close_reason = CloseReason.STOPPING
        elif self._client.closes_after_answer:
            self.close_reason = CloseReason.REFUSED
        self.is_finishing = True
        if (self._waiting is None or self._is_muted) and self._writer.is_drained:
            self._transport.close()

    def abort(self, reason: CloseReason) -> None:
        self.close_reason = reason
        self._transport.abort()
