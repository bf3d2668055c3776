"""Sessions of users who have logged in, bounded in number and in time, the consoles of their users, and the layer that
lets their requests through. Only the event loop uses them.

A session has an id of 32 random bytes, which is the only part of it that a browser gets. It ends after a time without
a request, after a time that no request extends, by a logout, when its user logs in too often elsewhere, when its place
is needed, or when the user's password is changed or the user is removed.

Each identity has its own connections, watches and so its own history. Nothing that was read for one user is kept where
a page of another could find it. An identity is a user with a secret. Sessions of the same identity share its watches,
which end with the last of them. The secret of an OIDC login is its access token, so that each of these logins is an
identity: the rights of two tokens may differ.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import secrets
import time
from collections import Counter
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Generic, TypeVar
from urllib.parse import quote, urlsplit

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse, RedirectResponse

from odradek.console.cluster.watch import ClusterWatch, PollingShare
from odradek.console.context import STREAMS_OF_SESSION, Console, Threads
from odradek.console.login.attempts import LoginAttempts
from odradek.console.login.oidc import OidcProvider, PendingLogins, TokenGrant, TokenRenewals
from odradek.console.settings import ConsoleSettings, OidcLogin
from odradek.conventions.dataclass import dataclass

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

    from odradek.console.cluster.connection import Cluster

MOST_SESSIONS = 100
MOST_SESSIONS_OF_USER = 5

C = TypeVar("C")


class TooManyLogins(Exception):
    """As many users are logged in as the console allows."""


@dataclass(slots=True)
class Session(Generic[C]):
    """`content` is what the session keeps for its user; times are in seconds of the clock of its owner."""

    id: str
    user: str
    content: C
    ends_s: float
    idle_ends_s: float
    latest_end_s: float  # which no extension exceeds

    def has_ended(self, now_s: float) -> bool:
        return now_s >= min(self.ends_s, self.idle_ends_s)


class Sessions(Generic[C]):
    def __init__(
        self, now_s: Callable[[], float], on_end: Callable[[Session[C]], None], *, idle_timeout_s: float,
        timeout_s: float, most: int = MOST_SESSIONS, most_of_user: int = MOST_SESSIONS_OF_USER,
    ) -> None:  # fmt: skip
        self._now_s = now_s
        self._on_end = on_end
        self._idle_timeout_s = idle_timeout_s
        self._timeout_s = timeout_s
        self._most = most
        self._most_of_user = most_of_user
        self._sessions: dict[str, Session[C]] = {}  # those that were used least recently come first

    def __len__(self) -> int:
        return len(self._sessions)

    def begin(self, user: str, new_content: Callable[[], C], lifetime_s: float | None = None) -> Session[C]:
        """A session with a new id, of at most `lifetime_s`. The user's session that was used least recently ends if the
        user has too many. TooManyLogins if others have them."""
        self.end_expired()
        own = [each for each in self._sessions.values() if each.user == user]
        for session in own[: max(len(own) - self._most_of_user + 1, 0)]:
            self.end(session.id)
        if len(self._sessions) >= self._most:
            raise TooManyLogins
        now_s = self._now_s()
        length_s = self._timeout_s if lifetime_s is None else min(self._timeout_s, lifetime_s)
        ends_s = now_s + length_s, now_s + self._idle_timeout_s, now_s + self._timeout_s
        session = Session(secrets.token_urlsafe(32), user, new_content(), *ends_s)
        self._sessions[session.id] = session
        return session

    def find(self, session_id: str, *, is_use: bool = True) -> Session[C] | None:
        """The session, unless it has ended. `is_use` is false for requests that a page makes by itself."""
        session = self._sessions.get(session_id)
        if session is None:
            return None
        now_s = self._now_s()
        if session.has_ended(now_s):
            self.end(session_id)
            return None
        if is_use:
            session.idle_ends_s = now_s + self._idle_timeout_s
            self._sessions[session_id] = self._sessions.pop(session_id)
        return session

    def extend(self, session_id: str, lifetime_s: float) -> None:
        """The session may last `lifetime_s` from this moment, within the time that no request extends."""
        session = self._sessions.get(session_id)
        if session is not None:
            session.ends_s = min(session.latest_end_s, self._now_s() + lifetime_s)

    def end(self, session_id: str) -> None:
        session = self._sessions.pop(session_id, None)
        if session is not None:
            self._on_end(session)

    def end_least_recent(self, users: Collection[str]) -> bool:
        """End the session of these users that was used least recently; False if they have none."""
        session = next((each for each in self._sessions.values() if each.user in users), None)
        if session is not None:
            self.end(session.id)
        return session is not None

    def end_of_user(self, user: str) -> None:
        """End all sessions of a user, whose credentials have changed."""
        self._end_those(lambda session: session.user == user)

    def end_expired(self) -> None:
        now_s = self._now_s()
        self._end_those(lambda session: session.has_ended(now_s))

    def end_all(self) -> None:
        self._end_those(lambda _session: True)

    def _end_those(self, is_chosen: Callable[[Session[C]], bool]) -> None:
        for session in list(self._sessions.values()):
            if is_chosen(session):
                self.end(session.id)


LOGIN_PATH = "/login"
OPEN_PATHS = frozenset({LOGIN_PATH, "/login/oidc", "/login/callback"})
ASSETS = "/assets/"
LARGEST_NEXT = 1_000
MOST_IDENTITIES = 25
UNWATCHED_S = 60.0  # the cluster is not polled for a user who has requested no page for so long
HOUSEKEEPING_S = 5.0
LOGINS_AT_ONCE = 4  # further ones are refused, so that guesses do not occupy the threads of users


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


class Identities:
    """The consoles of each identity, one for each of its sessions. Only the event loop uses it."""

    def __init__(self, settings: ConsoleSettings, threads: Threads, most: int = MOST_IDENTITIES) -> None:
        self._settings = settings
        self._threads = threads
        self._most = most
        self._share = PollingShare()
        self._key = secrets.token_bytes(32)
        self._identities: dict[tuple[str, bytes], list[Console]] = {}

    def __len__(self) -> int:
        return len(self._identities)

    def is_full_for(self, user: str, secret: str) -> bool:
        """Whether `open` would raise TooManyLogins."""
        return len(self._identities) >= self._most and self._key_of(user, secret) not in self._identities

    def users_with_several(self) -> set[str]:
        """Users who have more than one identity."""
        return {user for user, count in Counter(user for user, _secret in self._identities).items() if count > 1}

    def _key_of(self, user: str, secret: str) -> tuple[str, bytes]:
        return user, hmac.digest(self._key, secret.encode(), hashlib.sha256)

    def open(self, user: str, secret: str, cluster: Cluster) -> Console:
        """A console with connections of the user. The caller has logged in with this cluster."""
        if self.is_full_for(user, secret):
            raise TooManyLogins
        key = self._key_of(user, secret)
        consoles = self._identities.get(key, [])
        if consoles:
            console = consoles[0].for_another_session()
        else:
            watch = ClusterWatch(cluster, self._settings.sample_interval_s, share=self._share, unwatched_s=UNWATCHED_S)
            watch.start()
            console = Console(self._settings, cluster, watch, self._threads, STREAMS_OF_SESSION)
        self._identities[key] = [*consoles, console]
        return console

    def close(self, console: Console) -> None:
        """End the streams of a console; and its watches, if no other session of the identity uses them."""
        console.close()
        for key, consoles in list(self._identities.items()):
            if console in consoles:
                consoles.remove(console)
                if not consoles:
                    del self._identities[key]
                    console.stop_watches(wait=False)


class Logins:
    """Only the event loop uses it."""

    def __init__(self, settings: ConsoleSettings, cluster: Cluster, threads: Threads) -> None:
        assert settings.login is not None
        self.method = settings.login
        self.cluster = cluster  # its addresses and TLS properties; nobody acts as its user
        self.threads = threads
        self.attempts = LoginAttempts(time.monotonic)
        self.pending = PendingLogins(time.monotonic)
        self.provider = OidcProvider(self.method) if isinstance(self.method, OidcLogin) else None
        self.running = 0
        self._identities = Identities(settings, threads)
        self.sessions: Sessions[Console] = Sessions(
            time.monotonic, self._close, idle_timeout_s=settings.idle_timeout_s, timeout_s=settings.session_timeout_s
        )
        self._renewals: TokenRenewals | None = None
        if self.provider is not None:
            self._renewals = TokenRenewals(self.provider, threads.renewals, self.sessions.extend)

    def begin(self, user: str, secret: str, cluster: Cluster, grant: TokenGrant | None = None) -> Session[Console]:
        """Raises TooManyLogins when there is no room."""
        lifetime_s = None if grant is None else grant.lifetime_s
        self.sessions.end_expired()
        self._make_room(user, secret)
        session = self.sessions.begin(user, lambda: self._identities.open(user, secret, cluster), lifetime_s)
        if grant is not None and self._renewals is not None:
            self._renewals.add(session.id, session.content.cluster, grant)
        return session

    def _make_room(self, user: str, secret: str) -> None:
        """While there are too many identities, sessions of this user end, or else those of users who have several.

        Each login with OIDC is an identity: without this rule, a few users could keep all others out.
        """
        while self._identities.is_full_for(user, secret):
            has_ended = self.sessions.end_least_recent({user})
            if not has_ended and not self.sessions.end_least_recent(self._identities.users_with_several()):
                return

    def _close(self, session: Session[Console]) -> None:
        if self._renewals is not None:
            self._renewals.forget(session.id)
        self._identities.close(session.content)

    async def run_housekeeping(self) -> None:
        """Tokens are renewed, and sessions end on time with their connections, also when nobody requests anything."""
        await asyncio.gather(self._end_sessions(), self._renew_tokens())

    async def _end_sessions(self) -> None:
        while True:
            await asyncio.sleep(HOUSEKEEPING_S)
            self.sessions.end_expired()

    async def _renew_tokens(self) -> None:
        while self._renewals is not None:
            await asyncio.sleep(HOUSEKEEPING_S)
            await self._renewals.renew_due()
