"""Serves the console with uvicorn. A connection that sends no complete request, or reads no response, is closed.

All connections count against one limit, before any login. Without these times a client that opens connections and sends
nothing, half a head or half a form would lock out everybody else for as long as it likes.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from odradek.console.app import build_app
from odradek.console.settings import ConsoleSettings, problem_of
from odradek.conventions.failures import Failure

if TYPE_CHECKING:
    import asyncio

    from odradek.console.cluster.connection import Cluster

MOST_CONNECTIONS = 200
MOST_CONNECTIONS_OF_ADDRESS = 100  # so that one address leaves some to the others
BACKLOG = 128
STOP_S = 2  # for pages that are being sent; streams end at once


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


def listen(settings: ConsoleSettings) -> socket.socket:
    """Failure for settings that are not safe, or an address that is taken."""
    problem = problem_of(settings)
    if problem:
        raise Failure(problem)
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((settings.host, settings.port))
        listener.listen(BACKLOG)  # a browser that comes before the server is ready waits
    except OSError as error:
        listener.close()
        raise Failure(
            f"cannot listen on {settings.host}:{settings.port}: {(error.strerror or str(error)).lower()}; "
            "give another port with --listen"
        ) from None
    return listener


def address_of(listener: socket.socket, settings: ConsoleSettings | None = None) -> str:
    """The address to open in a browser."""
    if settings is not None and settings.public_url:
        return f"{settings.public_url.rstrip('/')}/"
    scheme = "https" if settings is not None and settings.tls is not None else "http"
    host, port = listener.getsockname()[:2]
    return f"{scheme}://[{host}]:{port}/" if ":" in host else f"{scheme}://{host}:{port}/"


def make_server(cluster: Cluster, settings: ConsoleSettings) -> uvicorn.Server:
    app = build_app(cluster, settings)
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=STOP_S,
        limit_concurrency=MOST_CONNECTIONS,
        http=ProxiedConnection if settings.is_behind_proxy else BoundedConnection,
        ws="none",
        lifespan="on",
        proxy_headers=False,  # `changes.client_address` reads the address that a proxy has appended
        ssl_certfile=None if settings.tls is None else settings.tls.certificate,
        ssl_keyfile=None if settings.tls is None else settings.tls.key,
    )
    if settings.tls is not None:
        try:
            config.load()
        except (OSError, ValueError) as problem:
            raise Failure(f"--tls-cert {settings.tls.certificate}, --tls-key {settings.tls.key}: {problem}") from None
    return _Server(config, app.state.threads.begin_stop)


class _Server(uvicorn.Server):
    """Ends the streams when it stops, so that they do not delay it."""

    def __init__(self, config: uvicorn.Config, on_stop: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_stop = on_stop

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._on_stop()
        await super().shutdown(sockets)


def serve(cluster: Cluster, settings: ConsoleSettings, on_ready: Callable[[str], None]) -> None:
    """Runs until Ctrl-C or SIGTERM."""
    with listen(settings) as listener:
        server = make_server(cluster, settings)
        on_ready(address_of(listener, settings))
        server.run(sockets=[listener])
