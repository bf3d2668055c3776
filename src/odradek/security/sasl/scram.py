"""SCRAM-SHA-256 and SCRAM-SHA-512 (RFC 5802), the server's side. Pure: the server's nonce is passed in.

The exchange of a user who does not exist goes to its end like one with a wrong password, with a salt that stays the
same, so that a client cannot learn which users exist. The client's final message must repeat the whole nonce
(CVE-2024-56128) and the channel binding header of the first message.
"""

from __future__ import annotations

import base64
import hmac
from typing import TYPE_CHECKING, NamedTuple, Protocol

from odradek.security.sasl.outcome import Authenticated, Challenge, Deferred, Failed
from odradek.security.sasl.scram_messages import MalformedScram, parse_client_final, parse_client_first
from odradek.security.scram_credentials import MIN_ITERATIONS

if TYPE_CHECKING:
    from odradek.security.principals import Principal
    from odradek.security.sasl.outcome import Outcome
    from odradek.security.sasl.scram_messages import ClientFirst
    from odradek.security.scram_credentials import ScramCredential, ScramMechanism

WRONG_AUTHORIZATION_ID = "Authentication failed: Client requested an authorization id that is different from username"


class TokenCredential(NamedTuple):
    """A delegation token as a SCRAM credential (KIP-48): the token's id is the user name, its HMAC the password."""

    credential: ScramCredential
    owner: Principal
    expires_ms: int


class ScramSource(Protocol):
    """The source of credentials."""

    def credential(self, mechanism: ScramMechanism, user: str) -> ScramCredential | None: ...

    def token(self, mechanism: ScramMechanism, token_id: str) -> TokenCredential | Deferred | None:
        """Deferred if the credential must be derived, which takes a millisecond."""

    def stand_in(self, mechanism: ScramMechanism, user: str) -> ScramCredential:
        """The credential of a user that does not exist (`security/scram_stand_ins`)."""


class _Pending(NamedTuple):
    """Between the two messages of the client."""

    first: ClientFirst
    server_first: str
    nonce: str
    credential: ScramCredential
    success: Authenticated | None  # None for a user that does not exist


class ScramServer:
    def __init__(self, mechanism: ScramMechanism, source: ScramSource, server_nonce: str) -> None:
        self._mechanism = mechanism
        self._source = source
        self._server_nonce = server_nonce
        self._pending: _Pending | None = None
        self._is_over = False

    def evaluate(self, response: bytes) -> Outcome:
        if self._is_over:
            return Failed("a message after the end of the exchange")
        try:
            outcome = self._begin(response) if self._pending is None else self._finish(self._pending, response)
        except MalformedScram as problem:
            outcome = Failed(str(problem))
        if not isinstance(outcome, (Challenge, Deferred)):
            self._is_over = True
            self._pending = None
        return outcome

    def _begin(self, response: bytes) -> Outcome:
        first = parse_client_first(response)
        if first.authorization_id not in ("", first.user):
            reason = f"user {first.user!r} asked to act as {first.authorization_id!r}"
            return Failed(reason, WRONG_AUTHORIZATION_ID)
        found = self._look_up(first)
        if isinstance(found, Deferred):
            return found
        credential, success = found
        if credential.iterations < MIN_ITERATIONS:
            return Failed(f"user {first.user!r} has a credential of {credential.iterations} iterations: set it again")
        nonce = first.nonce + self._server_nonce
        salt = base64.b64encode(credential.salt).decode()
        server_first = f"r={nonce},s={salt},i={credential.iterations}"
        self._pending = _Pending(first, server_first, nonce, credential, success)
        return Challenge(server_first.encode())

    def _look_up(self, first: ClientFirst) -> tuple[ScramCredential, Authenticated | None] | Deferred:
        stand_in = self._source.stand_in(self._mechanism, first.user)  # always, so that the time is the same
        if first.is_token:
            token = self._source.token(self._mechanism, first.user)
            if isinstance(token, Deferred):
                return token
            if token is not None:
                success = Authenticated(
                    token.owner.name,
                    expires_ms=token.expires_ms,
                    is_token=True,
                    principal_type=token.owner.type,
                )
                return token.credential, success
        else:
            credential = self._source.credential(self._mechanism, first.user)
            if credential is not None:
                return credential, Authenticated(first.user)
        return stand_in, None

    def _finish(self, pending: _Pending, response: bytes) -> Outcome:
        mechanism, credential = self._mechanism, pending.credential
        final = parse_client_final(response)
        if not hmac.compare_digest(final.nonce.encode(), pending.nonce.encode()):
            return Failed("the final message has another nonce than the exchange")
        if final.channel_binding != pending.first.gs2_header.encode():
            return Failed("the final message has another channel binding than the first one")
        signed = f"{pending.first.bare},{pending.server_first},{final.without_proof}".encode()
        signature = mechanism.hmac(credential.stored_key, signed)
        has_right_size = len(final.proof) == mechanism.digest_bytes
        proof = final.proof if has_right_size else bytes(mechanism.digest_bytes)
        client_key = bytes(left ^ right for left, right in zip(signature, proof, strict=True))
        is_right = hmac.compare_digest(mechanism.hash(client_key), credential.stored_key) and has_right_size
        verifier = base64.b64encode(mechanism.hmac(credential.server_key, signed))
        if pending.success is None:
            kind = "delegation token" if pending.first.is_token else "user"
            return Failed(f"unknown {kind} {pending.first.user!r}")
        if not is_right:
            return Failed(f"wrong password of user {pending.first.user!r}")
        success = pending.success
        return Authenticated(
            success.user, b"v=" + verifier, success.expires_ms, success.is_token, success.principal_type
        )
