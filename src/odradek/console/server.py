"""Serves the console with uvicorn."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import uvicorn

from odradek.console.app import build_app
from odradek.console.cluster.connection import Failure
from odradek.console.settings import is_loopback

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.console.cluster.connection import Cluster
    from odradek.console.settings import ConsoleSettings

BACKLOG = 128
STOP_S = 2  # for pages that are being sent; streams end at once


def listen(settings: ConsoleSettings) -> socket.socket:
    """Failure for an address that others could reach, or that is taken."""
    if not is_loopback(settings.host):
        raise Failure(
            f"--listen {settings.host}: other machines could open the console, and it has no login; "
            "listen on 127.0.0.1, and reach it through an SSH tunnel (ssh -L)"
        )
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


def address_of(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"


def make_server(cluster: Cluster, settings: ConsoleSettings) -> uvicorn.Server:
    app = build_app(cluster, settings)
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=STOP_S,
        limit_concurrency=200,
        ws="none",
        lifespan="on",
    )
    return _Server(config, lambda: setattr(app.state.console, "is_stopping", True))


class _Server(uvicorn.Server):
    """Tells the streams to end when it stops, so that they do not delay it."""

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
        on_ready(address_of(listener))
        server.run(sockets=[listener])
