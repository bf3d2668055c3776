"""Logins with an OpenID Connect provider, a process of its own; the broker checks the access token itself."""

from __future__ import annotations

import http.client
import json
import time
import urllib.request
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import pytest

from odradek.console.login import logins, oidc
from odradek.console.login.oidc import OidcProvider, TokenGrant
from odradek.console.settings import OidcLogin
from tests.console.conftest import Answer, Visitor, running_console
from tests.console.oidc_provider import CLIENT_ID, CLIENT_SECRET, running_provider
from tests.console.secured import SecuredCluster, secured_cluster, token_properties

if TYPE_CHECKING:
    from collections.abc import Iterator

SASL = {"security.protocol": "SASL_PLAINTEXT"}


@pytest.fixture(scope="module")
def issuer() -> Iterator[str]:
    with running_provider() as issuer:
        yield issuer


@pytest.fixture(scope="module")
def secured(issuer: str) -> Iterator[SecuredCluster]:
    with secured_cluster(**token_properties(issuer)) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def address(issuer: str, secured: SecuredCluster) -> Iterator[str]:
    with running_console(secured.address, SASL, login=OidcLogin(issuer, CLIENT_ID, CLIENT_SECRET)) as console:
        yield console


@pytest.fixture(autouse=True)
def _genuine(issuer: str) -> None:
    behave(issuer)


def behave(issuer: str, **behaviour: Any) -> None:
    request = urllib.request.Request(f"{issuer}/behaviour", json.dumps(behaviour).encode())
    urllib.request.urlopen(request, timeout=60).close()


def authorize(location: str) -> str:
    """The address that the provider sends the browser to."""
    parts = urlsplit(location)
    connection = http.client.HTTPConnection(parts.netloc, timeout=60)
    connection.request("GET", f"{parts.path}?{parts.query}")
    answer = connection.getresponse()
    answer.read()
    connection.close()
    assert answer.status == 302
    return answer.headers["location"]


def log_in(visitor: Visitor, next_path: str = "/") -> Answer:
    visitor.get("/login")
    begun = visitor.get(f"/login/oidc?next={next_path}")
    assert begun.status == 303
    callback = urlsplit(authorize(begun.headers["location"]))
    return visitor.get(f"{callback.path}?{callback.query}")


def test_a_user_logs_in_and_has_the_own_rights(address: str) -> None:
    visitor = Visitor(address)
    answer = log_in(visitor, "/topics")
    assert (answer.status, answer.headers["location"]) == (303, "/topics")
    topics = visitor.get("/topics").text
    assert "ann-orders" in topics
    assert "ben-orders" not in topics
    assert "record of ann-orders" in visitor.get("/topics/ann-orders").text
    assert visitor.get("/topics/ben-orders").status == 403


def test_another_user_of_the_provider_sees_other_topics(address: str, issuer: str) -> None:
    behave(issuer, user="ben")
    visitor = Visitor(address)
    log_in(visitor)
    topics = visitor.get("/topics").text
    assert "ben-orders" in topics
    assert "ann-orders" not in topics


def test_the_request_to_the_provider_has_state_nonce_and_challenge(address: str) -> None:
    visitor = Visitor(address)
    visitor.get("/login")
    fields = parse_qs(urlsplit(visitor.get("/login/oidc").headers["location"]).query)
    assert fields["code_challenge_method"] == ["S256"]
    assert fields["scope"] == ["openid"]
    assert fields["redirect_uri"] == [f"{address}login/callback"]
    for name in ("state", "nonce", "code_challenge"):
        assert len(fields[name][0]) >= 43


@pytest.mark.parametrize(
    ("behaviour", "words"),
    [
        ({"id_claims": {"nonce": "another"}}, "its nonce is not that of this login"),
        ({"id_claims": {"aud": "another"}}, "for another audience"),
        ({"id_claims": {"aud": [CLIENT_ID, "x"], "azp": "x"}}, "issued to another client"),
        ({"id_claims": {"iss": "https://evil.example"}}, "is not the expected one"),
        ({"id_claims": {"exp": 1000}}, "it has expired"),
        ({"audience": "another service"}, "refused the credentials"),
        ({"expires_in": 1}, "expires at once"),
    ],
)
def test_tokens_that_are_not_for_this_login_are_refused(
    address: str, issuer: str, behaviour: dict[str, Any], words: str
) -> None:
    behave(issuer, **behaviour)
    visitor = Visitor(address)
    answer = log_in(visitor)
    assert answer.status == 401
    assert words in answer.text
    assert visitor.get("/topics").status == 303


