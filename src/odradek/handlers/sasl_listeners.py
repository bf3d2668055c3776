"""The SASL mechanisms of each listener, with the users, tokens and keys that they check against.

Settings are read when an exchange begins, so that changes at run time apply to the next one.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from odradek.configuration.sasl_listeners import OAUTHBEARER, PLAIN
from odradek.handlers.issuer_keys import SHORTEST_INTERVAL_MS, IssuerKeys
from odradek.handlers.stored_credentials import StoredCredentials
from odradek.replica.periodic_tasks import SingleTasks
from odradek.security.sasl.json_web_tokens import TokenRules, UnknownKey, validate_token
from odradek.security.sasl.oauthbearer import OAuthBearerServer
from odradek.security.sasl.plain import PlainServer
from odradek.security.sasl.scram import ScramServer
from odradek.security.scram_credentials import MECHANISMS_BY_NAME

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odradek.configuration.broker_configs import BrokerConfig
    from odradek.configuration.sasl_listeners import OAuthSettings, SaslListener
    from odradek.host.host import Host
    from odradek.metadata.cache import MetadataCache
    from odradek.security.sasl.json_web_tokens import ValidToken
    from odradek.security.sasl.outcome import Mechanism

ROUND_MS = 1000.0


class SaslListeners:
    """The SASL mechanisms of all listeners. As a task of housekeeping, it reads the keys of token issuers again."""

    name = "keys of token issuers"

    def __init__(self, metadata: MetadataCache, host: Host) -> None:
        self._metadata = metadata
        self._host = host
        self._keys = IssuerKeys(host)
        self._reading = SingleTasks()
        self._credentials = StoredCredentials(metadata, host)

    def mechanisms(self, listener: str) -> ListenerMechanisms:
        return ListenerMechanisms(self, listener)

    def settings(self, listener: str) -> SaslListener:
        return self._metadata.broker_config.sasl_listeners[listener]

    def begin(self, listener: str, mechanism: str) -> Mechanism:
        settings = self.settings(listener)
        if mechanism == PLAIN:
            return PlainServer(settings.passwords)
        if mechanism == OAUTHBEARER and settings.oauth is not None:
            return OAuthBearerServer(functools.partial(self._validate, settings.oauth))
        return ScramServer(MECHANISMS_BY_NAME[mechanism], self._credentials, self._host.entropy.nonce())

    async def load_keys(self) -> None:
        for oauth in self._oauth_settings():
            await self._keys.read(oauth.jwks_url)

    def interval_ms(self, config: BrokerConfig) -> float:  # noqa: ARG002 - each address has an interval of its own
        return ROUND_MS

    async def run(self, now_ms: int) -> None:  # noqa: ARG002 - the interval is measured by the monotonic clock
        for oauth in self._oauth_settings():
            if self._keys.is_due(oauth.jwks_url, max(oauth.refresh_ms, ROUND_MS)):
                self._read_keys(oauth.jwks_url)

    async def stop(self) -> None:
        await self._reading.settle()

    def _oauth_settings(self) -> list[OAuthSettings]:
        listeners = self._metadata.broker_config.sasl_listeners.values()
        return [listener.oauth for listener in listeners if listener.oauth is not None]

    def _read_keys(self, url: str) -> None:
        self._reading.begin(url, lambda: self._keys.read(url), self.name)

    def _validate(self, oauth: OAuthSettings, token: str) -> ValidToken:
        rules = TokenRules(oauth.audiences, oauth.issuer, oauth.clock_skew_s, oauth.scope_claim, oauth.subject_claim)
        try:
            return validate_token(token, self._keys.find(oauth.jwks_url), rules, self._host.clock.now_ms())
        except UnknownKey:
            if self._keys.is_due(oauth.jwks_url, SHORTEST_INTERVAL_MS):
                self._read_keys(oauth.jwks_url)
            raise


class ListenerMechanisms:
    """What the authentication of a connection needs of its listener."""

    __slots__ = ("_listener", "_listeners")

    def __init__(self, listeners: SaslListeners, listener: str) -> None:
        self._listeners = listeners
        self._listener = listener

    @property
    def names(self) -> Sequence[str]:
        return self._listeners.settings(self._listener).mechanisms

    def begin(self, name: str) -> Mechanism:
        return self._listeners.begin(self._listener, name)

    def longest_session_ms(self, name: str) -> int:
        return self._listeners.settings(self._listener).longest_session_ms.get(name, 0)
