"""A listening address and its connections; closes idle connections."""

from __future__ import annotations

import asyncio
import functools
from typing import TYPE_CHECKING

from odradek.host.frame_buffer import ReceiveBuffers
from odradek.host.logs import get_logger
from odradek.host.network import bind, bound_port, start_serving
from odradek.security.principals import ANONYMOUS
from odradek.server import connection as connections
from odradek.server.connection_counts import CloseReason, ConnectionCounts
from odradek.server.connection_watch import ConnectionWatch
from odradek.server.refusal_log import RefusalLog

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.configuration.broker_configs import BrokerConfig
    from odradek.handlers.dispatch import Dispatcher
    from odradek.host.clock import Clock, Timer
    from odradek.host.network import ShortAnswers
    from odradek.host.receive_budget import ReceiveBudget
    from odradek.security.principals import Principal
    from odradek.security.quotas.connection_rate import ConnectionRates
    from odradek.server.connection import Connection
    from odradek.server.connection_limits import ConnectionLimits
    from odradek.server.listener_tls import ListenerTls

log = get_logger(__name__)

SWEEPS_PER_IDLE_TIME = 10
MOST_DELAYED_REFUSALS = 1_000
"""Connections of addresses that connect too fast are kept for up to a second; if there are more, they close at once."""
RESPONSES_NOT_READ = "clients did not read their responses in time"


class Listener:
    """Owns its connections. One timer checks all of them, instead of a timer per connection."""

    def __init__(
        self,
        name: str,
        clock: Clock,
        limits: ConnectionLimits,
        short_answers: ShortAnswers,
        receive_budget: ReceiveBudget,
        *,
        largest_frame_bytes: int,
        idle_limit_ms: int,
        tls: ListenerTls | None = None,
        needs_authentication: bool = False,
    ) -> None:
        self.name = name
        self._tls = tls
        self.clock = clock
        self._limits = limits
        self.largest_frame_bytes = largest_frame_bytes
        self.needs_authentication = needs_authentication
        self.receive_buffers = ReceiveBuffers(receive_budget)
        self.watch = ConnectionWatch(clock)
        self.counts = ConnectionCounts()
        self.refusals = RefusalLog(clock)
        self._delayed_refusals: set[Connection] = set()
        self.short_answers = short_answers
        self.loop = asyncio.get_running_loop()
        self._idle_limit_ms = idle_limit_ms
        self._connections: dict[Connection, None] = {}  # in the order in which they were opened
        self._server: asyncio.Server | None = None
        self._sweep_timer: Timer | None = None
        self._all_closed = asyncio.Event()
        self.port = 0

    def _connection(self) -> Connection:
        return connections.Connection(self)

    async def bind(
        self, host: str, port: int, *, backlog: int, send_buffer_bytes: int | None, receive_buffer_bytes: int | None
    ) -> None:
        """Binds the address without accepting connections."""
        tls = self._tls
        self._server = await bind(
            self._connection if tls is None else (lambda: tls.wrap(self._connection(), self.loop)),
            host,
            port,
            backlog=backlog,
            send_buffer_bytes=send_buffer_bytes,
            receive_buffer_bytes=receive_buffer_bytes,
        )
        self.port = bound_port(self._server)

    async def serve(
        self,
        dispatcher: Callable[[], Dispatcher],
        config: Callable[[], BrokerConfig],
        rates: Callable[[], ConnectionRates | None] = lambda: None,
    ) -> None:
        """Accepts connections. Limits may change at run time, so the configuration is read for each connection."""
        if self._server is None:
            raise RuntimeError("the listener is not bound")
        self._find_dispatcher = dispatcher
        self._config = config
        self._rates = rates
        await start_serving(self._server)
        if self._idle_limit_ms > 0:
            self._schedule_sweep()

    @functools.cached_property
    def dispatcher(self) -> Dispatcher:
        """Used by each request; composed for the first one."""
        return self._find_dispatcher()

    def close_connections(self) -> None:
        """This broker is cut off from its cluster."""
        for connection in tuple(self._connections):
            connection.abort(CloseReason.ISOLATED)

    @property
    def open_count(self) -> int:
        return len(self._connections)

    @property
    def muted_count(self) -> int:
        """Connections that are throttled."""
        return self.watch.muted_count

    def connection_opened(self, connection: Connection) -> None:
        """Accepts a connection, or closes it if a limit is exceeded; `connection_closed` follows in both cases."""
        self._connections[connection] = None
        self.counts.accepted += 1
        host = connection.client_host
        broken = self._limits.opened(self.name, host, self._config())
        if broken is not None:
            self.refusals.report(f"connection refused: {broken.name}", limit=broken.allowed, client=host)
            connection.abort(CloseReason.LIMIT)
        elif (rates := self._rates()) is not None:
            self._admit(connection, rates)

    def _admit(self, connection: Connection, rates: ConnectionRates) -> None:
        """Connections beyond the rate of the broker or of a listener wait; those beyond the rate of an address are
        refused."""
        config = self._config()
        # As in Kafka, the rate of the broker does not affect a listener that only brokers use.
        is_protected = config.is_for_brokers_only(self.name)
        admission = rates.admit(
            self.name,
            connection.client_host,
            int(self.clock.monotonic_ms()),
            broker_limit=None if is_protected else config.max_connection_creation_rate,
            listener_limit=config.listener_connection_rates.get(self.name),
        )
        if not admission.is_refused:
            if admission.delay_ms:
                connection.begin_after(admission.delay_ms)
            return
        self.refusals.report("connection refused: too many in a short time", client=connection.client_host)
        if len(self._delayed_refusals) >= MOST_DELAYED_REFUSALS or not admission.delay_ms:
            connection.abort(CloseReason.RATE)
            return
        self._delayed_refusals.add(connection)
        connection.refuse_after(admission.delay_ms)

    def connection_closed(self, connection: Connection) -> None:
        self._connections.pop(connection, None)
        self.counts.closed[connection.close_reason] += 1
        self._delayed_refusals.discard(connection)
        self._limits.closed(self.name, connection.client_host)
        if not self._connections:
            self._all_closed.set()

    def principal_of(self, certificate: bytes | None) -> Principal:
        return ANONYMOUS if self._tls is None else self._tls.principal_of(certificate)

    def finish(self) -> None:
        """Stops accepting connections and requests; requests in flight are answered."""
        if self._sweep_timer is not None:
            self._sweep_timer.cancel()
        self.watch.close()
        self.refusals.close()
        if self._server is not None:
            self._server.close()
        self._all_closed.clear()
        for connection in tuple(self._connections):
            connection.finish()

    async def close(self, patience_s: float) -> None:
        """After `finish`: gives clients time to read their responses, then closes the remaining connections."""
        if self._connections:
            try:
                await asyncio.wait_for(self._all_closed.wait(), patience_s)
            except TimeoutError:
                log.warning(RESPONSES_NOT_READ, connections=len(self._connections))
        for connection in tuple(self._connections):
            connection.abort(CloseReason.STOPPING)

    def _schedule_sweep(self) -> None:
        self._sweep_timer = self.clock.call_after(self._idle_limit_ms / SWEEPS_PER_IDLE_TIME, self._sweep)

    def _sweep(self) -> None:
        oldest = self.clock.monotonic_ms() - self._idle_limit_ms
        for connection in tuple(self._connections):
            if connection.last_active_ms < oldest and not connection.is_muted:
                connection.abort(CloseReason.IDLE)
        self._schedule_sweep()
