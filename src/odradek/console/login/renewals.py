"""Access tokens of sessions that are renewed before they expire, so that a user need not log in again each time.

A session whose token cannot be renewed ends with its token. Only the event loop uses the list; requests to the provider
run on threads.
"""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from odradek.console.cluster import connection as identity
from odradek.console.login.oidc import LoginRefused

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Executor

    from odradek.console.cluster.connection import Cluster
    from odradek.console.login.oidc import OidcProvider, TokenGrant

LOG = logging.getLogger("odradek.console")

DUE_AFTER = 0.6  # of the lifetime of a token; librdkafka asks for the next one after 0.8
RETRY_S = 10.0
RENEWALS_AT_ONCE = 4


@dataclass(slots=True)
class _Renewal:
    user: str
    cluster: Cluster
    refresh_token: str = field(repr=False)
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
        due.sort(key=lambda each: each[1].due_s)  # those that were refused, and are repeated, come last
        await asyncio.gather(*(self._renew_or_repeat(*each) for each in due[:RENEWALS_AT_ONCE]))

    async def _renew_or_repeat(self, session_id: str, renewal: _Renewal) -> None:
        renewal.due_s = self._now_s() + RETRY_S
        try:
            await self._renew(session_id, renewal)
        except LoginRefused as refused:
            LOG.info("the provider did not renew the token of %s: %s", renewal.user, refused)
        except Exception as problem:  # such as a certificate that is being replaced: other tokens are renewed
            LOG.warning("the token of %s could not be renewed: %s", renewal.user, type(problem).__name__)

    async def _renew(self, session_id: str, renewal: _Renewal) -> None:
        loop = asyncio.get_running_loop()
        grant = await loop.run_in_executor(self._threads, self._provider.renew, renewal.user, renewal.refresh_token)
        renewal.refresh_token = grant.refresh_token  # the provider may accept each of them once
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
