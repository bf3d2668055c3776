"""A channel that refuses everything: handlers build the answers of requests that could not reach the controller."""

# ruff: noqa: ARG002 - the signatures are the interface's

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from odradek.controller.acl_decisions import AclDeletion, refuse_acl_creations, refuse_acl_deletions
from odradek.controller.cluster_controller import BrokerStatus
from odradek.controller.in_sync_decisions import InSyncResult
from odradek.controller.request_writer import DEFAULT_TIMEOUT_MS
from odradek.controller.results import (
    refuse_config_changes,
    refuse_deletions,
    refuse_quota_changes,
    refuse_topics,
)
from odradek.controller.scram_decisions import refuse_scram_alterations
from odradek.controller.token_decisions import refuse_token_request
from odradek.metadata.store import StoreError
from odradek.security.quotas.mutation_quota import UNLIMITED_MUTATIONS, MutationQuota

if TYPE_CHECKING:
    import uuid
    from collections.abc import Mapping, Sequence

    from odradek.controller.config_decisions import ConfigAlteration, ConfigReplacement
    from odradek.controller.feature_decisions import FeatureUpdate
    from odradek.controller.in_sync_decisions import InSyncProposal
    from odradek.controller.leader_election import ElectionKind
    from odradek.controller.offline_replicas import OfflineReplica
    from odradek.controller.reassignment_decisions import NewReplicas
    from odradek.controller.results import ConfigResult, QuotaResult, TopicResult
    from odradek.controller.scram_decisions import ScramAlteration, ScramResult
    from odradek.controller.token_decisions import TokenRequest, TokenResult
    from odradek.controller.topic_decisions import NewPartitions, NewTopic
    from odradek.metadata.client_quotas import QuotaAlteration
    from odradek.protocol.errors import ErrorCode
    from odradek.protocol.refusal import Refusal
    from odradek.security.acls.bindings import AclBinding, AclFilter


class RefusingChannel:
    """Requests whose results have no place for an error raise `StoreError`."""

    def __init__(self, refusal: Refusal) -> None:
        self._refusal = refusal

    def local(self) -> None:
        return None

    async def create_topics(
        self,
        requests: Sequence[NewTopic],
        *,
        validate_only: bool = False,
        mutations: MutationQuota = UNLIMITED_MUTATIONS,
        timeout_ms: float = DEFAULT_TIMEOUT_MS,
    ) -> list[TopicResult]:
        return refuse_topics(requests, self._refusal)

    async def delete_topics(
        self,
        names: Sequence[str] = (),
        topic_ids: Sequence[uuid.UUID] = (),
        *,
        mutations: MutationQuota = UNLIMITED_MUTATIONS,
        timeout_ms: float = DEFAULT_TIMEOUT_MS,
    ) -> list[TopicResult]:
        return refuse_deletions(names, topic_ids, self._refusal)

    async def create_partitions(
        self,
        requests: Sequence[NewPartitions],
        *,
        validate_only: bool = False,
        mutations: MutationQuota = UNLIMITED_MUTATIONS,
        timeout_ms: float = DEFAULT_TIMEOUT_MS,
    ) -> list[TopicResult]:
        return refuse_topics(requests, self._refusal)

    async def alter_configs(
        self, requests: Sequence[ConfigReplacement], *, validate_only: bool = False
    ) -> list[ConfigResult]:
        return refuse_config_changes(requests, self._refusal)

    async def incremental_alter_configs(
        self, requests: Sequence[ConfigAlteration], *, validate_only: bool = False
    ) -> list[ConfigResult]:
        return refuse_config_changes(requests, self._refusal)

    async def alter_client_quotas(
        self, alterations: Sequence[QuotaAlteration], *, validate_only: bool = False
    ) -> list[QuotaResult]:
        return refuse_quota_changes(alterations, self._refusal)

    async def alter_scram_credentials(self, alterations: Sequence[ScramAlteration]) -> list[ScramResult]:
        return refuse_scram_alterations(alterations, self._refusal)

    async def change_delegation_token(self, request: TokenRequest) -> TokenResult:
        return refuse_token_request(request, self._refusal)

    async def create_acls(self, bindings: Sequence[AclBinding]) -> list[Refusal | None]:
        return refuse_acl_creations(bindings, self._refusal)

    async def delete_acls(self, filters: Sequence[AclFilter]) -> list[AclDeletion]:
        return refuse_acl_deletions(filters, self._refusal)

    async def update_features(
        self,
        updates: Sequence[FeatureUpdate],
        *,
        validate_only: bool = False,
        timeout_ms: float = DEFAULT_TIMEOUT_MS,
    ) -> Refusal:
        return self._refusal

    async def allocate_producer_ids(self, count: int) -> int:
        self._raise()

    async def unfence_broker(self, node_id: int, broker_epoch: int) -> BrokerStatus:
        return BrokerStatus(self._refusal.error)

    async def shut_down_broker(self, node_id: int, broker_epoch: int) -> BrokerStatus:
        return BrokerStatus(self._refusal.error)

    async def alter_partitions(
        self, node_id: int, broker_epoch: int, proposals: Sequence[InSyncProposal]
    ) -> list[InSyncResult]:
        return [InSyncResult(self._refusal.error)] * len(proposals)

    async def report_offline_replicas(
        self, node_id: int, broker_epoch: int, replicas: Sequence[OfflineReplica]
    ) -> ErrorCode:
        return self._refusal.error

    async def unregister_broker(self, node_id: int) -> Refusal:
        return self._refusal

    async def elect_leaders(
        self,
        kind: ElectionKind,
        partitions: Sequence[tuple[str, int]] | None,
        *,
        timeout_ms: float = DEFAULT_TIMEOUT_MS,
    ) -> Refusal:
        return self._refusal

    async def reassign_partitions(
        self,
        requests: Sequence[NewReplicas],
        *,
        allow_replication_factor_change: bool,
        timeout_ms: float = DEFAULT_TIMEOUT_MS,
    ) -> Refusal:
        return self._refusal

    async def list_reassignments(self, partitions: Mapping[str, Sequence[int]] | None) -> Refusal:
        return self._refusal

    def _raise(self) -> NoReturn:
        raise StoreError(self._refusal.message or self._refusal.error.name)
