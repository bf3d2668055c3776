"""Serves the console with uvicorn."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import uvicorn

from odradek.console.app import build_app
from odradek.console.cluster.connection import Failure
from odradek.console.settings import problem_of
from odradek.console.web.http_connections import MOST_CONNECTIONS, BoundedConnection, ProxiedConnection

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.console.cluster.connection import Cluster
    from odradek.console.settings import ConsoleSettings

BACKLOG = 128
STOP_S = 2  # for pages that are being sent; streams end at once


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
    """Until Ctrl-C or SIGTERM."""
    with listen(settings) as listener:
        server = make_server(cluster, settings)
        on_ready(address_of(listener, settings))
        server.run(sockets=[listener])
