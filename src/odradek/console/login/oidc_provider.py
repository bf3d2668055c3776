"""Requests to an OpenID Connect provider: its discovery document, its keys, and the exchange of a code for tokens.

Everything here blocks, and runs on threads.
"""

from __future__ import annotations

import base64
import http.client
import json
import time
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote, urlencode

from odradek.console.login.oidc_rules import LoginRefused, check_id_token, is_safe_address, parse_provider
from odradek.conventions.web_requests import open_without_redirects
from odradek.security.sasl.json_web_tokens import InvalidToken, Keys, MalformedKeys, UnknownKey, has_library, parse_keys

if TYPE_CHECKING:
    from odradek.console.login.oidc_rules import PendingLogin, Provider
    from odradek.console.settings import OidcLogin

TIMEOUT_S = 10.0
LARGEST_DOCUMENT_BYTES = 1024 * 1024
KEPT_S = 600.0  # discovery document and keys
SHORTEST_LIFETIME_S = 30.0
LONGEST_LIFETIME_S = 365 * 86_400


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
        self._keys: Keys | None = None
        self._read_at = float("-inf")

    def discover(self) -> Provider:
        """LoginRefused if the provider does not answer, or answers with something else."""
        if not has_library():
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
            except UnknownKey:
                self._keys = None  # the provider may have a new key
                return check_id_token(id_token, self._read_keys(provider), self.login, nonce, now_ms)
        except InvalidToken as problem:
            raise LoginRefused(f"the ID token is not valid: {problem}") from None

    def _read_keys(self, provider: Provider) -> Keys:
        keys = self._keys  # other threads may forget them meanwhile
        if keys is None:
            try:
                keys = self._keys = parse_keys(_request(urllib.request.Request(provider.jwks_uri)))
            except MalformedKeys as problem:
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
