"""The requests that handlers and coordinators may send to the controller: plain values in, plain values out.

They do not depend on where the controller runs. A change of metadata that clients can read is answered once this broker
has applied it, so that a client which asks the same broker next sees it. Producer ids, in-sync sets and the states of
brokers are answered once they are committed: a broker follows them by their epochs. A change that has not got its turn
within `timeout_ms` is not made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

from odradek.controller.reassignment_decisions import list_reassignments
from odradek.controller.request_writer import DEFAULT_TIMEOUT_MS
from odradek.security.quotas.mutation_quota import UNLIMITED_MUTATIONS, MutationQuota

if TYPE_CHECKING:
    import uuid
    from collections.abc import Awaitable, Mapping, Sequence

    from odradek.controller.acl_decisions import AclDeletion
    from odradek.controller.cluster_controller import BrokerStatus
    from odradek.controller.config_decisions import ConfigAlteration, ConfigReplacement
    from odradek.controller.controller import Controller
    from odradek.controller.election_decisions import ElectionResult
    from odradek.controller.feature_decisions import FeatureUpdate
    from odradek.controller.in_sync_decisions import InSyncProposal, InSyncResult
    from odradek.controller.leader_election import ElectionKind
    from odradek.controller.metadata_writer import Decided
    from odradek.controller.offline_replicas import OfflineReplica
    from odradek.controller.reassignment_decisions import NewReplicas, ReassignmentResult
    from odradek.controller.results import ConfigResult, QuotaResult, TopicResult
    from odradek.controller.scram_decisions import ScramAlteration, ScramResult
    from odradek.controller.token_decisions import TokenRequest, TokenResult
    from odradek.controller.topic_decisions import NewPartitions, NewTopic
    from odradek.metadata.cache import MetadataCache
    from odradek.metadata.client_quotas import QuotaAlteration
    from odradek.metadata.entities import BrokerImage, PartitionImage
    from odradek.protocol.errors import ErrorCode
    from odradek.protocol.refusal import Refusal
    from odradek.security.acls.bindings import AclBinding, AclFilter

T = TypeVar("T")


class ControllerChannel(Protocol):
    def local(self) -> ControllerChannel | None:
        """A channel to the controller, if it is in this process and may decide."""

    async def create_topics(
        self,
        requests: Sequence[NewTopic],
        *,
        validate_only: bool = False,
        mutations: MutationQuota = UNLIMITED_MUTATIONS,
        timeout_ms: float = DEFAULT_TIMEOUT_MS,
    ) -> list[TopicResult]: ...

    async def delete_topics(
        self,
        names: Sequence[str] = (),
        topic_ids: Sequence[uuid.UUID] = (),
        *,
        mutations: MutationQuota = UNLIMITED_MUTATIONS,
        timeout_ms: float = DEFAULT_TIMEOUT_MS,
    ) -> list[TopicResult]: ...

    async def create_partitions(
        self,
        requests: Sequence[NewPartitions],
        *,
        validate_only: bool = False,
        mutations: MutationQuota = UNLIMITED_MUTATIONS,
        timeout_ms: float = DEFAULT_TIMEOUT_MS,
    ) -> list[TopicResult]: ...

    async def alter_configs(
        self, requests: Sequence[ConfigReplacement], *, validate_only: bool = False
    ) -> list[ConfigResult]: ...

    async def incremental_alter_configs(
        self, requests: Sequence[ConfigAlteration], *, validate_only: bool = False
    ) -> list[ConfigResult]: ...

    async def alter_client_quotas(
        self, alterations: Sequence[QuotaAlteration], *, validate_only: bool = False
    ) -> list[QuotaResult]: ...

    async def alter_scram_credentials(self, alterations: Sequence[ScramAlteration]) -> list[ScramResult]: ...

    async def change_delegation_token(self, request: TokenRequest) -> TokenResult: ...

    async def create_acls(self, bindings: Sequence[AclBinding]) -> list[Refusal | None]: ...

    async def delete_acls(self, filters: Sequence[AclFilter]) -> list[AclDeletion]: ...

    async def update_features(
        self,
        updates: Sequence[FeatureUpdate],
        *,
        validate_only: bool = False,
        timeout_ms: float = DEFAULT_TIMEOUT_MS,
    ) -> Refusal | None: ...

    async def allocate_producer_ids(self, count: int) -> int:
        """The first of `count` ids that are never allocated again."""

    async def unfence_broker(self, node_id: int, broker_epoch: int) -> BrokerStatus: ...

    async def shut_down_broker(self, node_id: int, broker_epoch: int) -> BrokerStatus: ...

    async def alter_partitions(
        self, node_id: int, broker_epoch: int, proposals: Sequence[InSyncProposal]
    ) -> list[InSyncResult]:
        """The results in the order of the proposals, once they are committed."""

    async def report_offline_replicas(
        self, node_id: int, broker_epoch: int, replicas: Sequence[OfflineReplica]
    ) -> ErrorCode:
        """Replicas of a broker on log directories that failed."""

    async def unregister_broker(self, node_id: int) -> Refusal | None: ...

    async def elect_leaders(
        self,
        kind: ElectionKind,
        partitions: Sequence[tuple[str, int]] | None,
        *,
        timeout_ms: float = DEFAULT_TIMEOUT_MS,
    ) -> list[ElectionResult] | Refusal:
        """None stands for all partitions."""

    async def reassign_partitions(
        self,
        requests: Sequence[NewReplicas],
        *,
        allow_replication_factor_change: bool,
        timeout_ms: float = DEFAULT_TIMEOUT_MS,
    ) -> list[ReassignmentResult] | Refusal: ...

    async def list_reassignments(
        self, partitions: Mapping[str, Sequence[int]] | None
    ) -> dict[str, list[PartitionImage]] | Refusal:
        """The partitions of running reassignments by topic. None stands for all topics."""


class LocalControllerChannel:
    """To a controller in this process."""

    def __init__(self, controller: Controller, cache: MetadataCache) -> None:
        self._controller = controller
        self._cache = cache

    def local(self) -> ControllerChannel | None:
        return self if self._controller.is_active else None

    async def create_topics(
        self,
        requests: Sequence[NewTopic],
        *,
        validate_only: bool = False,
        mutations: MutationQuota = UNLIMITED_MUTATIONS,
        timeout_ms: float = DEFAULT_TIMEOUT_MS,
    ) -> list[TopicResult]:
        return await self._applied(
            self._controller.create_topics(
                requests, validate_only=validate_only, mutations=mutations, timeout_ms=timeout_ms
            )
        )

    async def delete_topics(
        self,
        names: Sequence[str] = (),
        topic_ids: Sequence[uuid.UUID] = (),
        *,
        mutations: MutationQuota = UNLIMITED_MUTATIONS,
        timeout_ms: float = DEFAULT_TIMEOUT_MS,
    ) -> list[TopicResult]:
        return await self._applied(
            self._controller.delete_topics(names, topic_ids, mutations=mutations, timeout_ms=timeout_ms)
        )

    async def create_partitions(
        self,
        requests: Sequence[NewPartitions],
        *,
        validate_only: bool = False,
        mutations: MutationQuota = UNLIMITED_MUTATIONS,
        timeout_ms: float = DEFAULT_TIMEOUT_MS,
    ) -> list[TopicResult]:
        return await self._applied(
            self._controller.create_partitions(
                requests, validate_only=validate_only, mutations=mutations, timeout_ms=timeout_ms
            )
        )

    async def alter_configs(
        self, requests: Sequence[ConfigReplacement], *, validate_only: bool = False
    ) -> list[ConfigResult]:
        return await self._applied(self._controller.alter_configs(requests, validate_only=validate_only))

    async def incremental_alter_configs(
        self, requests: Sequence[ConfigAlteration], *, validate_only: bool = False
    ) -> list[ConfigResult]:
        return await self._applied(self._controller.incremental_alter_configs(requests, validate_only=validate_only))

    async def alter_client_quotas(
        self, alterations: Sequence[QuotaAlteration], *, validate_only: bool = False
    ) -> list[QuotaResult]:
        return await self._applied(self._controller.alter_client_quotas(alterations, validate_only=validate_only))

    async def alter_scram_credentials(self, alterations: Sequence[ScramAlteration]) -> list[ScramResult]:
        return await self._applied(self._controller.alter_scram_credentials(alterations))

    async def change_delegation_token(self, request: TokenRequest) -> TokenResult:
        return await self._applied(self._controller.change_delegation_token(request))

    async def create_acls(self, bindings: Sequence[AclBinding]) -> list[Refusal | None]:
        return await self._applied(self._controller.create_acls(bindings))

    async def delete_acls(self, filters: Sequence[AclFilter]) -> list[AclDeletion]:
        return await self._applied(self._controller.delete_acls(filters))

    async def update_features(
        self,
        updates: Sequence[FeatureUpdate],
        *,
        validate_only: bool = False,
        timeout_ms: float = DEFAULT_TIMEOUT_MS,
    ) -> Refusal | None:
        return await self._applied(
            self._controller.update_features(updates, validate_only=validate_only, timeout_ms=timeout_ms)
        )

    async def allocate_producer_ids(self, count: int) -> int:
        first_id, _ = await self._controller.allocate_producer_ids(count)
        return first_id

    async def register_broker(self, broker: BrokerImage) -> int:
        """The broker epoch of the only broker of its cluster; others register in ZooKeeper."""
        return await self._applied(self._controller.cluster.register_broker(broker))

    async def unfence_broker(self, node_id: int, broker_epoch: int) -> BrokerStatus:
        status, _ = await self._controller.cluster.unfence_broker(node_id, broker_epoch)
        return status

    async def shut_down_broker(self, node_id: int, broker_epoch: int) -> BrokerStatus:
        status, _ = await self._controller.cluster.shut_down_broker(node_id, broker_epoch)
        return status

    async def alter_partitions(
        self, node_id: int, broker_epoch: int, proposals: Sequence[InSyncProposal]
    ) -> list[InSyncResult]:
        return await self._controller.cluster.alter_partitions(node_id, broker_epoch, proposals)

    async def report_offline_replicas(
        self, node_id: int, broker_epoch: int, replicas: Sequence[OfflineReplica]
    ) -> ErrorCode:
        error, _ = await self._controller.cluster.report_offline_replicas(node_id, broker_epoch, replicas)
        return error

    async def unregister_broker(self, node_id: int) -> Refusal | None:
        return await self._applied(self._controller.cluster.unregister_broker(node_id))

    async def elect_leaders(
        self,
        kind: ElectionKind,
        partitions: Sequence[tuple[str, int]] | None,
        *,
        timeout_ms: float = DEFAULT_TIMEOUT_MS,
    ) -> list[ElectionResult] | Refusal:
        return await self._applied(self._controller.cluster.elect_leaders(kind, partitions, timeout_ms=timeout_ms))

    async def reassign_partitions(
        self,
        requests: Sequence[NewReplicas],
        *,
        allow_replication_factor_change: bool,
        timeout_ms: float = DEFAULT_TIMEOUT_MS,
    ) -> list[ReassignmentResult] | Refusal:
        return await self._applied(
            self._controller.cluster.reassign_partitions(
                requests, allow_replication_factor_change=allow_replication_factor_change, timeout_ms=timeout_ms
            )
        )

    async def list_reassignments(
        self, partitions: Mapping[str, Sequence[int]] | None
    ) -> dict[str, list[PartitionImage]] | Refusal:
        return list_reassignments(self._controller.image, partitions)

    async def _applied(self, decision: Awaitable[Decided[T]]) -> T:
        """Wait for the version of the decision. A refusal waits too, so that its reason, such as a topic that exists,
        is visible on this broker when it is answered."""
        result, version = await decision
        await self._cache.wait_until_applied(version)
        return result
