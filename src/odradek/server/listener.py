"""A listening address and the connections that came through it; it ends those that are silent for too long."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING

from odradek.host.logs import get_logger
from odradek.host.network import bound_port, listen
from odradek.server.connection import Connection
from odradek.server.frame_buffer import ReceiveBuffers

if TYPE_CHECKING:
    from odradek.handlers.dispatch import Dispatcher
    from odradek.host.clock import Clock, Timer

log = get_logger(__name__)

SWEEPS_PER_IDLE_TIME = 10


class Listener:
    """Owns its connections. One timer sweeps all of them: no timer per connection."""

    def __init__(
        self,
        name: str,
        dispatcher: Dispatcher,
        clock: Clock,
        *,
        largest_frame_bytes: int,
        idle_limit_ms: int,
        connection_limit: int,
        connection_limit_per_ip: int,
    ) -> None:
        self.name = name
        self.dispatcher = dispatcher
        self.clock = clock
        self.largest_frame_bytes = largest_frame_bytes
        self.receive_buffers = ReceiveBuffers()
        self.loop = asyncio.get_running_loop()
        self._idle_limit_ms = idle_limit_ms
        self._connection_limit = connection_limit
        self._connection_limit_per_ip = connection_limit_per_ip
        self._connections: set[Connection] = set()
        self._connections_by_host: Counter[str] = Counter()
        self._server: asyncio.Server | None = None
        self._sweep_timer: Timer | None = None
        self._all_closed = asyncio.Event()
        self.port = 0

    async def open(
        self, host: str, port: int, *, backlog: int, send_buffer_bytes: int | None, receive_buffer_bytes: int | None
    ) -> None:
        self._server = await listen(
            lambda: Connection(self),
            host,
            port,
            backlog=backlog,
            send_buffer_bytes=send_buffer_bytes,
            receive_buffer_bytes=receive_buffer_bytes,
        )
        self.port = bound_port(self._server)
        if self._idle_limit_ms > 0:
            self._schedule_sweep()

    def connection_opened(self, connection: Connection) -> None:
        """Take it, or end it when there are too many; `connection_closed` follows either way."""
        self._connections.add(connection)
        host = connection.client_host
        self._connections_by_host[host] += 1
        if len(self._connections) > self._connection_limit:
            log.warning("connection refused: max.connections", limit=self._connection_limit, client=host)
            connection.abort()
        elif self._connections_by_host[host] > self._connection_limit_per_ip:
            log.warning("connection refused: max.connections.per.ip", limit=self._connection_limit_per_ip, client=host)
            connection.abort()

    def connection_closed(self, connection: Connection) -> None:
        self._connections.discard(connection)
        host = connection.client_host
        self._connections_by_host[host] -= 1
        if not self._connections_by_host[host]:
            del self._connections_by_host[host]
        if not self._connections:
            self._all_closed.set()

    async def close(self, patience_s: float) -> None:
        """Stop accepting, let requests in flight be answered for a while, then end what is left."""
        if self._sweep_timer is not None:
            self._sweep_timer.cancel()
        if self._server is not None:
            self._server.close()
        self._all_closed.clear()
        for connection in tuple(self._connections):
            connection.finish()
        if self._connections:
            try:
                await asyncio.wait_for(self._all_closed.wait(), patience_s)
            except TimeoutError:
                log.warning("clients did not take their answers in time", connections=len(self._connections))
        for connection in tuple(self._connections):
            connection.abort()

    def _schedule_sweep(self) -> None:
        self._sweep_timer = self.clock.call_after(self._idle_limit_ms / SWEEPS_PER_IDLE_TIME, self._sweep)

    def _sweep(self) -> None:
        oldest = self.clock.monotonic_ms() - self._idle_limit_ms
        for connection in tuple(self._connections):
            if connection.last_active_ms < oldest:
                connection.abort()
        self._schedule_sweep()
