"""The application of the console, and the server that runs it: pages, assets, failures as pages, limits on connections.

A connection that sends no complete request, or reads no response, is closed. All connections count against one limit,
before any login. Without these times a client that opens connections and sends nothing, half a head or half a form
would lock out everybody else for as long as it likes.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Callable
from http import HTTPStatus
from typing import TYPE_CHECKING, ClassVar

import h11
import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.routing import Route
from uvicorn.protocols.http.h11_impl import H11Protocol

from odradek.console.cluster.connection import BadCredentials, Cluster, NoSuchTopic, NotAuthorized
from odradek.console.cluster.records import NoSuchRecord
from odradek.console.cluster.topic_watches import example_views
from odradek.console.cluster.watch import ClusterWatch
from odradek.console.context import Console, Threads, TooManyStreams, console_of, has_console
from odradek.console.login.logins import Gate, Logins
from odradek.console.pages import ROUTES
from odradek.console.pages.examples import has_examples
from odradek.console.pages.requests import Forbidden
from odradek.console.pages.topics import MissingTopic
from odradek.console.settings import ConsoleSettings, problem_of
from odradek.console.views.figures import FormError
from odradek.console.views.overview import state_notice
from odradek.console.web.rendering import Assets, Renderer, read_assets, renderer_of, version_of
from odradek.console.web.safety import Safety, Tokens
from odradek.conventions.failures import Failure

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

STATUSES: dict[type[Exception], int] = {  # the first kind counts
    Forbidden: 403, FormError: 400, TooManyStreams: 503, NotAuthorized: 403, NoSuchTopic: 404, NoSuchRecord: 404,
    Failure: 502, TimeoutError: 504,
}  # fmt: skip
AGAIN = "; log out, and log in again"
MESSAGES = {404: "There is no such page.", 405: "This address takes no such request."}


def build_app(cluster: Cluster, settings: ConsoleSettings) -> Starlette:
    """Without a login there is one console for all browsers; with one, each session has its own (`login`)."""
    tokens = Tokens()
    assets = read_assets()
    renderer = Renderer(tokens, settings, cluster.bootstrap_servers, version_of(assets))
    renderer.shows_section["examples"] = has_examples
    renderer.state_notice = lambda request: (
        state_notice(console_of(request).watch.freshness()) if has_console(request) else ""
    )
    threads = Threads()
    console: Console | None = None
    logins: Logins | None = None
    if settings.login is None:
        console = Console(settings, cluster, ClusterWatch(cluster, settings.sample_interval_s), threads)
    else:
        logins = Logins(settings, cluster, threads)

    @contextlib.asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        housekeeping = asyncio.create_task(logins.run_housekeeping()) if logins is not None else None
        if console is not None:
            console.watch.start()
        threads.calls.submit(renderer.compile_templates)
        threads.calls.submit(example_views)
        try:
            yield
        finally:
            threads.stop()
            if housekeeping is not None and logins is not None:
                housekeeping.cancel()
                logins.sessions.end_all()
            if console is not None:
                console.stop_watches()

    app = Starlette(
        routes=[*ROUTES, Route("/assets/{path:path}", Assets(assets).show)],
        middleware=[
            Middleware(Safety, tokens=tokens, settings=settings),
            *([Middleware(Gate, logins=logins)] if logins is not None else []),
        ],
        exception_handlers={HTTPException: _show_http_error, **dict.fromkeys(STATUSES, _show_failure)},
        lifespan=lifespan,
    )
    app.state.console = console
    app.state.logins = logins
    app.state.renderer = renderer
    app.state.settings = settings
    app.state.threads = threads
    app.state.tokens = tokens
    return app


async def _show_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if isinstance(error, MissingTopic):
        fields = {"section": "topics", "text": error.detail, "missing": error}
        return renderer_of(request).page(request, "topic_missing.html", 404, **fields)
    has_detail = error.detail != HTTPStatus(error.status_code).phrase
    text = error.detail if has_detail else MESSAGES.get(error.status_code, error.detail)
    return _error_page(request, error.status_code, text)


async def _show_failure(request: Request, error: Exception) -> Response:
    status = next(status for kind, status in STATUSES.items() if isinstance(error, kind))
    if isinstance(error, TimeoutError):
        return _error_page(request, status, "the cluster did not answer in time")
    return _error_page(request, status, f"{error}{AGAIN if isinstance(error, BadCredentials) else ''}")


def _error_page(request: Request, status: int, text: str) -> Response:
    return renderer_of(request).page(request, "error.html", status, section="", code=status, text=text)


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
            self._sending = self.loop.call_later(self.write_timeout_s, self.transport.abort)

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
            self._receiving = self.loop.call_later(self.head_timeout_s, self.transport.close)
        elif part is h11.SEND_BODY:
            self._receiving = self.loop.call_later(self.body_timeout_s, self.transport.close)

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
