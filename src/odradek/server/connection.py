"""One client's connection: socket <-> handlers, with order kept and limits held.

Requests are handled one after the other, as Kafka does: the next frame is looked at only when the answer to the last
one is out of our hands. That keeps order without a queue, and a client that never reads its answers stops being read.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol, cast

from odradek.handlers.context import ClientConnection, CloseConnection
from odradek.host.logs import get_logger
from odradek.host.network import SocketWriter
from odradek.protocol.malformed import MalformedMessage
from odradek.server.frame_buffer import FrameBuffer, InvalidFrameSize

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from odradek.handlers.dispatch import Answer, Dispatcher
    from odradek.host.clock import Clock
    from odradek.host.network import ShortAnswers
    from odradek.server.frame_buffer import ReceiveBuffers

log = get_logger(__name__)


class ConnectionOwner(Protocol):
    """What a connection needs of the listener that accepted it."""

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
    """A transport's protocol; `Listener` owns it and may ask it to finish."""

    __slots__ = (
        "_client",
        "_frames",
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
        self._waiting: asyncio.Future[None] | None = None
        self.last_active_ms = 0.0
        self.is_finishing = False

    # --- asyncio.BufferedProtocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is one by its methods, not by its class
        listener = self._listener
        self._writer = SocketWriter(
            transport, listener.loop, listener.short_answers, self._output_moved, self._output_failed
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
        return False  # let the transport close: a client that sends no more wants no more

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        if self._waiting is not None:
            self._waiting.cancel()
        self._writer.close()
        self._frames.release()
        self._listener.connection_closed(self)

    @property
    def client_host(self) -> str:
        return self._client.host

    # --- requests in, answers out

    def _handle_frames(self) -> None:
        """Handle whole frames until one must wait, or the client does not read."""
        frames, writer = self._frames, self._writer
        try:
            while self._waiting is None and writer.is_drained and not self.is_finishing:
                frame = frames.next_frame()
                if frame is None:
                    break
                answer = self._listener.dispatcher.handle(frame, self._client)
                if isinstance(answer, list):
                    writer.write(answer)
                elif answer is not None:
                    self._waiting = asyncio.ensure_future(self._answer_later(answer))
            frames.settle()
        except (InvalidFrameSize, MalformedMessage) as problem:
            self._refuse(str(problem))
            return
        except CloseConnection as wish:
            self._refuse(str(wish))
            return
        self._update_reading()

    async def _answer_later(self, awaited: Awaitable[Answer]) -> None:
        """In the same task that finds the answer: a callback would cost a long poll another turn of the loop."""
        try:
            answer = await awaited
        except CloseConnection as wish:
            self._waiting = None
            self._refuse(str(wish))
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

    def _output_moved(self) -> None:
        """The client has taken more of its answer: however slowly, it is not idle."""
        self.last_active_ms = self._listener.clock.monotonic_ms()
        if self._writer.is_drained and not self._transport.is_closing():
            self._proceed()

    def _output_failed(self, error: OSError) -> None:
        log.debug("client went away", client=self._client.host, reason=str(error))
        self._transport.abort()

    def _proceed(self) -> None:
        if self.is_finishing:
            self.finish()
        else:
            self._handle_frames()

    def _update_reading(self) -> None:
        """Read on while idle. While an answer waits, read on too, so that a closed socket is noticed at once, but
        only as far as a frame's worth of bytes that nobody has looked at."""
        if self._transport.is_closing():
            return
        is_busy = self._waiting is not None or not self._writer.is_drained
        if is_busy and self._frames.unread_bytes:
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()

    # --- ends

    def _refuse(self, reason: str) -> None:
        log.warning("connection closed", client=self._client.host, reason=reason)
        self._transport.abort()

    def finish(self) -> None:
        """Answer what is in flight, take nothing new, then close."""
        self.is_finishing = True
        if self._waiting is None and self._writer.is_drained:
            self._transport.close()

    def abort(self) -> None:
        self._transport.abort()
