"""One open connection to another broker: requests out, responses in, in the same order.

Requests are pipelined: several may be unanswered, up to a limit. A response is decoded where it was received; records
in it are views of the receive buffer, which the caller reads before the next bytes are received.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Any, cast

from odradek.host.frame_buffer import SMALLEST_RESPONSE_BYTES, FrameBuffer, InvalidFrameSize
from odradek.protocol.framing import encode_request_frame, response_header_bytes
from odradek.protocol.malformed import MalformedMessage

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.host.frame_buffer import ReceiveBuffers
    from odradek.protocol.schema import Request, Response

IN_FLIGHT_LIMIT = 64
LARGEST_RESPONSE_BYTES = 2**31 - 1  # the memory of a connection grows with the received bytes, not with this
LARGEST_CORRELATION_ID = 2**31 - 1
_CORRELATION_ID_BYTES = 4


class BrokerUnavailable(Exception):
    """A request to a broker has no response. The broker may have handled it nevertheless."""


class _Unanswered:
    """One request on its way. `read` makes the caller's result of the response's frame."""

    __slots__ = ("correlation_id", "future", "read")

    def __init__(self, correlation_id: int, read: Callable[[memoryview], Any]) -> None:
        self.correlation_id = correlation_id
        self.read = read
        self.future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()


class BrokerConnection(asyncio.BufferedProtocol):
    """Owned by a BrokerClient. `on_closed` is called once, with the reason."""

    def __init__(self, client_id: bytes, buffers: ReceiveBuffers, on_closed: Callable[[str], None]) -> None:
        self._client_id = client_id
        self._frames = FrameBuffer(buffers, LARGEST_RESPONSE_BYTES, SMALLEST_RESPONSE_BYTES)
        self._on_closed = on_closed
        self._transport: asyncio.Transport | None = None
        self._unanswered: deque[_Unanswered] = deque()
        self._has_room: asyncio.Event = asyncio.Event()
        self._has_room.set()
        self._next_correlation_id = 0
        self._end_reason = ""
        self.versions: dict[int, tuple[int, int]] = {}
        """The first and last version of each API that the peer has, once they were asked for."""

    @property
    def is_open(self) -> bool:
        return self._transport is not None and not self._end_reason

    # asyncio.BufferedProtocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's has its methods, but not the base class
        if self._end_reason:
            self._transport.abort()

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002 - asyncio's signature
        return self._frames.writable()

    def buffer_updated(self, nbytes: int) -> None:
        self._frames.filled(nbytes)
        try:
            while (frame := self._frames.next_frame()) is not None:
                self._take(frame)
            self._frames.settle()
        except (InvalidFrameSize, MalformedMessage) as problem:
            self.end(str(problem))

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self.end(str(exc) if exc else "the peer closed the connection")
        self._frames.release()

    # Requests

    async def send(
        self, request: Request, version: int, response: type[Response], read: Callable[[Any], Any], *, in_place: bool
    ) -> Any:
        """The result of `read` for the response. Waits while too many requests are unanswered."""
        while len(self._unanswered) >= IN_FLIGHT_LIMIT and not self._end_reason:
            self._has_room.clear()
            await self._has_room.wait()
        if self._transport is None or self._end_reason:
            raise BrokerUnavailable(self._end_reason or "not connected")
        header_bytes = response_header_bytes(response, version)

        def read_frame(frame: memoryview) -> Any:
            kept = frame if in_place else memoryview(bytes(frame))
            return read(response.decode(kept, header_bytes, version))

        correlation_id = self._next_correlation_id
        self._next_correlation_id = 0 if correlation_id == LARGEST_CORRELATION_ID else correlation_id + 1
        unanswered = _Unanswered(correlation_id, read_frame)
        self._unanswered.append(unanswered)
        self._transport.write(encode_request_frame(request, version, self._client_id, correlation_id))
        return await unanswered.future

    def _take(self, frame: memoryview) -> None:
        if not self._unanswered:
            raise MalformedMessage("a response came without a request")
        unanswered = self._unanswered.popleft()
        self._has_room.set()
        correlation_id = int.from_bytes(frame[:_CORRELATION_ID_BYTES], "big", signed=True)
        if correlation_id != unanswered.correlation_id:
            self._unanswered.appendleft(unanswered)
            raise MalformedMessage(f"response {correlation_id} came in place of response {unanswered.correlation_id}")
        if unanswered.future.done():  # its caller was cancelled
            return
        try:
            result = unanswered.read(frame)
        except MalformedMessage as problem:
            unanswered.future.set_exception(BrokerUnavailable(str(problem)))
            raise
        except Exception as problem:
            unanswered.future.set_exception(problem)
        else:
            unanswered.future.set_result(result)

    def end(self, reason: str) -> None:
        """Close the connection; all requests on their way fail with this reason."""
        if self._end_reason:
            return
        self._end_reason = reason
        self._has_room.set()
        if self._transport is not None:
            self._transport.abort()
        while self._unanswered:
            unanswered = self._unanswered.popleft()
            if not unanswered.future.done():
                unanswered.future.set_exception(BrokerUnavailable(reason))
        self._on_closed(reason)
