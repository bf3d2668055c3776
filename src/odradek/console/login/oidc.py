"""OpenID Connect's authorization code flow with PKCE (RFC 7636): requests to the provider, pending logins, ID tokens,
and access tokens that are renewed before they expire.

A pending login belongs to the browser that began it: its state counts with that browser's cookie only, and once.
Methods of OidcProvider block, and run on threads. A session whose token cannot be renewed ends with its token.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import http.client
import json
import logging
import secrets
import time
import urllib.error
import urllib.request
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote, urlencode, urlsplit

from odradek.console.cluster import connection as identity
from odradek.console.login.attempts import network_of
from odradek.conventions.addresses import is_loopback
from odradek.conventions.dataclass import dataclass
from odradek.conventions.web_requests import open_without_redirects
from odradek.security.sasl import json_web_tokens

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from odradek.console.cluster.connection import Cluster
    from odradek.console.settings import OidcLogin

PENDING_S = 600.0
MOST_PENDING = 1_000
MOST_PENDING_OF_ADDRESS = 100  # so that one client, which needs no user for it, does not drop the logins of others
CLOCK_SKEW_S = 60
TIMEOUT_S = 10.0
LARGEST_DOCUMENT_BYTES = 1024 * 1024
KEPT_S = 600.0  # discovery document and keys
SHORTEST_LIFETIME_S = 30.0
LONGEST_LIFETIME_S = 365 * 86_400


class LoginRefused(Exception):
    """A login that fails. The text is shown, and has no secret."""


class Provider(NamedTuple):
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
        nonce, verifier = secrets.token_urlsafe(32), secrets.token_urlsafe(48)
        login = PendingLogin(session, nonce, verifier, next_path, redirect_uri, ends_s, network_of(address))
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


def check_id_token(token: str, keys: json_web_tokens.Keys, login: OidcLogin, nonce: str | None, now_ms: int) -> str:
    """The user that the token names. InvalidToken unless the issuer has signed it for this client and this login. A
    token that renews another (OpenID Connect Core, 12.2) has no nonce."""
    claims = json_web_tokens.signed_claims(token, keys)
    rules = json_web_tokens.TokenRules((login.client_id,), login.issuer, CLOCK_SKEW_S, "scope", login.user_claim)
    user = json_web_tokens.check_claims(claims, rules, now_ms).user
    audiences = claims.get("aud")
    is_shared = isinstance(audiences, list) and len(audiences) > 1
    if (is_shared or "azp" in claims) and claims.get("azp") != login.client_id:
        raise json_web_tokens.InvalidToken("it was issued to another client")
    if nonce is not None and not hmac.compare_digest(str(claims.get("nonce", "")).encode(), nonce.encode()):
        raise json_web_tokens.InvalidToken("its nonce is not that of this login")
    return user


class TokenGrant(NamedTuple):
    """The user, the access token with its lifetime, and the token that renews it, if the provider gave one."""

    user: str
    access_token: str
    lifetime_s: float
    refresh_token: str = ""

    def __repr__(self) -> str:
        return f"TokenGrant({self.user!r})"


class OidcProvider:
    """One provider. Its document and its keys are read when they are needed, and kept for some minutes."""

    def __init__(self, login: OidcLogin) -> None:
        self.login = login
        self._provider: Provider | None = None
        self._keys: json_web_tokens.Keys | None = None
        self._read_at = float("-inf")

    def discover(self) -> Provider:
        """LoginRefused if the provider does not answer, or answers with something else."""
        if not json_web_tokens.has_library():
            raise LoginRefused("joserfc is not installed; pip install 'odradek[security]'")
        if not is_safe_address(self.login.issuer):
            raise LoginRefused(f"the issuer {self.login.issuer} is not an https address")
        if self._provider is None or time.monotonic() - self._read_at > KEPT_S:
            address = f"{self.login.issuer.rstrip('/')}/.well-known/openid-configuration"
            provider = parse_provider(self.login.issuer, _object(_request(urllib.request.Request(address))))
            self._provider, self._keys, self._read_at = provider, None, time.monotonic()
        return self._provider

    def exchange(self, code: str, pending: PendingLogin) -> TokenGrant:
        """The tokens of a login. LoginRefused if the provider, or a check of its ID token, refuses."""
        provider = self.discover()
        fields = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": pending.redirect_uri,
            "client_id": self.login.client_id,
            "code_verifier": pending.verifier,
        }
        answer = self._ask_for_tokens(provider, fields)
        id_token = answer.get("id_token")
        if not isinstance(id_token, str):
            raise LoginRefused("the provider sent no ID token")
        return _grant_of(answer, self._user_of(id_token, pending.nonce, provider))

    def renew(self, user: str, refresh_token: str) -> TokenGrant:
        """A new access token (RFC 6749, 6). Without a new refresh token in the answer the old one is used again."""
        provider = self.discover()
        self._read_keys(provider)  # before the provider takes the refresh token, which may count once
        fields = {"grant_type": "refresh_token", "refresh_token": refresh_token, "client_id": self.login.client_id}
        answer = self._ask_for_tokens(provider, fields)
        id_token = answer.get("id_token")
        if isinstance(id_token, str) and self._user_of(id_token, None, provider) != user:
            raise LoginRefused("the provider renewed the token of another user")
        grant = _grant_of(answer, user)
        return grant if grant.refresh_token else grant._replace(refresh_token=refresh_token)

    def _ask_for_tokens(self, provider: Provider, fields: dict[str, str]) -> dict[str, Any]:
        headers = {"accept": "application/json", "content-type": "application/x-www-form-urlencoded"}
        if self.login.client_secret:
            pair = f"{quote(self.login.client_id, safe='')}:{quote(self.login.client_secret, safe='')}"
            headers["authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
        body = urlencode(fields).encode()
        return _object(_request(urllib.request.Request(provider.token_endpoint, body, headers)))

    def _user_of(self, id_token: str, nonce: str | None, provider: Provider) -> str:
        now_ms = int(time.time() * 1000)
        try:
            try:
                return check_id_token(id_token, self._read_keys(provider), self.login, nonce, now_ms)
            except json_web_tokens.UnknownKey:
                self._keys = None  # the provider may have a new key
                return check_id_token(id_token, self._read_keys(provider), self.login, nonce, now_ms)
        except json_web_tokens.InvalidToken as problem:
            raise LoginRefused(f"the ID token is not valid: {problem}") from None

    def _read_keys(self, provider: Provider) -> json_web_tokens.Keys:
        keys = self._keys  # other threads may forget them meanwhile
        if keys is None:
            try:
                keys = self._keys = json_web_tokens.parse_keys(_request(urllib.request.Request(provider.jwks_uri)))
            except json_web_tokens.MalformedKeys as problem:
                raise LoginRefused(f"the provider's keys cannot be used: {problem}") from None
        return keys


def _grant_of(answer: dict[str, Any], user: str) -> TokenGrant:
    token, refresh_token = answer.get("access_token"), answer.get("refresh_token")
    if not isinstance(token, str):
        raise LoginRefused("the provider sent no access token")
    if str(answer.get("token_type", "")).lower() != "bearer":
        raise LoginRefused("the provider sent a token that is not a bearer token")
    lifetime = answer.get("expires_in", 300)
    lifetime_s = float(min(lifetime, LONGEST_LIFETIME_S)) if isinstance(lifetime, int | float) else 300.0
    if not lifetime_s >= SHORTEST_LIFETIME_S:  # JSON of Python has NaN
        raise LoginRefused("the provider's access token expires at once")
    return TokenGrant(user, token, lifetime_s, refresh_token if isinstance(refresh_token, str) else "")


def _request(request: urllib.request.Request) -> bytes:
    try:
        with open_without_redirects(request, TIMEOUT_S) as response:
            data: bytes = response.read(LARGEST_DOCUMENT_BYTES + 1)
    except urllib.error.HTTPError as error:
        raise LoginRefused(f"the provider refused the request ({error.code} {_reason(error)})") from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise LoginRefused(f"the provider does not answer: {error}") from None
    if len(data) > LARGEST_DOCUMENT_BYTES:
        raise LoginRefused("the provider's answer is too large")
    return data


def _reason(error: urllib.error.HTTPError) -> str:
    """The error code of RFC 6749, which has no secrets."""
    try:
        return str(_object(error.read(10_000)).get("error", error.reason))[:100]
    except (LoginRefused, OSError):
        return str(error.reason)[:100]


def _object(data: bytes) -> dict[str, Any]:
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        raise LoginRefused("the provider's answer is not JSON") from None
    if not isinstance(document, dict):
        raise LoginRefused("the provider's answer is not a JSON object")
    return document


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
        self, provider: OidcProvider, threads: Executor, on_renewal: Callable[[str, float], None],
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
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
