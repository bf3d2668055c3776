"""The application: the pages, the assets, and the function that turns failures into pages."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from http import HTTPStatus
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.routing import Route

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
from odradek.console.views.figures import FormError
from odradek.console.views.overview import state_notice
from odradek.console.web.rendering import Assets, Renderer, read_assets, renderer_of, version_of
from odradek.console.web.safety import Safety, Tokens
from odradek.conventions.failures import Failure

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from odradek.console.settings import ConsoleSettings

STATUSES: dict[type[Exception], int] = {  # the first kind counts
    Forbidden: 403,
    FormError: 400,
    TooManyStreams: 503,
    NotAuthorized: 403,
    NoSuchTopic: 404,
    NoSuchRecord: 404,
    Failure: 502,
    TimeoutError: 504,
}
AGAIN = "; log out, and log in again"
MESSAGES = {404: "There is no such page.", 405: "This address takes no such request."}


def build_app(cluster: Cluster, settings: ConsoleSettings) -> Starlette:
    """Without a login there is one console for all browsers; with one, each session has its own (`login`)."""
    tokens = Tokens()
    assets = read_assets()
    renderer = Renderer(
        tokens,
        addresses=cluster.bootstrap_servers.split(","),
        is_read_only=settings.is_read_only,
        is_https=settings.is_https,
        assets_version=version_of(assets),
    )
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
            Middleware(
                Safety,
                tokens=tokens,
                is_read_only=settings.is_read_only,
                hosts=settings.hosts,
                is_https=settings.is_https,
            ),
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
