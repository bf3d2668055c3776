"""The controller's writes about brokers, and what it does without a request: repairs, preferred leaders, replacements.

Decisions are pure (`brokers`, `partition_repair` and `replica_replacement` of `controller/decisions`). A change of a
broker's state returns when all partitions that depend on it are repaired, which may take several commits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.controller import requests
from odradek.controller.decisions import offline_replicas, partition_repair, replica_replacement, requested_elections
from odradek.controller.decisions.brokers import (
    BrokerDecision,
    decide_fencing,
    decide_live_brokers,
    decide_registration,
    decide_shutdown,
    decide_unfencing,
)
from odradek.controller.metadata_writer import Decided
from odradek.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from odradek.controller.decisions.brokers import LiveBroker
    from odradek.controller.decisions.topics import Cluster
    from odradek.controller.metadata_writer import MetadataWriter
    from odradek.controller.requests import BrokerStatus, ReportOfflineReplicas, ShutDownBroker, UnfenceBroker
    from odradek.metadata.changes import Change
    from odradek.metadata.entities import BrokerImage


class ClusterController:
    """Methods raise `ControllerFenced` when another controller has taken over."""

    def __init__(self, writer: MetadataWriter) -> None:
        self._writer = writer
        self._registered: dict[int, int] | None = None  # epochs by broker, of the registrations, once they were read
        self.is_unreachable: Callable[[int, int], bool] = lambda _node_id, _broker_epoch: False
        """Whether the controller does not reach a broker, by id and epoch, which stays fenced until it does."""

    # Brokers

    async def register_broker(self, broker: BrokerImage) -> Decided[int]:
        """The broker epoch of the only broker of its cluster."""
        return await self._writer.write(lambda cluster: decide_registration(broker, cluster))

    async def follow_live_brokers(self, live: Mapping[int, LiveBroker]) -> None:
        """Commit which brokers are registered, elect other leaders for those that are not, and finish what an earlier
        controller has left."""
        self._registered = {node_id: each.broker.broker_epoch for node_id, each in live.items()}
        self._writer.known_levels = {node_id: each.metadata_level for node_id, each in live.items()}
        await self._write_broker(lambda cluster: decide_live_brokers(live, cluster))

    async def fence_brokers(self, registrations: Mapping[int, int]) -> None:
        """Fence brokers by id and epoch, before their registrations end, and elect other leaders. They stay fenced
        until they ask to be unfenced or register again."""
        await self._write_broker(lambda cluster: decide_fencing(registrations, cluster))

    async def unfence_broker(self, request: UnfenceBroker) -> Decided[BrokerStatus]:
        """STALE_BROKER_EPOCH when the registration does not exist any more, NOT_CONTROLLER before it is known."""
        node_id, broker_epoch = request.node_id, request.broker_epoch
        if self._registered is None:
            return Decided(requests.BrokerStatus(ErrorCode.NOT_CONTROLLER), self._writer.image.version)
        if self._registered.get(node_id) != broker_epoch:
            return Decided(requests.BrokerStatus(ErrorCode.STALE_BROKER_EPOCH), self._writer.image.version)
        if self.is_unreachable(node_id, broker_epoch):
            return Decided(requests.BrokerStatus(ErrorCode.NONE), self._writer.image.version)
        error, version = await self._write_broker(lambda cluster: decide_unfencing(node_id, broker_epoch, cluster))
        return Decided(self._status(node_id, error), version)

    async def shut_down_broker(self, request: ShutDownBroker) -> Decided[BrokerStatus]:
        error, version = await self._write_broker(
            lambda cluster: decide_shutdown(request.node_id, request.broker_epoch, cluster)
        )
        return Decided(self._status(request.node_id, error), version)

    async def report_offline_replicas(self, request: ReportOfflineReplicas) -> Decided[ErrorCode]:
        return await self._writer.write(
            lambda cluster: offline_replicas.decide_offline_replicas(
                request.node_id, request.broker_epoch, request.replicas, cluster
            )
        )

    async def _write_broker(self, decide: Callable[[Cluster], BrokerDecision]) -> Decided[ErrorCode]:
        def decide_broker(cluster: Cluster) -> tuple[BrokerDecision, list[Change]]:
            decision = decide(cluster)
            return decision, decision.changes

        decision, version = await self._writer.write(decide_broker)
        return Decided(decision.error, version if decision.is_complete else await self.repair())

    def _status(self, node_id: int, error: ErrorCode) -> BrokerStatus:
        broker = self._writer.image.brokers.get(node_id)
        if error is not ErrorCode.NONE or broker is None:
            return requests.BrokerStatus(error)
        return requests.BrokerStatus(error, is_fenced=broker.is_fenced, may_stop=not broker.is_active)

    # Duties without a request

    async def repair(self) -> int:
        """Elect leaders where there are none, and take brokers that cannot serve out of in-sync sets, if necessary in
        several commits. The version from which on nothing is left to repair."""

        def decide(cluster: Cluster) -> tuple[bool, list[Change]]:
            repairs = partition_repair.decide_repairs(cluster.image, cluster.config)
            return repairs.is_complete, repairs.changes

        while True:
            is_complete, version = await self._writer.write(decide)
            if is_complete:
                return version

    async def give_back_leaders(self) -> int:
        """Elect preferred leaders, a bounded number; how many partitions changed."""
        count, _ = await self._writer.write(requested_elections.decide_preferred_leaders)
        return count

    async def replace_replicas(self, absent_brokers: Collection[int]) -> int:
        """Begin reassignments away from these brokers; the number of partitions."""
        count, _ = await self._writer.write(
            lambda cluster: replica_replacement.decide_replacements(absent_brokers, cluster)
        )
        return count
