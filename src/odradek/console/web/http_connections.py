"""The console's HTTP connections: a connection that sends no complete request, or reads no response, is closed.

All connections count against one limit, before any login. Without these times a client that opens connections and sends
nothing, half a head or half a form would lock out everybody else for as long as it likes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

MOST_CONNECTIONS = 200
MOST_CONNECTIONS_OF_ADDRESS = 100  # so that one address leaves some to the others


class BoundedConnection(H11Protocol):
    head_timeout_s: ClassVar[float] = 10.0
    body_timeout_s: ClassVar[float] = 30.0
    write_timeout_s: ClassVar[float] = 60.0
    most_of_address: ClassVar[int | None] = MOST_CONNECTIONS_OF_ADDRESS

    _receiving: asyncio.TimerHandle | None = None
    _received_part: object = None  # the state of the request for which the timer runs
    _sending: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # uvicorn gives no other transports
        super().connection_made(transport)
        if self.most_of_address is not None and self._connections_of_address() > self.most_of_address:
            transport.abort()
        else:
            self._limit_request()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop(self._receiving)
        self._stop(self._sending)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._limit_request()

    def on_response_complete(self) -> None:
        """Handles a request that was received behind the one that is answered, so that its time begins here."""
        super().on_response_complete()
        self._limit_request()

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._sending is None:
            self._sending = self._start(self.write_timeout_s, self.transport.abort)

    def resume_writing(self) -> None:
        self._stop(self._sending)
        self._sending = None
        super().resume_writing()

    def _limit_request(self) -> None:
        """One timer for the head and another one for the body; each runs on while pieces arrive."""
        part = self.conn.their_state
        if part is self._received_part:
            return
        self._stop(self._receiving)
        self._receiving = None
        self._received_part = part
        if self.transport.is_closing():
            return
        if part is h11.IDLE:
            self._receiving = self._start(self.head_timeout_s, self.transport.close)
        elif part is h11.SEND_BODY:
            self._receiving = self._start(self.body_timeout_s, self.transport.close)

    def _start(self, after_s: float, end: Callable[[], None]) -> asyncio.TimerHandle:
        return self.loop.call_later(after_s, end)

    @staticmethod
    def _stop(timer: asyncio.TimerHandle | None) -> None:
        if timer is not None:
            timer.cancel()

    def _connections_of_address(self) -> int:
        address = self.client[0] if self.client else None
        others = (each.client for each in self.connections if isinstance(each, H11Protocol))
        return sum(client is not None and client[0] == address for client in others)


class ProxiedConnection(BoundedConnection):
    """Behind a proxy all connections come from one address."""

    most_of_address = None
