"""The checks before every page: the Host header, the session of the browser, the token of a change, and the headers
that keep a browser from running anything that is not an asset of the console.

A message is hostile input, and so is any other page that is open in the same browser.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import secrets
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse

from odradek.console.settings import ConsoleSettings, host_of
from odradek.conventions.addresses import is_loopback

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOG = logging.getLogger("odradek.console")
COOKIE = "odradek_console"
HTTPS_PREFIX = "__Host-"  # browsers accept such a cookie from this host and by HTTPS only
SESSION_PATHS = frozenset({"/login", "/logout"})  # forms of a read-only console
SESSION_CHARACTERS = 43  # 32 random bytes
TOKEN_FIELD = "token"
TOKEN_HEADER = "x-odradek-token"
SAFE_METHODS = frozenset({"GET", "HEAD"})
OWN_SITES = frozenset({"same-origin", "none"})  # values of Sec-Fetch-Site
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
BUG = "this is a bug in the console: its standard error shows where\n"
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",  # with no-referrer, browsers send `Origin: null` with the console's own forms
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
# Browsers use HTTPS for every port of the host from then on: nobody on the way can answer a first request by HTTP.
SECURED_HEADERS = {**HEADERS, "strict-transport-security": "max-age=31536000"}


class AbortedResponse(Exception):
    """A response that cannot be completed. The connection is closed without the end of the body."""


class Tokens:
    """The token of a session is an HMAC of its id under a key that lives as long as the process."""

    def __init__(self) -> None:
        self._key = secrets.token_bytes(32)

    def new_session(self) -> str:
        return secrets.token_urlsafe(32)

    def token_of(self, session: str) -> str:
        return hmac.new(self._key, session.encode(), hashlib.sha256).hexdigest()


def session_of(headers: Headers, name: str = COOKIE) -> str:
    """The session of the cookie; empty without one, or if it is not one of ours.

    Browsers send the cookies of all programs on the same host, whatever their port. http.cookies would refuse the whole
    header because of one that is malformed, such as a value in JSON.
    """
    for cookie in headers.get("cookie", "").split(";"):
        key, _, value = cookie.strip().partition("=")
        if key == name and len(value) == SESSION_CHARACTERS:
            return value
    return ""


def refusal(method: str, headers: Headers, *, is_read_only: bool, hosts: frozenset[str] = frozenset()) -> str:
    """Why a request is not served, whatever its path; empty if it is. `hosts` are served beside loopback addresses."""
    host = headers.get("host", "")
    if not is_loopback(host_of(host)) and host_of(host) not in hosts:
        names = ", ".join(sorted(hosts)) or "localhost or 127.0.0.1"
        return f"the host {host[:100]!r} is not this console's; open it as {names}"
    site = headers.get("sec-fetch-site", "same-origin")
    if method in SAFE_METHODS:
        # Another site may link to the console; it may not make a browser load anything of it in the background.
        is_link = headers.get("sec-fetch-mode", "navigate") == "navigate"
        return "" if is_link or site in OWN_SITES else "the request was sent by another site"
    if method != "POST":
        return f"the method {method[:20]} is not used here"
    if is_read_only:
        return "this console is read-only: it was started with --read-only"
    origin = headers.get("origin")
    if origin is not None and urlsplit(origin).netloc.lower() != host.lower():
        return "the form was sent by another page"
    if site not in OWN_SITES:
        return "the form was sent by another site"
    return ""


class Safety:
    """The outermost layer of the application. Tokens of forms are checked where forms are read (`checked_form`)."""

    def __init__(self, app: ASGIApp, tokens: Tokens, settings: ConsoleSettings) -> None:
        self._app = app
        self._tokens = tokens
        self._settings = settings
        # Not for this machine, whose names are those of other programs, too.
        self._secured_hosts = {each for each in settings.hosts if settings.is_https and not is_loopback(each)}
        self._cookie = f"{HTTPS_PREFIX}{COOKIE}" if settings.is_https else COOKIE
        self._flags = "Path=/; HttpOnly; SameSite=Lax" + ("; Secure" if settings.is_https else "")

    def _refusal_of(self, scope: Scope, headers: Headers) -> tuple[str, int]:
        is_read_only = self._settings.is_read_only and scope["path"] not in SESSION_PATHS
        reason = refusal(scope["method"], headers, is_read_only=is_read_only, hosts=self._settings.hosts)
        has_nul = "\0" in scope["path"] or b"%00" in scope.get("query_string", b"")
        if has_nul and not reason:  # the client library takes none
            return "a name in the address has a NUL character", 400
        return reason, 403

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        known = session_of(headers, self._cookie)
        state = scope.setdefault("state", {})
        state["session"] = known or self._tokens.new_session()

        is_started = False

        async def guarded(message: Message) -> None:
            nonlocal is_started
            if message["type"] == "http.response.start":
                is_started = True
                answer = MutableHeaders(scope=message)
                is_secured = host_of(headers.get("host", "")) in self._secured_hosts
                answer.update(SECURED_HEADERS if is_secured else HEADERS)
                if "cache-control" not in answer:
                    answer["cache-control"] = "no-store"
                if state["session"] != known and not scope["path"].startswith("/assets/"):
                    answer.append("set-cookie", f"{self._cookie}={state['session']}; {self._flags}")
            await send(message)

        reason, status = self._refusal_of(scope, headers)
        if reason:
            await PlainTextResponse(f"refused: {reason}\n", status)(scope, receive, guarded)
            return
        try:
            await self._app(scope, receive, guarded)
        except AbortedResponse as reason:
            text = str(reason).encode("unicode_escape").decode()
            LOG.warning("a response to %r was cut off: %s", scope["path"], text)
        except Exception:
            LOG.exception("a request to %r failed", scope["path"])
            if not is_started:
                await PlainTextResponse(BUG, 500)(scope, receive, guarded)
