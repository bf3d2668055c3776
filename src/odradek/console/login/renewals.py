"""Access tokens of sessions that are renewed before they expire, so that a user need not log in again each time.

A session whose token cannot be renewed ends with its token. Only the event loop uses the list; requests to the provider
run on threads.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from odradek.console.cluster import identity
from odradek.console.login.oidc_rules import LoginRefused

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Executor

    from odradek.console.cluster.connection import Cluster
    from odradek.console.login.oidc_provider import OidcProvider, TokenGrant

DUE_AFTER = 0.6  # of the lifetime of a token; librdkafka asks for the next one after 0.8
RETRY_S = 10.0
RENEWALS_AT_ONCE = 4


@dataclass(slots=True)
class _Renewal:
    user: str
    cluster: Cluster
    refresh_token: str
    due_s: float


class TokenRenewals:
    def __init__(
        self,
        provider: OidcProvider,
        threads: Executor,
        on_renewal: Callable[[str, float], None],
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        """`on_renewal` takes the id of a session and the lifetime of its new token."""
        self._provider = provider
        self._threads = threads
        self._on_renewal = on_renewal
        self._now_s = now_s
        self._renewals: dict[str, _Renewal] = {}  # by id of session

    def __len__(self) -> int:
        return len(self._renewals)

    def add(self, session_id: str, cluster: Cluster, grant: TokenGrant) -> None:
        if grant.refresh_token:
            due_s = self._now_s() + grant.lifetime_s * DUE_AFTER
            self._renewals[session_id] = _Renewal(grant.user, cluster, grant.refresh_token, due_s)

    def forget(self, session_id: str) -> None:
        self._renewals.pop(session_id, None)

    async def renew_due(self) -> None:
        now_s = self._now_s()
        due = [(session_id, each) for session_id, each in self._renewals.items() if each.due_s <= now_s]
        await asyncio.gather(*(self._renew(*each) for each in due[:RENEWALS_AT_ONCE]))

    async def _renew(self, session_id: str, renewal: _Renewal) -> None:
        loop = asyncio.get_running_loop()
        try:
            grant = await loop.run_in_executor(self._threads, self._provider.renew, renewal.user, renewal.refresh_token)
        except LoginRefused:
            renewal.due_s = self._now_s() + RETRY_S
            return
        if session_id not in self._renewals:  # the user has logged out
            return
        expires_s = time.time() + grant.lifetime_s
        await loop.run_in_executor(
            self._threads, identity.renew_token, renewal.cluster, grant.user, grant.access_token, expires_s
        )  # reads certificates
        if session_id not in self._renewals:
            return
        self.add(session_id, renewal.cluster, grant)
        self._on_renewal(session_id, grant.lifetime_s)
