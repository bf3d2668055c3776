"""Access tokens are renewed when they are due, by a provider in a thread; the clock is the test's."""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import pytest

from odradek.admin.cluster import Cluster
from odradek.console.cluster import connection as identity
from odradek.console.login.oidc import (
    DUE_AFTER,
    RENEWALS_AT_ONCE,
    RETRY_S,
    OidcProvider,
    PendingLogins,
    TokenRenewals,
    authorization_address,
)
from odradek.console.settings import OidcLogin
from tests.console.oidc_provider import CLIENT_ID, CLIENT_SECRET, Provider
from tests.console.test_oidc import authorize

if TYPE_CHECKING:
    from collections.abc import Iterator

    from odradek.console.login.oidc import TokenGrant

LIFETIME_S = 100


@pytest.fixture
def provider() -> Iterator[Provider]:
    server = Provider()
    server.behaviour = {"gives_refresh_token": True, "expires_in": LIFETIME_S}
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


class Renewing:
    """One session whose token is renewed, from a login on."""

    def __init__(self, provider: Provider) -> None:
        login = OidcLogin(provider.issuer, CLIENT_ID, CLIENT_SECRET)
        client = OidcProvider(login)
        state, pending = PendingLogins(time.monotonic).begin("s", "/", "http://127.0.0.1/login/callback", "127.0.0.1")
        callback = authorize(authorization_address(client.discover(), login, state, pending))
        self.grant: TokenGrant = client.exchange(parse_qs(urlsplit(callback).query)["code"][0], pending)
        plain = Cluster("127.0.0.1:1", {"security.protocol": "SASL_PLAINTEXT"})
        self.cluster = identity.cluster_of_token(plain, self.grant.user, self.grant.access_token, 1.0)
        self.now_s = 0.0
        self.renewed: list[tuple[str, float]] = []
        self._threads = ThreadPoolExecutor(1)
        self.renewals = TokenRenewals(client, self._threads, self._take, lambda: self.now_s)
        self.renewals.add("one", self.cluster, self.grant)

    def _take(self, session_id: str, lifetime_s: float) -> None:
        self.renewed.append((session_id, lifetime_s))

    def renew_at(self, now_s: float) -> int:
        """How often the token has been renewed by that moment."""
        self.now_s = now_s
        asyncio.run(self.renewals.renew_due())
        return len(self.renewed)


def test_a_token_is_renewed_when_it_is_due_and_given_to_new_connections(provider: Provider) -> None:
    session = Renewing(provider)
    due_s = LIFETIME_S * DUE_AFTER
    assert session.renew_at(due_s - 1) == 0
    assert session.renew_at(due_s) == 1
    assert session.renewed == [("one", LIFETIME_S)]
    assert session.cluster._give_token("")[1] > time.time()
    assert session.renew_at(due_s + 1) == 1
    assert session.renew_at(2 * due_s) == 2  # with the refresh token of the first renewal: each is taken once


def test_the_token_of_another_user_is_not_taken(provider: Provider) -> None:
    session = Renewing(provider)
    provider.behaviour["id_claims"] = {"sub": "ben"}
    assert session.renew_at(LIFETIME_S * DUE_AFTER) == 0
    assert session.cluster._give_token("") == (session.grant.access_token, 1.0)


def test_a_failed_renewal_is_repeated_after_a_while_unless_the_session_has_ended(provider: Provider) -> None:
    session = Renewing(provider)
    codes, provider.codes = provider.codes, {}
    due_s = LIFETIME_S * DUE_AFTER
    assert session.renew_at(due_s) == 0
    provider.codes = codes
    assert session.renew_at(due_s + RETRY_S / 2) == 0
    assert session.renew_at(due_s + RETRY_S) == 1
    session.renewals.forget("one")
    assert session.renew_at(3 * due_s) == 1
    assert len(session.renewals) == 0


def test_a_failure_of_one_renewal_ends_no_other(provider: Provider, monkeypatch: pytest.MonkeyPatch) -> None:
    session = Renewing(provider)
    renew_token, attempts = identity.renew_token, []

    def fail_once(*arguments: Any) -> None:
        attempts.append(arguments)
        if len(attempts) == 1:
            raise OSError("the certificate is being replaced")
        renew_token(*arguments)

    monkeypatch.setattr(identity, "renew_token", fail_once)
    due_s = LIFETIME_S * DUE_AFTER
    assert session.renew_at(due_s) == 0
    assert session.renew_at(due_s + RETRY_S) == 1  # with the refresh token of the first attempt: each is taken once


def test_sessions_whose_renewal_is_refused_do_not_hold_up_others(provider: Provider) -> None:
    session = Renewing(provider)
    session.renewals.forget("one")
    for number in range(2 * RENEWALS_AT_ONCE):
        session.renewals.add(f"refused {number}", session.cluster, session.grant._replace(refresh_token="unknown"))
    session.renewals.add("one", session.cluster, session.grant)
    due_s = LIFETIME_S * DUE_AFTER
    assert [session.renew_at(due_s + RETRY_S / 2 * turn) for turn in range(3)] == [0, 0, 1]


def test_without_a_refresh_token_nothing_is_renewed(provider: Provider) -> None:
    provider.behaviour = {"expires_in": LIFETIME_S}
    assert len(Renewing(provider).renewals) == 0
