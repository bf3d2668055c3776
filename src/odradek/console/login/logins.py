"""The state of logins of a console: sessions, identities, attempts, and logins that a provider has not answered."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from odradek.console.login.attempts import LoginAttempts
from odradek.console.login.identities import Identities
from odradek.console.login.oidc_provider import OidcProvider
from odradek.console.login.oidc_rules import PendingLogins
from odradek.console.login.renewals import TokenRenewals
from odradek.console.login.sessions import Sessions
from odradek.console.settings import OidcLogin

if TYPE_CHECKING:
    from odradek.console.cluster.connection import Cluster
    from odradek.console.context import Console, Threads
    from odradek.console.login.oidc_provider import TokenGrant
    from odradek.console.login.sessions import Session
    from odradek.console.settings import ConsoleSettings
    from odradek.console.web.rendering import Renderer

HOUSEKEEPING_S = 5.0
LOGINS_AT_ONCE = 4  # further ones are refused, so that guesses do not occupy the threads of users


class Logins:
    """One owner, on the event loop."""

    def __init__(self, settings: ConsoleSettings, cluster: Cluster, renderer: Renderer, threads: Threads) -> None:
        assert settings.login is not None
        self.method = settings.login
        self.cluster = cluster  # its addresses and TLS properties; nobody acts as its user
        self.threads = threads
        self.attempts = LoginAttempts(time.monotonic)
        self.pending = PendingLogins(time.monotonic)
        self.provider = OidcProvider(self.method) if isinstance(self.method, OidcLogin) else None
        self.running = 0
        self._renewals = None if self.provider is None else TokenRenewals(self.provider, threads.renewals, self._extend)
        self._identities = Identities(settings, renderer, threads)
        self.sessions: Sessions[Console] = Sessions(
            time.monotonic,
            self._close,
            idle_timeout_s=settings.idle_timeout_s,
            timeout_s=settings.session_timeout_s,
        )

    def begin(self, user: str, secret: str, cluster: Cluster, grant: TokenGrant | None = None) -> Session[Console]:
        """TooManySessions, TooManyIdentities."""
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

    def _extend(self, session_id: str, lifetime_s: float) -> None:
        self.sessions.extend(session_id, lifetime_s)

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
