"""One broker's requests to the controller: to be unfenced, to shut down, the in-sync sets that it proposes, and reports
of replicas on failed log directories."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.controller.requests import AlterPartitions, ReportOfflineReplicas, ShutDownBroker, UnfenceBroker
from odradek.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from odradek.controller.channel import ControllerChannel
    from odradek.controller.decisions.in_sync_sets import InSyncProposal, InSyncResult
    from odradek.controller.decisions.offline_replicas import OfflineReplica


class StaleBrokerEpoch(Exception):
    """The broker has another registration, or none that the controller knows."""


class BrokerSession:
    """`broker_epoch` returns the epoch of the broker's present registration, which every request carries."""

    def __init__(self, channel: ControllerChannel, node_id: int, broker_epoch: Callable[[], int]) -> None:
        self._channel = channel
        self._node_id = node_id
        self._broker_epoch = broker_epoch

    async def unfence(self) -> bool:
        """Asks to be unfenced, and returns whether the broker is. Brokers that the controller took for dead do this."""
        status = await self._channel.ask(UnfenceBroker(self._node_id, self._broker_epoch()))
        self._check(status.error)
        return not status.is_fenced

    async def shut_down(self) -> bool:
        """Transfers this broker's leaderships. Returns True when it may stop; call again otherwise."""
        status = await self._channel.ask(ShutDownBroker(self._node_id, self._broker_epoch()))
        self._check(status.error)
        return status.may_stop

    async def propose(self, proposals: Sequence[InSyncProposal]) -> list[InSyncResult]:
        """The controller's results, in the order of the proposals."""
        return await self._channel.ask(AlterPartitions(self._node_id, self._broker_epoch(), proposals))

    async def report_offline(self, replicas: Sequence[OfflineReplica]) -> None:
        """Lets other brokers lead these partitions, whose replicas here are on failed log directories."""
        self._check(await self._channel.ask(ReportOfflineReplicas(self._node_id, self._broker_epoch(), replicas)))

    def _check(self, error: ErrorCode) -> None:
        if error is ErrorCode.STALE_BROKER_EPOCH:
            raise StaleBrokerEpoch(f"broker {self._node_id} is not registered with epoch {self._broker_epoch()}")
