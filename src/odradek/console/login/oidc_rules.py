"""OpenID Connect's authorization code flow with PKCE (RFC 7636), without I/O: addresses, pending logins, ID tokens.

A pending login belongs to the browser that began it: its state counts with that browser's cookie only, and once.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlencode, urlsplit

from odradek.console.login.attempts import network_of
from odradek.conventions.addresses import is_loopback
from odradek.security.sasl.json_web_tokens import InvalidToken, TokenRules, check_claims, signed_claims

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from odradek.console.settings import OidcLogin
    from odradek.security.sasl.json_web_tokens import Keys

PENDING_S = 600.0
MOST_PENDING = 1_000
MOST_PENDING_OF_ADDRESS = 100  # so that one client, which needs no user for it, does not drop the logins of others
CLOCK_SKEW_S = 60


class LoginRefused(Exception):
    """A login that fails. The text is shown, and has no secret."""


@dataclass(frozen=True, slots=True)
class Provider:
    """The parts of a discovery document that are used."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str


class PendingLogin(NamedTuple):
    session: str
    nonce: str
    verifier: str
    next: str
    redirect_uri: str
    ends_s: float
    network: str


class PendingLogins:
    def __init__(self, now_s: Callable[[], float], most: int = MOST_PENDING) -> None:
        self._now_s = now_s
        self._most = most
        self._by_state: OrderedDict[str, PendingLogin] = OrderedDict()

    def __len__(self) -> int:
        return len(self._by_state)

    def begin(self, session: str, next_path: str, redirect_uri: str, address: str) -> tuple[str, PendingLogin]:
        """The state of a new login. Beyond the limits the oldest of the client's network, or of all, is dropped."""
        state = secrets.token_urlsafe(32)
        ends_s = self._now_s() + PENDING_S
        login = PendingLogin(
            session,
            secrets.token_urlsafe(32),
            secrets.token_urlsafe(48),
            next_path,
            redirect_uri,
            ends_s,
            network_of(address),
        )
        of_network = [other for other, each in self._by_state.items() if each.network == login.network]
        if len(of_network) >= MOST_PENDING_OF_ADDRESS:
            del self._by_state[of_network[0]]
        self._by_state[state] = login
        while len(self._by_state) > self._most:
            self._by_state.popitem(last=False)
        return state, login

    def take(self, state: str, session: str) -> PendingLogin:
        """LoginRefused for a state that is unknown, has expired, or was begun by another browser."""
        login = self._by_state.get(state)
        is_own = login is not None and hmac.compare_digest(login.session.encode(), session.encode())
        if login is None or not is_own:
            raise LoginRefused("this login was not begun in this browser, or was begun too long ago; log in again")
        del self._by_state[state]
        if self._now_s() >= login.ends_s:
            raise LoginRefused("this login took too long; log in again")
        return login


def parse_provider(issuer: str, document: Mapping[str, Any]) -> Provider:
    """LoginRefused for a document of another issuer, or with an endpoint that is not reached by HTTPS."""
    if document.get("issuer") != issuer:
        raise LoginRefused(f"the provider calls itself {str(document.get('issuer'))[:100]!r}, not {issuer!r}")
    addresses = []
    for name in ("authorization_endpoint", "token_endpoint", "jwks_uri"):
        address = document.get(name)
        if not isinstance(address, str) or not is_safe_address(address):
            raise LoginRefused(f"the provider's {name} is not an https address")
        addresses.append(address)
    return Provider(issuer, *addresses)


def is_safe_address(address: str) -> bool:
    """HTTPS, or HTTP on this machine."""
    parts = urlsplit(address)
    return parts.scheme == "https" or (parts.scheme == "http" and is_loopback(parts.hostname or ""))


def challenge_of(verifier: str) -> str:
    digest = hashlib.sha256(verifier.encode()).digest()
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def authorization_address(provider: Provider, login: OidcLogin, state: str, pending: PendingLogin) -> str:
    scope = login.scope if "openid" in login.scope.split() else f"openid {login.scope}"
    fields = {
        "response_type": "code",
        "client_id": login.client_id,
        "redirect_uri": pending.redirect_uri,
        "scope": scope,
        "state": state,
        "nonce": pending.nonce,
        "code_challenge": challenge_of(pending.verifier),
        "code_challenge_method": "S256",
    }
    separator = "&" if urlsplit(provider.authorization_endpoint).query else "?"
    return f"{provider.authorization_endpoint}{separator}{urlencode(fields)}"


def check_id_token(token: str, keys: Keys, login: OidcLogin, nonce: str | None, now_ms: int) -> str:
    """The user that the token names. InvalidToken unless the issuer has signed it for this client and this login. A
    token that renews another (OpenID Connect Core, 12.2) has no nonce."""
    claims = signed_claims(token, keys)
    rules = TokenRules((login.client_id,), login.issuer, CLOCK_SKEW_S, "scope", login.user_claim)
    user = check_claims(claims, rules, now_ms).user
    audiences = claims.get("aud")
    is_shared = isinstance(audiences, list) and len(audiences) > 1
    if (is_shared or "azp" in claims) and claims.get("azp") != login.client_id:
        raise InvalidToken("it was issued to another client")
    if nonce is not None and not hmac.compare_digest(str(claims.get("nonce", "")).encode(), nonce.encode()):
        raise InvalidToken("its nonce is not that of this login")
    return user
