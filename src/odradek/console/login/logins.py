"""The state of logins: attempts, pending logins, sessions, and the consoles of users.

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
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from odradek.console.cluster.rounds import PollingShare
from odradek.console.cluster.topic_watches import PipelineWatch, RigWatch
from odradek.console.cluster.watch import ClusterWatch
from odradek.console.context import STREAMS_OF_SESSION, Console
from odradek.console.login.attempts import LoginAttempts
from odradek.console.login.oidc import OidcProvider, PendingLogins
from odradek.console.login.renewals import TokenRenewals
from odradek.console.login.sessions import Sessions
from odradek.console.settings import OidcLogin

if TYPE_CHECKING:
    from odradek.console.cluster.connection import Cluster
    from odradek.console.context import Threads
    from odradek.console.login.oidc import TokenGrant
    from odradek.console.login.sessions import Session
    from odradek.console.settings import ConsoleSettings

MOST_IDENTITIES = 25
UNWATCHED_S = 60.0  # the cluster is not polled for a user who has requested no page for so long


class TooManyIdentities(Exception):
    """As many different users are logged in as the console watches the cluster for."""


@dataclass(slots=True)
class _Identity:
    cluster: Cluster
    watch: ClusterWatch
    pipelines: PipelineWatch
    rigs: RigWatch
    consoles: list[Console] = field(default_factory=list)


class Identities:
    """Only the event loop uses it."""

    def __init__(self, settings: ConsoleSettings, threads: Threads, most: int = MOST_IDENTITIES) -> None:
        self._settings = settings
        self._threads = threads
        self._most = most
        self._share = PollingShare()
        self._key = secrets.token_bytes(32)
        self._identities: dict[tuple[str, bytes], _Identity] = {}

    def __len__(self) -> int:
        return len(self._identities)

    def is_full_for(self, user: str, secret: str) -> bool:
        """Whether `open` would raise TooManyIdentities."""
        return len(self._identities) >= self._most and self._key_of(user, secret) not in self._identities

    def users_with_several(self) -> set[str]:
        """Users who have more than one identity."""
        return {user for user, count in Counter(user for user, _secret in self._identities).items() if count > 1}

    def _key_of(self, user: str, secret: str) -> tuple[str, bytes]:
        return user, hmac.digest(self._key, secret.encode(), hashlib.sha256)

    def open(self, user: str, secret: str, cluster: Cluster) -> Console:
        """A console with connections of the user. The caller has logged in with this cluster."""
        key = self._key_of(user, secret)
        identity = self._identities.get(key)
        if identity is None:
            if self.is_full_for(user, secret):
                raise TooManyIdentities
            watch = ClusterWatch(cluster, self._settings.sample_interval_s, share=self._share, unwatched_s=UNWATCHED_S)
            identity = _Identity(
                cluster, watch, PipelineWatch(cluster), RigWatch(cluster, self._settings.decode_and_mask)
            )
            identity.watch.start()
            self._identities[key] = identity
        console = Console(
            self._settings,
            identity.cluster,
            identity.watch,
            self._threads,
            STREAMS_OF_SESSION,
            identity.pipelines,
            identity.rigs,
        )
        identity.consoles.append(console)
        return console

    def close(self, console: Console) -> None:
        """End the streams of a console; and its watch, if no other session of the identity uses it."""
        console.close()
        for key, identity in list(self._identities.items()):
            if console in identity.consoles:
                identity.consoles.remove(console)
                if not identity.consoles:
                    del self._identities[key]
                    console.stop_watches(wait=False)


HOUSEKEEPING_S = 5.0
LOGINS_AT_ONCE = 4  # further ones are refused, so that guesses do not occupy the threads of users


class Logins:
    """One owner, on the event loop."""

    def __init__(self, settings: ConsoleSettings, cluster: Cluster, threads: Threads) -> None:
        assert settings.login is not None
        self.method = settings.login
        self.cluster = cluster  # its addresses and TLS properties; nobody acts as its user
        self.threads = threads
        self.attempts = LoginAttempts(time.monotonic)
        self.pending = PendingLogins(time.monotonic)
        self.provider = OidcProvider(self.method) if isinstance(self.method, OidcLogin) else None
        self.running = 0
        self._renewals = None if self.provider is None else TokenRenewals(self.provider, threads.renewals, self._extend)
        self._identities = Identities(settings, threads)
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
