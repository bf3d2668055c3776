"""The writes of a controller that concern several brokers: broker states, elections, in-sync sets, reassignments.

Decisions are pure (`broker_decisions`, `in_sync_decisions`, `election_decisions`, `reassignment_decisions`). A
change of a broker's state returns when all partitions that depend on it are repaired, which may take several commits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from odradek.controller.broker_decisions import (
    BrokerDecision,
    decide_fencing,
    decide_live_brokers,
    decide_registration,
    decide_shutdown,
    decide_unfencing,
    decide_unregistration,
)
from odradek.controller.election_decisions import ElectionResult, decide_elections, decide_preferred_leaders
from odradek.controller.in_sync_decisions import InSyncResult, decide_in_sync_changes
from odradek.controller.metadata_writer import Decided
from odradek.controller.offline_replicas import decide_offline_replicas
from odradek.controller.partition_repair import decide_repairs
from odradek.controller.reassignment_decisions import ReassignmentResult, decide_reassignments
from odradek.controller.replica_replacement import decide_replacements
from odradek.controller.request_writer import BROKER_REQUEST_TIMEOUT_MS, DEFAULT_TIMEOUT_MS, write_request
from odradek.host.logs import get_logger
from odradek.metadata.store import StoreError
from odradek.protocol.errors import ErrorCode
from odradek.protocol.refusal import Refusal

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from odradek.controller.broker_decisions import LiveBroker
    from odradek.controller.in_sync_decisions import InSyncProposal
    from odradek.controller.leader_election import ElectionKind
    from odradek.controller.metadata_writer import MetadataWriter
    from odradek.controller.offline_replicas import OfflineReplica
    from odradek.controller.reassignment_decisions import NewReplicas
    from odradek.controller.topic_decisions import Cluster
    from odradek.metadata.changes import Change
    from odradek.metadata.entities import BrokerImage

log = get_logger(__name__)


class BrokerStatus(NamedTuple):
    """The state of a broker after its request. `may_stop` when the broker leads nothing and is in no in-sync set."""

    error: ErrorCode
    is_fenced: bool = True
    may_stop: bool = False


class ClusterController:
    """Methods raise `ControllerFenced` when another controller has taken over, unless their result can say so."""

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

    async def unfence_broker(self, node_id: int, broker_epoch: int) -> Decided[BrokerStatus]:
        """STALE_BROKER_EPOCH when the registration does not exist any more, NOT_CONTROLLER before it is known."""
        if self._registered is None:
            return Decided(BrokerStatus(ErrorCode.NOT_CONTROLLER), self._writer.image.version)
        if self._registered.get(node_id) != broker_epoch:
            return Decided(BrokerStatus(ErrorCode.STALE_BROKER_EPOCH), self._writer.image.version)
        if self.is_unreachable(node_id, broker_epoch):
            return Decided(BrokerStatus(ErrorCode.NONE), self._writer.image.version)
        error, version = await self._write_broker(lambda cluster: decide_unfencing(node_id, broker_epoch, cluster))
        return Decided(self._status(node_id, error), version)

    async def shut_down_broker(self, node_id: int, broker_epoch: int) -> Decided[BrokerStatus]:
        error, version = await self._write_broker(lambda cluster: decide_shutdown(node_id, broker_epoch, cluster))
        return Decided(self._status(node_id, error), version)

    async def unregister_broker(self, node_id: int) -> Decided[Refusal | None]:
        def decide(node_id: int, cluster: Cluster) -> tuple[Refusal | None, list[Change]]:
            decision = decide_unregistration(node_id, cluster)
            return (decision, []) if isinstance(decision, Refusal) else (None, decision.changes)

        decided = await write_request(self._writer, decide, node_id, _take_refusal)
        if decided.result is not None:
            return decided
        try:
            return Decided(None, await self.repair())
        except StoreError as problem:  # the broker is unregistered, so that another attempt would be refused
            log.warning("partitions of an unregistered broker wait for a later repair", reason=problem)
            return decided

    async def _write_broker(self, decide: Callable[[Cluster], BrokerDecision]) -> Decided[ErrorCode]:
        def decide_broker(cluster: Cluster) -> tuple[BrokerDecision, list[Change]]:
            decision = decide(cluster)
            return decision, decision.changes

        decision, version = await self._writer.write(decide_broker)
        return Decided(decision.error, version if decision.is_complete else await self.repair())

    def _status(self, node_id: int, error: ErrorCode) -> BrokerStatus:
        broker = self._writer.image.brokers.get(node_id)
        if error is not ErrorCode.NONE or broker is None:
            return BrokerStatus(error)
        return BrokerStatus(error, is_fenced=broker.is_fenced, may_stop=not broker.is_active)

    # Partitions

    async def alter_partitions(
        self, node_id: int, broker_epoch: int, proposals: Sequence[InSyncProposal]
    ) -> list[InSyncResult]:
        """The results in the order of the proposals, once they are committed."""

        def decide(
            proposals: Sequence[InSyncProposal], cluster: Cluster
        ) -> tuple[list[InSyncResult] | ErrorCode, list[Change]]:
            return decide_in_sync_changes(node_id, broker_epoch, proposals, cluster)

        decided = await write_request(
            self._writer,
            decide,
            proposals,
            lambda _, refusal: refusal.error,
            timeout_ms=BROKER_REQUEST_TIMEOUT_MS,
            is_limited=False,
        )
        result = decided.result
        return [InSyncResult(result)] * len(proposals) if isinstance(result, ErrorCode) else result

    async def report_offline_replicas(
        self, node_id: int, broker_epoch: int, replicas: Sequence[OfflineReplica]
    ) -> Decided[ErrorCode]:
        """Let other replicas lead in place of these, which are on failed log directories."""
        return await self._writer.write(
            lambda cluster: decide_offline_replicas(node_id, broker_epoch, replicas, cluster)
        )

    async def elect_leaders(
        self,
        kind: ElectionKind,
        partitions: Sequence[tuple[str, int]] | None,
        *,
        timeout_ms: float = DEFAULT_TIMEOUT_MS,
    ) -> Decided[list[ElectionResult] | Refusal]:
        """None stands for all partitions."""

        def decide(
            partitions: Sequence[tuple[str, int]] | None, cluster: Cluster
        ) -> tuple[list[ElectionResult] | Refusal, list[Change]]:
            return decide_elections(kind, partitions, cluster)

        return await write_request(self._writer, decide, partitions, _take_refusal, timeout_ms=timeout_ms)

    async def reassign_partitions(
        self,
        requests: Sequence[NewReplicas],
        *,
        allow_replication_factor_change: bool,
        timeout_ms: float = DEFAULT_TIMEOUT_MS,
    ) -> Decided[list[ReassignmentResult] | Refusal]:
        def decide(
            requests: Sequence[NewReplicas], cluster: Cluster
        ) -> tuple[list[ReassignmentResult] | Refusal, list[Change]]:
            return decide_reassignments(
                requests, cluster, allow_replication_factor_change=allow_replication_factor_change
            )

        return await write_request(self._writer, decide, requests, _take_refusal, timeout_ms=timeout_ms)

    # Duties without a request

    async def repair(self) -> int:
        """Elect leaders where there are none, and take brokers that cannot serve out of in-sync sets, if necessary in
        several commits. The version from which on nothing is left to repair."""

        def decide(cluster: Cluster) -> tuple[bool, list[Change]]:
            repairs = decide_repairs(cluster.image, cluster.config)
            return repairs.is_complete, repairs.changes

        while True:
            is_complete, version = await self._writer.write(decide)
            if is_complete:
                return version

    async def give_back_leaders(self) -> int:
        """Elect preferred leaders, a bounded number; how many partitions changed."""
        count, _ = await self._writer.write(decide_preferred_leaders)
        return count

    async def replace_replicas(self, absent_brokers: Collection[int]) -> int:
        """Begin reassignments away from these brokers; the number of partitions."""
        count, _ = await self._writer.write(lambda cluster: decide_replacements(absent_brokers, cluster))
        return count


def _take_refusal(_request: object, refusal: Refusal) -> Refusal:
    return refusal
