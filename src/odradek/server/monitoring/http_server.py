"""A small HTTP server on the broker's event loop: /metrics, /healthy and /ready.

Everything is bounded: connections, the bytes of a request, the time from its first byte to the last byte of the
response. A connection serves one request. If there are too many, the oldest one without a complete request is closed,
so that silent connections do not make a broker look unhealthy.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast

from odradek.host.logs import get_logger
from odradek.host.network import bind, bound_port, start_serving
from odradek.server.monitoring.http_messages import HttpRequest, read_request, refusal

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from odradek.host.clock import Clock, Timer
    from odradek.server.monitoring.http_messages import HttpResponse

    Answer = Callable[[str], Awaitable[HttpResponse]]

log = get_logger(__name__)

MOST_CONNECTIONS = 32
TIME_LIMIT_MS = 10_000.0
BACKLOG = 64


class HttpConnection(asyncio.Protocol):
    def __init__(self, server: HttpServer) -> None:
        self._server = server
        self._received = b""
        self._timer: Timer | None = None
        self._answering: asyncio.Task[None] | None = None
        self._is_answered = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        if not self._server.admit(self):
            self._respond(refusal(503, "too many connections"), is_head=False)
            return
        self._timer = self._server.clock.call_after(TIME_LIMIT_MS, self._transport.abort)

    def data_received(self, data: bytes) -> None:
        if self._answering is not None or self._is_answered:
            return  # the body of a request, or a further one
        self._received += data
        request = read_request(self._received)
        if isinstance(request, HttpRequest):
            self._received = b""
            self._answering = asyncio.ensure_future(self._answer(request))
        elif request is not None:
            self._respond(request, is_head=False)

    async def _answer(self, request: HttpRequest) -> None:
        try:
            response = await self._server.answer(request.path)
        except Exception as problem:
            log.error("a request for metrics failed", path=request.path, exc_info=problem)
            response = refusal(500, "the request failed: see the log of the broker")
        self._respond(response, is_head=request.is_head)

    def _respond(self, response: HttpResponse, *, is_head: bool) -> None:
        self._is_answered = True
        if not self._transport.is_closing():
            self._transport.write(response.encode(is_head=is_head))
            self._transport.close()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        if self._timer is not None:
            self._timer.cancel()
        if self._answering is not None:
            self._answering.cancel()
        self._server.release(self)

    @property
    def awaits_request(self) -> bool:
        return self._answering is None and not self._is_answered

    def abort(self) -> None:
        self._transport.abort()


class HttpServer:
    """`answer` gives the response for a path."""

    def __init__(self, answer: Answer, clock: Clock) -> None:
        self.answer = answer
        self.clock = clock
        self._connections: dict[HttpConnection, None] = {}  # the oldest first
        self._server: asyncio.Server | None = None
        self.port = 0

    async def start(self, host: str, port: int) -> None:
        """CannotListen when the address cannot be bound."""
        self._server = await bind(
            lambda: HttpConnection(self),
            host,
            port,
            backlog=BACKLOG,
            send_buffer_bytes=None,
            receive_buffer_bytes=None,
            setting="metrics.listener",
        )
        self.port = bound_port(self._server)
        await start_serving(self._server)

    def admit(self, connection: HttpConnection) -> bool:
        """False if all connections are those of complete requests."""
        if len(self._connections) >= MOST_CONNECTIONS:
            silent = next((each for each in self._connections if each.awaits_request), None)
            if silent is None:
                return False
            self.release(silent)
            silent.abort()
        self._connections[connection] = None
        return True

    def release(self, connection: HttpConnection) -> None:
        self._connections.pop(connection, None)

    def close(self) -> None:
        if self._server is not None:
            self._server.close()
        for connection in tuple(self._connections):
            connection.abort()