def test_an_answer_for_another_browser_is_refused(address: str) -> None:
    """A site cannot log a visitor in as somebody else (login CSRF)."""
    attacker, victim = Visitor(address), Visitor(address)
    attacker.get("/login")
    callback = urlsplit(authorize(attacker.get("/login/oidc").headers["location"]))
    victim.get("/login")
    answer = victim.get(f"{callback.path}?{callback.query}")
    assert answer.status == 401
    assert "not begun in this browser" in answer.text
    assert victim.get("/topics").status == 303
    # A code counts once.
    assert attacker.get(f"{callback.path}?{callback.query}").status == 303
    assert attacker.get(f"{callback.path}?{callback.query}").status == 401


def test_a_refusal_of_the_provider_is_shown(address: str) -> None:
    visitor = Visitor(address)
    visitor.get("/login")
    state = parse_qs(urlsplit(visitor.get("/login/oidc").headers["location"]).query)["state"][0]
    answer = visitor.get(f"/login/callback?state={state}&error=access_denied%3Cscript%3E")
    assert "access_denied" in answer.text
    assert "<script>" not in answer.source.split("<main")[1]


def test_a_form_with_a_password_is_not_taken(address: str) -> None:
    assert Visitor(address).log_in("ann", "ann's secret").status == 405


def test_a_session_ends_with_its_token(secured: SecuredCluster, issuer: str) -> None:
    login = OidcLogin(issuer, CLIENT_ID, CLIENT_SECRET)
    with running_console(secured.address, SASL, login=login, session_timeout_s=0.3) as address:
        visitor = Visitor(address)
        log_in(visitor)
        for _ in range(1000):
            if visitor.get("/topics").status == 303:
                return
        raise AssertionError("the session did not end")


@pytest.mark.parametrize("lasts_s", [0.0, pytest.param(45.0, marks=pytest.mark.soak)])
@pytest.mark.timeout(180)
def test_tokens_are_renewed_before_they_expire(
    secured: SecuredCluster, issuer: str, monkeypatch: pytest.MonkeyPatch, lasts_s: float
) -> None:
    """In the longer case the session outlives its first token, of 31 seconds, by far."""
    monkeypatch.setattr(logins, "HOUSEKEEPING_S", 0.2)
    monkeypatch.setattr(oidc, "DUE_AFTER", 0.0 if not lasts_s else oidc.DUE_AFTER)
    used: list[str] = []
    renew = OidcProvider.renew

    def watched(self: OidcProvider, user: str, refresh_token: str) -> TokenGrant:
        used.append(refresh_token)
        return renew(self, user, refresh_token)

    monkeypatch.setattr(OidcProvider, "renew", watched)
    behave(issuer, gives_refresh_token=True, expires_in=31)
    login = OidcLogin(issuer, CLIENT_ID, CLIENT_SECRET)
    with running_console(secured.address, SASL, login=login) as address:
        visitor = Visitor(address)
        assert log_in(visitor).status == 303
        began_s = time.monotonic()
        while len(set(used)) < 2 or time.monotonic() < began_s + lasts_s:  # each with the token of the last
            assert visitor.get("/topics").status == 200
            assert time.monotonic() < began_s + 120
            time.sleep(0.1)  # a poll's pause
        assert "record of ann-orders" in visitor.get("/topics/ann-orders").text


def test_a_provider_that_is_down_is_reported(secured: SecuredCluster) -> None:
    with running_console(secured.address, SASL, login=OidcLogin("http://127.0.0.1:1", CLIENT_ID)) as address:
        answer = Visitor(address).get("/login/oidc")
        assert answer.status == 502
        assert "the provider does not answer" in answer.text
