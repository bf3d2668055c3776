"""One broker's side of its life in a cluster: it registers, asks to be unfenced, proposes in-sync sets, shuts down."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from odradek.protocol.errors import ErrorCode
from odradek.protocol.sentinels import NO_BROKER_EPOCH

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odradek.controller.channel import ControllerChannel
    from odradek.controller.in_sync_decisions import InSyncProposal, InSyncResult
    from odradek.metadata.entities import BrokerImage


class StaleBrokerEpoch(Exception):
    """The broker has another registration, or none: it must register again before it can serve."""


class BrokerSession:
    """Owner of the broker's epoch, which every request to the controller carries."""

    def __init__(self, channel: ControllerChannel, node_id: int) -> None:
        self._channel = channel
        self._node_id = node_id
        self.broker_epoch = NO_BROKER_EPOCH

    async def register(self, broker: BrokerImage, previous_broker_epoch: int) -> int:
        """The broker epoch of the new registration, which is fenced. `previous_broker_epoch` is that of the last
        registration if no record can have been lost since, otherwise −1."""
        fenced = replace(broker, is_fenced=True, is_shutting_down=False)
        self.broker_epoch = await self._channel.register_broker(fenced, previous_broker_epoch)
        return self.broker_epoch

    async def unfence(self, applied_version: int) -> bool:
        """Whether the broker is unfenced: the controller requires that it has applied its own registration."""
        status = await self._channel.unfence_broker(self._node_id, self.broker_epoch, applied_version)
        self._check(status.error)
        return not status.is_fenced

    async def shut_down(self) -> bool:
        """Give what this broker leads to others. Whether it may stop; otherwise ask again."""
        status = await self._channel.shut_down_broker(self._node_id, self.broker_epoch)
        self._check(status.error)
        return status.may_stop

    async def propose(self, proposals: Sequence[InSyncProposal]) -> list[InSyncResult]:
        """The controller's results, in the order of the proposals."""
        return await self._channel.alter_partitions(self._node_id, self.broker_epoch, proposals)

    def _check(self, error: ErrorCode) -> None:
        if error is ErrorCode.STALE_BROKER_EPOCH:
            raise StaleBrokerEpoch(f"broker {self._node_id} is not registered with epoch {self.broker_epoch}")
