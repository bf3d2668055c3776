"""The layer that lets requests of sessions through, and sends all others to the login."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse, RedirectResponse

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

    from odradek.console.login.logins import Logins

LOGIN_PATH = "/login"
OPEN_PATHS = frozenset({LOGIN_PATH, "/login/oidc", "/login/callback"})
ASSETS = "/assets/"
LARGEST_NEXT = 1_000


class Gate:
    def __init__(self, app: ASGIApp, logins: Logins) -> None:
        self._app = app
        self._logins = logins

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        session = self._logins.sessions.find(scope["state"]["session"], is_use=not is_automatic(headers))
        if session is not None:
            scope["state"].update(console=session.content, user=session.user)
        elif not is_open(scope["path"]):
            await _to_login(scope, headers)(scope, receive, send)
            return
        await self._app(scope, receive, send)


def is_open(path: str) -> bool:
    """Whether a path is served without a session. Paths with dots are those of no page."""
    return path in OPEN_PATHS or (path.startswith(ASSETS) and "/.." not in path)


def is_automatic(headers: Headers) -> bool:
    """Whether a page makes the request by itself, without its user: a stream, or a panel that is loaded again."""
    return "text/event-stream" in headers.get("accept", "") or headers.get("hx-trigger") == "panel"


def _to_login(scope: Scope, headers: Headers) -> PlainTextResponse | RedirectResponse:
    if headers.get("hx-request") == "true":
        return PlainTextResponse("log in again\n", 401, {"hx-redirect": LOGIN_PATH})
    if scope["method"] != "GET" or is_automatic(headers):
        return PlainTextResponse("the session has ended; log in again\n", 401)
    query = scope.get("query_string", b"").decode("latin-1")
    path = scope["raw_path"].decode("latin-1") + (f"?{query}" if query else "")  # encoded: a name may have % ? #
    known = "" if path == "/" else f"?next={quote(local_path(path), safe='')}"
    return RedirectResponse(f"{LOGIN_PATH}{known}", 303)


def local_path(text: str) -> str:
    """A path of the console, or its first page: never an address of another site."""
    is_clean = text.isprintable() and "\\" not in text and len(text) <= LARGEST_NEXT
    if not is_clean or not text.startswith("/") or text.startswith("//"):
        return "/"
    parts = urlsplit(text)
    return "/" if parts.scheme or parts.netloc or parts.path in OPEN_PATHS else text
