"""Delegation tokens (KIP-48): a client that cannot keep a password authenticates as the owner of a token.

A token's HMAC is its password. It is derived from the token's id and the secret of the cluster, so it is not stored.
Pure.
"""

from __future__ import annotations

import base64
import functools
import hmac
from dataclasses import dataclass
from typing import TYPE_CHECKING

from odradek.security.scram_credentials import MIN_ITERATIONS, SALT_BYTES, credential_from_password

if TYPE_CHECKING:
    from collections.abc import Iterable

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


def token_hmac(secret: str, token_id: str) -> bytes:
    return hmac.digest(secret.encode(), token_id.encode(), "sha512")


def find_token(tokens: Iterable[DelegationToken], secret: str, given: bytes) -> DelegationToken | None:
    """The token with this HMAC."""
    found = None
    for token in tokens:
        if hmac.compare_digest(token_hmac(secret, token.token_id), given):
            found = token
    return found


@functools.lru_cache(maxsize=1024)
def token_credential(mechanism: ScramMechanism, secret: str, token_id: str) -> ScramCredential:
    """The SCRAM credential whose password is the HMAC in base64. Kept, because it takes a millisecond to compute."""
    password = base64.b64encode(token_hmac(secret, token_id)).decode()
    salt = hmac.digest(secret.encode(), b"salt" + token_id.encode(), "sha256")[:SALT_BYTES]
    return credential_from_password(mechanism, password, salt, MIN_ITERATIONS)
