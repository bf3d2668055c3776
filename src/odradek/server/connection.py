"""One client's connection: passes requests from the socket to handlers and responses back, in order.

Requests are handled one at a time, as in Kafka: the next frame is processed when the response to the last one has been
handed to the socket. This keeps the order without a queue, and stops reading from a client that does not read its
responses.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol, cast

from odradek.handlers.context import ClientConnection, CloseConnection
from odradek.handlers.dispatch import LaterAnswer, discard_unstarted
from odradek.host.frame_buffer import FrameBuffer, InvalidFrameSize
from odradek.host.logs import get_logger
from odradek.host.network import SocketWriter
from odradek.protocol.malformed import MalformedMessage

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from odradek.handlers.dispatch import Answer, Dispatcher
    from odradek.host.clock import Clock
    from odradek.host.frame_buffer import ReceiveBuffers
    from odradek.host.network import ShortAnswers

log = get_logger(__name__)


class ConnectionOwner(Protocol):
    """The interface of the listener that a connection uses."""

    name: str
    clock: Clock
    loop: asyncio.AbstractEventLoop
    dispatcher: Dispatcher
    receive_buffers: ReceiveBuffers
    short_answers: ShortAnswers
    largest_frame_bytes: int

    def connection_opened(self, connection: Connection) -> None: ...

    def connection_closed(self, connection: Connection) -> None: ...


class Connection(asyncio.BufferedProtocol):
    """An asyncio protocol for one connection; `Listener` owns it and may call `finish`."""

    __slots__ = (
        "_awaited",
        "_client",
        "_frames",
        "_is_paused",
        "_listener",
        "_transport",
        "_waiting",
        "_writer",
        "is_finishing",
        "last_active_ms",
    )

    def __init__(self, listener: ConnectionOwner) -> None:
        self._listener = listener
        self._frames = FrameBuffer(listener.receive_buffers, listener.largest_frame_bytes)
        self._waiting: asyncio.Future[None] | LaterAnswer | None = None
        self._awaited: Awaitable[Answer] | None = None  # what the last task was begun for
        self._is_paused = False
        self.last_active_ms = 0.0
        self.is_finishing = False

    # --- asyncio.BufferedProtocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transport has the methods of asyncio.Transport, but not the base class.
        self._transport = cast("asyncio.Transport", transport)
        listener = self._listener
        self._writer = SocketWriter(
            transport, listener.loop, listener.short_answers, self._output_progressed, self._output_failed
        )
        peer = transport.get_extra_info("peername")
        self._client = ClientConnection(self._listener.name, peer[0] if peer else "")
        self.last_active_ms = self._listener.clock.monotonic_ms()
        self._listener.connection_opened(self)

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002 - asyncio's signature
        return self._frames.writable()

    def buffer_updated(self, nbytes: int) -> None:
        self._frames.filled(nbytes)
        self.last_active_ms = self._listener.clock.monotonic_ms()
        self._handle_frames()

    def eof_received(self) -> bool:
        return False  # lets the transport close: a client that shuts down its sending side is done

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        if self._waiting is not None:
            self._waiting.cancel()
            discard_unstarted(self._awaited)
        self._writer.close()
        self._frames.release()
        self._listener.connection_closed(self)

    @property
    def client_host(self) -> str:
        return self._client.host

    # --- requests and responses

    def _handle_frames(self) -> None:
        """Handles complete frames until one must wait, or the client does not read."""
        frames, writer = self._frames, self._writer
        try:
            while self._waiting is None and not writer.unsent and not self.is_finishing:
                frame = frames.next_frame()
                if frame is None:
                    break
                answer = self._listener.dispatcher.handle(frame, self._client)
                if isinstance(answer, list):
                    writer.write(answer)
                elif isinstance(answer, LaterAnswer):
                    self._waiting = answer
                    answer.then(self._answer_came)
                elif answer is not None:
                    self._await(answer)
            has_unread = frames.settle()
        except (InvalidFrameSize, MalformedMessage) as problem:
            self._refuse(str(problem))
            return
        except CloseConnection as closing:
            self._refuse(str(closing))
            return
        self._update_reading(has_unread)

    def _answer_came(self, answer: Answer | Awaitable[Answer] | CloseConnection) -> None:
        """Sends the response in the call that gives it. The next request waits for the next turn of the event loop:
        the coordinator that calls this must not get a request in the middle of its work."""
        self._waiting = None
        if isinstance(answer, list):
            self.last_active_ms = self._listener.clock.monotonic_ms()
            self._writer.write(answer)
        elif isinstance(answer, CloseConnection):
            self._refuse(str(answer))
            return
        elif answer is not None:
            self._await(answer)
            return
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
            self._refuse(str(closing))
            return
        except Exception as problem:
            self._waiting = None
            log.error("request failed", client=self._client.host, exc_info=problem)
            self._transport.abort()
            return
        self._waiting = None
        if self._transport.is_closing():
            return
        self.last_active_ms = self._listener.clock.monotonic_ms()
        if answer is not None:
            self._writer.write(answer)
        self._proceed()

    def _output_progressed(self) -> None:
        """Called when the client has received more of its response: even a slow client is not idle."""
        self.last_active_ms = self._listener.clock.monotonic_ms()
        if self._writer.is_drained and not self._transport.is_closing():
            self._proceed()

    def _output_failed(self, error: OSError) -> None:
        log.debug("client disconnected", client=self._client.host, reason=str(error))
        self._transport.abort()

    def _proceed(self) -> None:
        if self.is_finishing:
            self.finish()
        else:
            self._handle_frames()

    def _update_reading(self, has_unread: bool) -> None:
        """Resumes or pauses reading. While a response is pending, reading continues up to one frame's worth of
        unprocessed bytes, so that a closed socket is noticed at once."""
        is_paused = has_unread and (self._waiting is not None or bool(self._writer.unsent))
        if is_paused and self._client.waiting_replica_fetch is not None:
            self._client.waiting_replica_fetch.finish()  # the follower has sent another request
        if is_paused is self._is_paused or self._transport.is_closing():
            return
        self._is_paused = is_paused
        if is_paused:
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()

    # --- closing

    def _refuse(self, reason: str) -> None:
        log.warning("connection closed", client=self._client.host, reason=reason)
        self._transport.abort()

    def finish(self) -> None:
        """Stops accepting requests, sends the response in flight, then closes."""
        self.is_finishing = True
        if self._waiting is None and self._writer.is_drained:
            self._transport.close()

    def abort(self) -> None:
        self._transport.abort()
