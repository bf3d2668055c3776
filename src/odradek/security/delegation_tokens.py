"""Delegation tokens (KIP-48): a client that cannot keep a password authenticates as the owner of a token.

A token's HMAC is its password. It is derived from the token's id and the secret of the cluster, so it is not stored.
Pure.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import TYPE_CHECKING

from odradek.conventions.dataclass import dataclass
from odradek.security.scram_credentials import MIN_ITERATIONS, SALT_BYTES, credential_from_password

if TYPE_CHECKING:
    from collections.abc import Mapping, Set

    from odradek.security.principals import Principal
    from odradek.security.scram_credentials import ScramCredential, ScramMechanism


@dataclass(frozen=True, slots=True)
class DelegationToken:
    """Times are of the wall clock. A token can be renewed until `max_ms`."""

    token_id: str
    owner: Principal
    requester: Principal
    renewers: tuple[Principal, ...]
    issued_ms: int
    expires_ms: int
    max_ms: int

    def is_expired(self, now_ms: int) -> bool:
        return self.expires_ms < now_ms or self.max_ms < now_ms

    def may_be_renewed_by(self, principal: Principal) -> bool:
        return principal == self.owner or principal in self.renewers

    def concerns(self, principals: Set[Principal]) -> bool:
        """Whether one of them owns the token, has requested it for its owner (KIP-373), or may renew it."""
        return self.owner in principals or self.requester in principals or not principals.isdisjoint(self.renewers)


def token_hmac(secret: str, token_id: str) -> bytes:
    return hmac.digest(secret.encode(), token_id.encode(), "sha512")


class TokenHmacs:
    """The ids of tokens by their HMACs, which are derived once for each token. A memo: it has no state of its own."""

    __slots__ = ("_digests", "_ids", "_secret", "_tokens")

    def __init__(self) -> None:
        self._secret: str | None = None
        self._tokens: Mapping[str, DelegationToken] | None = None
        self._ids: dict[bytes, str] = {}  # by a digest of the HMAC: comparing digests reveals nothing of it
        self._digests: dict[str, bytes] = {}

    def find(self, tokens: Mapping[str, DelegationToken], secret: str, given: bytes) -> DelegationToken | None:
        """The token with this HMAC."""
        if secret != self._secret:
            self._secret, self._tokens = secret, None
            self._ids, self._digests = {}, {}
        if self._tokens is not tokens:
            self._follow(tokens, secret)
        return tokens.get(self._ids.get(_digest(given), ""))

    def _follow(self, tokens: Mapping[str, DelegationToken], secret: str) -> None:
        for token_id in self._digests.keys() - tokens.keys():
            del self._ids[self._digests.pop(token_id)]
        for token_id in tokens.keys() - self._digests.keys():
            digest = self._digests[token_id] = _digest(token_hmac(secret, token_id))
            self._ids[digest] = token_id
        self._tokens = tokens


def _digest(given: bytes) -> bytes:
    return hashlib.sha256(given).digest()


def token_credential(mechanism: ScramMechanism, secret: str, token_id: str) -> ScramCredential:
    """The SCRAM credential whose password is the HMAC in base64. Takes a millisecond."""
    password = base64.b64encode(token_hmac(secret, token_id)).decode()
    salt = hmac.digest(secret.encode(), b"salt" + token_id.encode(), "sha256")[:SALT_BYTES]
    return credential_from_password(mechanism, password, salt, MIN_ITERATIONS)
