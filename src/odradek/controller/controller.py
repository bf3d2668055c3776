"""The controller of the cluster: decides about requests on its own image, and commits the changes to the store.

It holds no logs and has no subscribers: every broker, its own included, learns of changes from the store
(`metadata/cache`). Decisions are pure; `metadata_writer` runs them one at a time. Each method returns its result and
the version from which on an image shows the decision.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from odradek.configuration.config_types import ConfigResourceType
from odradek.controller import request_decisions
from odradek.controller.acl_decisions import (
    decide_acl_creations,
    decide_acl_deletions,
    refuse_acl_creations,
    refuse_acl_deletions,
)
from odradek.controller.cluster_controller import ClusterController
from odradek.controller.config_decisions import may_change_setting
from odradek.controller.feature_decisions import decide_feature_updates, decide_one_min_in_sync
from odradek.controller.metadata_writer import MetadataWriter
from odradek.controller.partition_rules import MIN_IN_SYNC
from odradek.controller.request_writer import BROKER_REQUEST_TIMEOUT_MS, DEFAULT_TIMEOUT_MS, write_request
from odradek.controller.results import (
    refuse_config_changes,
    refuse_deletions,
    refuse_quota_changes,
    refuse_topics,
)
from odradek.controller.scram_decisions import decide_scram_alterations, refuse_scram_alterations
from odradek.controller.token_decisions import decide_token_request, refuse_token_request
from odradek.controller.topic_decisions import decide_new_leader_epochs
from odradek.controller.topic_deletion import decide_deletions
from odradek.host.logs import get_logger
from odradek.metadata.changes import ControllerElected
from odradek.metadata.store import StoreError
from odradek.security.quotas.mutation_quota import UNLIMITED_MUTATIONS, MutationQuota

if TYPE_CHECKING:
    import uuid
    from collections.abc import Callable, Sequence

    from odradek.configuration.broker_configs import BrokerConfig
    from odradek.controller.acl_decisions import AclDeletion
    from odradek.controller.config_decisions import ConfigAlteration, ConfigReplacement
    from odradek.controller.feature_decisions import FeatureUpdate
    from odradek.controller.metadata_writer import Decided
    from odradek.controller.results import ConfigResult, QuotaResult, TopicResult
    from odradek.controller.scram_decisions import ScramAlteration, ScramResult
    from odradek.controller.token_decisions import TokenRequest, TokenResult
    from odradek.controller.topic_decisions import Cluster, NewPartitions, NewTopic
    from odradek.host.entropy import Entropy
    from odradek.metadata.changes import Change
    from odradek.metadata.client_quotas import QuotaAlteration
    from odradek.metadata.image import MetadataImage
    from odradek.metadata.store import MetadataStore
    from odradek.protocol.refusal import Refusal
    from odradek.security.acls.bindings import AclBinding, AclFilter

log = get_logger(__name__)

R = TypeVar("R")
T = TypeVar("T")


class Controller:
    def __init__(self, store: MetadataStore, config: BrokerConfig, entropy: Entropy) -> None:
        self._node_id = config.node_id
        self._writer = MetadataWriter(store, config, entropy)
        self.cluster = ClusterController(self._writer)
        """Elections, broker states, in-sync sets and reassignments."""

    @property
    def image(self) -> MetadataImage:
        return self._writer.image

    @property
    def is_active(self) -> bool:
        """Whether this controller may decide: it has claimed its epoch, and no commit of it was fenced."""
        return self._writer.is_active

    async def start(self) -> None:
        """Become the controller of a single broker, and raise the leader epoch of each partition that it leads."""
        await self._writer.claim()
        elected = ControllerElected(self._node_id, self._writer.controller_epoch)

        def decide(cluster: Cluster) -> tuple[None, list[Change]]:
            return None, [
                elected,
                *decide_new_leader_epochs(cluster.image, self._node_id),
                *decide_one_min_in_sync(cluster.image, cluster.config),
            ]

        await self._writer.write(decide)

    async def start_elected(self, controller_epoch: int) -> None:
        """Become the controller of a cluster, with the epoch of the election that this broker has won."""
        self._writer.known_levels = None
        await self._writer.begin(controller_epoch)
        elected = ControllerElected(self._node_id, controller_epoch)
        before = self._default_min_in_sync
        await self._writer.write(
            lambda cluster: (None, [elected, *decide_one_min_in_sync(cluster.image, cluster.config)])
        )
        if self._default_min_in_sync != before:
            log.info(f"the default of {MIN_IN_SYNC} is a setting of the cluster", value=self._default_min_in_sync)

    @property
    def _default_min_in_sync(self) -> str | None:
        return self.image.configs_of(ConfigResourceType.BROKER, "").get(MIN_IN_SYNC)

    async def stop_writing(self) -> None:
        """Finish the writes in progress, and accept no others."""
        await self._writer.stop_writing()

    async def create_topics(
        self,
        requests: Sequence[NewTopic],
        *,
        validate_only: bool = False,
        mutations: MutationQuota = UNLIMITED_MUTATIONS,
        timeout_ms: float = DEFAULT_TIMEOUT_MS,
    ) -> Decided[list[TopicResult]]:
        return await self._decide(
            lambda requests, cluster: request_decisions.decide_topic_creations(requests, cluster, mutations),
            requests,
            refuse_topics,
            validate_only=validate_only,
            timeout_ms=timeout_ms,
            mutations=mutations,
        )

    async def delete_topics(
        self,
        names: Sequence[str] = (),
        topic_ids: Sequence[uuid.UUID] = (),
        *,
        mutations: MutationQuota = UNLIMITED_MUTATIONS,
        timeout_ms: float = DEFAULT_TIMEOUT_MS,
    ) -> Decided[list[TopicResult]]:
        return await self._decide(
            lambda _, cluster: decide_deletions(
                cluster.image, names, topic_ids, mutations, is_enabled=cluster.config.delete_topic_enable
            ),
            None,
            lambda _, refusal: refuse_deletions(names, topic_ids, refusal),
            timeout_ms=timeout_ms,
            mutations=mutations,
        )

    async def create_partitions(
        self,
        requests: Sequence[NewPartitions],
        *,
        validate_only: bool = False,
        mutations: MutationQuota = UNLIMITED_MUTATIONS,
        timeout_ms: float = DEFAULT_TIMEOUT_MS,
    ) -> Decided[list[TopicResult]]:
        return await self._decide(
            lambda requests, cluster: request_decisions.decide_partition_additions(requests, cluster, mutations),
            requests,
            refuse_topics,
            validate_only=validate_only,
            timeout_ms=timeout_ms,
            mutations=mutations,
        )

    async def alter_configs(
        self, requests: Sequence[ConfigReplacement], *, validate_only: bool = False
    ) -> Decided[list[ConfigResult]]:
        return await self._change_configs(requests, validate_only=validate_only)

    async def incremental_alter_configs(
        self, requests: Sequence[ConfigAlteration], *, validate_only: bool = False
    ) -> Decided[list[ConfigResult]]:
        return await self._change_configs(requests, validate_only=validate_only)

    async def _change_configs(
        self, requests: Sequence[ConfigReplacement | ConfigAlteration], *, validate_only: bool
    ) -> Decided[list[ConfigResult]]:
        before = self.image.configs
        decided = await self._decide(
            request_decisions.decide_config_changes, requests, refuse_config_changes, validate_only=validate_only
        )
        if self.image.configs is not before and any(may_change_setting(each, MIN_IN_SYNC) for each in requests):
            return await self._after_repair(decided)
        return decided

    async def update_features(
        self,
        updates: Sequence[FeatureUpdate],
        *,
        validate_only: bool = False,
        timeout_ms: float = DEFAULT_TIMEOUT_MS,
    ) -> Decided[Refusal | None]:
        """All levels change, or none does."""
        before = self.image.changed_feature_levels
        decided = await self._decide(
            decide_feature_updates,
            updates,
            lambda _, refusal: refusal,
            validate_only=validate_only,
            timeout_ms=timeout_ms,
        )
        return decided if self.image.changed_feature_levels is before else await self._after_repair(decided)

    async def _after_repair(self, decided: Decided[T]) -> Decided[T]:
        """Update eligible leader sets after a change of the rules about them."""
        try:
            return decided._replace(version=await self.cluster.repair())
        except StoreError as problem:  # a later repair does it: until then the leaders commit nothing
            log.warning("eligible leader sets of earlier settings stay", reason=problem)
            return decided

    async def alter_client_quotas(
        self, alterations: Sequence[QuotaAlteration], *, validate_only: bool = False
    ) -> Decided[list[QuotaResult]]:
        return await self._decide(
            request_decisions.decide_quota_changes, alterations, refuse_quota_changes, validate_only=validate_only
        )

    async def alter_scram_credentials(self, alterations: Sequence[ScramAlteration]) -> Decided[list[ScramResult]]:
        return await self._decide(decide_scram_alterations, alterations, refuse_scram_alterations)

    async def change_delegation_token(self, request: TokenRequest) -> Decided[TokenResult]:
        return await self._decide(decide_token_request, request, refuse_token_request)

    async def create_acls(self, bindings: Sequence[AclBinding]) -> Decided[list[Refusal | None]]:
        return await self._decide(decide_acl_creations, bindings, refuse_acl_creations)

    async def delete_acls(self, filters: Sequence[AclFilter]) -> Decided[list[AclDeletion]]:
        return await self._decide(decide_acl_deletions, filters, refuse_acl_deletions)

    async def allocate_producer_ids(self, count: int) -> Decided[int]:
        """The first of `count` ids that are never allocated again, also not after a crash. `ControllerFenced` when
        another controller took over."""
        return await self._writer.write(
            lambda cluster: request_decisions.decide_producer_ids(count, cluster), BROKER_REQUEST_TIMEOUT_MS
        )

    async def _decide(
        self,
        decide: Callable[[R, Cluster], tuple[T, list[Change]]],
        request: R,
        refuse: Callable[[R, Refusal], T],
        *,
        validate_only: bool = False,
        timeout_ms: float = DEFAULT_TIMEOUT_MS,
        mutations: MutationQuota = UNLIMITED_MUTATIONS,
    ) -> Decided[T]:
        return await write_request(
            self._writer,
            decide,
            request,
            refuse,
            validate_only=validate_only,
            timeout_ms=timeout_ms,
            mutations=mutations,
        )
