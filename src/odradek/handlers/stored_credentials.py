"""SCRAM credentials and delegation tokens of the cluster's metadata, for the exchanges of this broker.

The credential of a token is derived with thousands of hashes. A few worker threads do that, and the newest results are
kept, so that logins with tokens hold up neither the event loop nor the other work of the workers.
"""

from __future__ import annotations

import asyncio
import functools
from typing import TYPE_CHECKING

from odradek.metadata.users import ScramKey
from odradek.security.delegation_tokens import token_credential
from odradek.security.sasl.outcome import Deferred
from odradek.security.sasl.scram import TokenCredential
from odradek.security.scram_stand_ins import shapes_of, stand_in_credential

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.host.host import Host
    from odradek.metadata.cache import MetadataCache
    from odradek.security.scram_credentials import ScramCredential, ScramMechanism
    from odradek.security.scram_stand_ins import CredentialShape

MOST_KEPT = 1024
MOST_DERIVATIONS = 2
"""At the same time. Further ones wait; a connection has one at a time, so that they are bounded."""


class StoredCredentials:
    def __init__(self, metadata: MetadataCache, host: Host) -> None:
        self._metadata = metadata
        self._host = host
        self._own_key = b""  # while the cluster has no users
        self._shapes: dict[ScramMechanism, tuple[CredentialShape, ...]] = {}
        self._shapes_are_of: Mapping[ScramKey, ScramCredential] | None = None
        self._derived: dict[tuple[ScramMechanism, str, str], ScramCredential] = {}
        self._derivations = asyncio.Semaphore(MOST_DERIVATIONS)

    def credential(self, mechanism: ScramMechanism, user: str) -> ScramCredential | None:
        return self._metadata.image.users.scram_credentials.get(ScramKey(user, mechanism))

    def token(self, mechanism: ScramMechanism, token_id: str) -> TokenCredential | Deferred | None:
        """None for a token that has expired or does not exist, and if this broker has no secret for tokens."""
        secret = self._metadata.broker_config.delegation_token_secret_key
        token = self._metadata.image.users.delegation_tokens.get(token_id)
        if not secret or token is None or token.is_expired(self._host.clock.now_ms()):
            return None
        credential = self._derived.get((mechanism, secret, token_id))
        if credential is None:
            return Deferred(functools.partial(self._derive, mechanism, secret, token_id))
        return TokenCredential(credential, token.owner, token.expires_ms)

    async def _derive(self, mechanism: ScramMechanism, secret: str, token_id: str) -> None:
        async with self._derivations:
            if (mechanism, secret, token_id) in self._derived:
                return
            credential = await self._host.workers.run(token_credential, mechanism, secret, token_id)
        if len(self._derived) >= MOST_KEPT:
            del self._derived[next(iter(self._derived))]
        self._derived[mechanism, secret, token_id] = credential

    def stand_in(self, mechanism: ScramMechanism, user: str) -> ScramCredential:
        users = self._metadata.image.users
        if not self._own_key:
            self._own_key = self._host.entropy.nonce().encode()
        if self._shapes_are_of is not users.scram_credentials:
            self._shapes_are_of, self._shapes = users.scram_credentials, {}
        shapes = self._shapes.get(mechanism)
        if shapes is None:
            shapes = self._shapes[mechanism] = shapes_of(
                credential for key, credential in users.scram_credentials.items() if key.mechanism is mechanism
            )
        return stand_in_credential(mechanism, users.stand_in_key or self._own_key, user, shapes)
