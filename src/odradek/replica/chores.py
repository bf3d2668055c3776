"""Regular work on the logs of a broker that comes with a feature of its own, done in housekeeping's rounds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from odradek.configuration.broker_configs import BrokerConfig


class Chore(Protocol):
    name: str

    def interval_ms(self, config: BrokerConfig) -> float:
        """Asked before every round: it may change while the broker runs."""

    async def run(self, now_ms: int) -> None:
        """Part of a round, which waits for it: what takes long belongs into a task of the chore's own.
        `now_ms` is the time that the broker believes (see `believed_time`)."""

    async def stop(self) -> None:
        """The broker ends: nothing of the chore touches a log after this."""
