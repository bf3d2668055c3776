"""Removes expired delegation tokens at intervals, on the broker whose controller may decide."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.controller.decisions.delegation_tokens import ExpiredTokenRemoval
from odradek.controller.requests import ChangeDelegationToken

if TYPE_CHECKING:
    from odradek.configuration.broker_configs import BrokerConfig
    from odradek.controller.channel import ControllerChannel
    from odradek.metadata.cache import MetadataCache


class ExpiredTokens:
    """A periodic task of housekeeping."""

    name = "removal of expired delegation tokens"

    def __init__(self, channel: ControllerChannel, metadata: MetadataCache) -> None:
        self._channel = channel
        self._metadata = metadata

    def interval_ms(self, config: BrokerConfig) -> float:
        return config.delegation_token_expiry_check_interval_ms

    async def run(self, now_ms: int) -> None:
        local = self._channel.local()
        tokens = self._metadata.image.users.delegation_tokens.values()
        if local is not None and any(token.is_expired(now_ms) for token in tokens):
            await local.ask(ChangeDelegationToken(ExpiredTokenRemoval(now_ms)))

    async def stop(self) -> None:
        pass  # a removal is a commit, which the controller finishes
