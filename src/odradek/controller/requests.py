"""The requests to the controller, as frozen values: `ControllerChannel.ask` returns the result of each.

A `ChangeRequest` carries its pure decision. The other requests need more of the controller than an image
(`Controller.ask`). Each request also builds the result that refuses it.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, ClassVar, Generic, NamedTuple, NoReturn, TypeVar

from odradek.controller.decisions.acls import (
    AclDeletion,
    decide_acl_creations,
    decide_acl_deletions,
    refuse_acl_creations,
    refuse_acl_deletions,
)
from odradek.controller.decisions.brokers import decide_unregistration
from odradek.controller.decisions.configs import may_change_setting
from odradek.controller.decisions.delegation_tokens import TokenResult, decide_token_request
from odradek.controller.decisions.features import decide_feature_updates
from odradek.controller.decisions.in_sync_sets import InSyncResult, decide_in_sync_changes
from odradek.controller.decisions.partition_rules import MIN_IN_SYNC
from odradek.controller.decisions.reassignment_requests import ReassignmentResult, decide_reassignments
from odradek.controller.decisions.request_results import (
    ConfigResult,
    QuotaResult,
    TopicResult,
    decide_config_changes,
    decide_partition_additions,
    decide_quota_changes,
    decide_topic_creations,
)
from odradek.controller.decisions.requested_elections import ElectionResult, decide_elections
from odradek.controller.decisions.scram_credentials import (
    ScramResult,
    decide_scram_alterations,
    refuse_scram_alterations,
)
from odradek.controller.decisions.streams import (
    StreamRequest,
    StreamResult,
    decide_stream_creations,
    decide_stream_deletions,
    decide_stream_edits,
    refuse_streams,
)
from odradek.controller.decisions.topic_deletion import decide_deletions
from odradek.conventions.dataclass import dataclass
from odradek.metadata.store import StoreError
from odradek.protocol.errors import ErrorCode
from odradek.protocol.refusal import Refusal
from odradek.security.quotas.mutation_quota import UNLIMITED_MUTATIONS, MutationQuota

if TYPE_CHECKING:
    import uuid
    from collections.abc import Iterable, Mapping, Sequence

    from odradek.controller.decisions.configs import ConfigAlteration, ConfigReplacement
    from odradek.controller.decisions.delegation_tokens import TokenRequest
    from odradek.controller.decisions.features import FeatureUpdate
    from odradek.controller.decisions.in_sync_sets import InSyncProposal
    from odradek.controller.decisions.leader_election import ElectionKind
    from odradek.controller.decisions.offline_replicas import OfflineReplica
    from odradek.controller.decisions.reassignment_requests import NewReplicas
    from odradek.controller.decisions.scram_credentials import ScramAlteration
    from odradek.controller.decisions.topics import Cluster, NewPartitions, NewTopic
    from odradek.metadata.changes import Change
    from odradek.metadata.client_quotas import QuotaAlteration
    from odradek.metadata.entities import PartitionImage
    from odradek.metadata.image import MetadataImage
    from odradek.security.acls.bindings import AclBinding, AclFilter

R = TypeVar("R")

DEFAULT_TIMEOUT_MS = 30_000.0  # of requests without a timeout
BROKER_REQUEST_TIMEOUT_MS = 10_000.0  # as long as a broker waits for the answer to one attempt


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask(Generic[R]):
    """A request whose result is an `R`."""

    timeout_ms: float = DEFAULT_TIMEOUT_MS
    waits_for_applied: ClassVar[bool] = False
    """Whether the result is returned once this broker has applied the change, so that a client which asks the same
    broker next sees it. Brokers follow producer ids, in-sync sets and broker states by their epochs instead."""

    def refuse(self, refusal: Refusal) -> R:
        raise NotImplementedError


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeRequest(Ask[R]):
    """A change that has not begun within `timeout_ms` is not made. `mutations` is the client's quota of topic changes,
    which `decide` uses."""

    validate_only: bool = False
    mutations: MutationQuota = UNLIMITED_MUTATIONS
    waits_for_applied: ClassVar[bool] = True
    is_limited: ClassVar[bool] = True
    """Whether the request is refused when too many wait. Each broker has few requests of its own at a time."""

    def decide(self, cluster: Cluster) -> tuple[R, list[Change]]:
        raise NotImplementedError

    def needs_repair(self, result: R, before: MetadataImage, after: MetadataImage) -> bool:  # noqa: ARG002 - for subclasses
        """Whether partitions depend on the change and must follow it."""
        return False


# Topics


@dataclass(frozen=True, slots=True)
class CreateTopics(ChangeRequest[list[TopicResult]]):
    topics: Sequence[NewTopic]

    def decide(self, cluster: Cluster) -> tuple[list[TopicResult], list[Change]]:
        return decide_topic_creations(self.topics, cluster, self.mutations)

    def refuse(self, refusal: Refusal) -> list[TopicResult]:
        return _refuse_topics([topic.name for topic in self.topics], (), refusal)


@dataclass(frozen=True, slots=True)
class DeleteTopics(ChangeRequest[list[TopicResult]]):
    names: Sequence[str] = ()
    topic_ids: Sequence[uuid.UUID] = ()

    def decide(self, cluster: Cluster) -> tuple[list[TopicResult], list[Change]]:
        is_enabled = cluster.config.delete_topic_enable
        return decide_deletions(cluster.image, self.names, self.topic_ids, self.mutations, is_enabled=is_enabled)

    def refuse(self, refusal: Refusal) -> list[TopicResult]:
        return _refuse_topics(self.names, self.topic_ids, refusal)


@dataclass(frozen=True, slots=True)
class CreatePartitions(ChangeRequest[list[TopicResult]]):
    topics: Sequence[NewPartitions]

    def decide(self, cluster: Cluster) -> tuple[list[TopicResult], list[Change]]:
        return decide_partition_additions(self.topics, cluster, self.mutations)

    def refuse(self, refusal: Refusal) -> list[TopicResult]:
        return _refuse_topics([topic.name for topic in self.topics], (), refusal)


# Streams


@dataclass(frozen=True, slots=True)
class CreateStreams(ChangeRequest[list[StreamResult]]):
    streams: Sequence[StreamRequest]
    owner: str

    def decide(self, cluster: Cluster) -> tuple[list[StreamResult], list[Change]]:
        return decide_stream_creations(self.streams, self.owner, cluster)

    def refuse(self, refusal: Refusal) -> list[StreamResult]:
        return refuse_streams([stream.path for stream in self.streams], refusal)


@dataclass(frozen=True, slots=True)
class EditStreams(ChangeRequest[list[StreamResult]]):
    streams: Sequence[StreamRequest]

    def decide(self, cluster: Cluster) -> tuple[list[StreamResult], list[Change]]:
        return decide_stream_edits(self.streams, cluster)

    def refuse(self, refusal: Refusal) -> list[StreamResult]:
        return refuse_streams([stream.path for stream in self.streams], refusal)

    def needs_repair(self, _result: list[StreamResult], before: MetadataImage, after: MetadataImage) -> bool:
        """A lower minimum of in-sync replicas changes eligible leader sets."""
        return after.streams is not before.streams and any(MIN_IN_SYNC in each.settings for each in self.streams)


@dataclass(frozen=True, slots=True)
class DeleteStreams(ChangeRequest[list[StreamResult]]):
    paths: Sequence[str]

    def decide(self, cluster: Cluster) -> tuple[list[StreamResult], list[Change]]:
        return decide_stream_deletions(self.paths, cluster, self.mutations)

    def refuse(self, refusal: Refusal) -> list[StreamResult]:
        return refuse_streams(self.paths, refusal)


# Settings, features and quotas


@dataclass(frozen=True, slots=True)
class AlterConfigs(ChangeRequest[list[ConfigResult]]):
    """Replaces all settings of a resource, or alters some of them."""

    changes: Sequence[ConfigReplacement | ConfigAlteration]

    def decide(self, cluster: Cluster) -> tuple[list[ConfigResult], list[Change]]:
        return decide_config_changes(self.changes, cluster)

    def refuse(self, refusal: Refusal) -> list[ConfigResult]:
        error, message = refusal
        resources = dict.fromkeys((each.resource_type, each.resource_name) for each in self.changes)
        return [
            ConfigResult(resource_type=resource_type, resource_name=name, error=error, message=message)
            for resource_type, name in resources
        ]

    def needs_repair(self, _result: list[ConfigResult], before: MetadataImage, after: MetadataImage) -> bool:
        """A lower minimum of in-sync replicas changes eligible leader sets."""
        return after.configs is not before.configs and any(
            may_change_setting(each, MIN_IN_SYNC) for each in self.changes
        )


@dataclass(frozen=True, slots=True)
class UpdateFeatures(ChangeRequest[Refusal | None]):
    """All levels change, or none does."""

    updates: Sequence[FeatureUpdate]

    def decide(self, cluster: Cluster) -> tuple[Refusal | None, list[Change]]:
        return decide_feature_updates(self.updates, cluster)

    def refuse(self, refusal: Refusal) -> Refusal | None:
        return refusal

    def needs_repair(self, _result: Refusal | None, before: MetadataImage, after: MetadataImage) -> bool:
        return after.changed_feature_levels is not before.changed_feature_levels


@dataclass(frozen=True, slots=True)
class AlterClientQuotas(ChangeRequest[list[QuotaResult]]):
    alterations: Sequence[QuotaAlteration]

    def decide(self, cluster: Cluster) -> tuple[list[QuotaResult], list[Change]]:
        return decide_quota_changes(self.alterations, cluster)

    def refuse(self, refusal: Refusal) -> list[QuotaResult]:
        error, message = refusal
        entities = dict.fromkeys(frozenset(alteration.entity) for alteration in self.alterations)
        return [QuotaResult(entity=entity, error=error, message=message) for entity in entities]


# Users and rules


@dataclass(frozen=True, slots=True)
class AlterScramCredentials(ChangeRequest[list[ScramResult]]):
    alterations: Sequence[ScramAlteration]

    def decide(self, cluster: Cluster) -> tuple[list[ScramResult], list[Change]]:
        return decide_scram_alterations(self.alterations, cluster)

    def refuse(self, refusal: Refusal) -> list[ScramResult]:
        return refuse_scram_alterations(self.alterations, refusal)


@dataclass(frozen=True, slots=True)
class ChangeDelegationToken(ChangeRequest[TokenResult]):
    change: TokenRequest

    def decide(self, cluster: Cluster) -> tuple[TokenResult, list[Change]]:
        return decide_token_request(self.change, cluster)

    def refuse(self, refusal: Refusal) -> TokenResult:
        return TokenResult(refusal.error)


@dataclass(frozen=True, slots=True)
class CreateAcls(ChangeRequest[list[Refusal | None]]):
    bindings: Sequence[AclBinding]

    def decide(self, cluster: Cluster) -> tuple[list[Refusal | None], list[Change]]:
        return decide_acl_creations(self.bindings, cluster)

    def refuse(self, refusal: Refusal) -> list[Refusal | None]:
        return refuse_acl_creations(self.bindings, refusal)


@dataclass(frozen=True, slots=True)
class DeleteAcls(ChangeRequest[list[AclDeletion]]):
    filters: Sequence[AclFilter]

    def decide(self, cluster: Cluster) -> tuple[list[AclDeletion], list[Change]]:
        return decide_acl_deletions(self.filters, cluster)

    def refuse(self, refusal: Refusal) -> list[AclDeletion]:
        return refuse_acl_deletions(self.filters, refusal)


# Replicas


@dataclass(frozen=True, slots=True)
class ElectLeaders(ChangeRequest[list[ElectionResult] | Refusal]):
    """`partitions` is None for all partitions."""

    kind: ElectionKind
    partitions: Sequence[tuple[str, int]] | None

    def decide(self, cluster: Cluster) -> tuple[list[ElectionResult] | Refusal, list[Change]]:
        return decide_elections(self.kind, self.partitions, cluster)

    def refuse(self, refusal: Refusal) -> list[ElectionResult] | Refusal:
        return refusal


@dataclass(frozen=True, slots=True)
class ReassignPartitions(ChangeRequest[list[ReassignmentResult] | Refusal]):
    partitions: Sequence[NewReplicas]
    allow_replication_factor_change: bool

    def decide(self, cluster: Cluster) -> tuple[list[ReassignmentResult] | Refusal, list[Change]]:
        may_change = self.allow_replication_factor_change
        return decide_reassignments(self.partitions, cluster, allow_replication_factor_change=may_change)

    def refuse(self, refusal: Refusal) -> list[ReassignmentResult] | Refusal:
        return refusal


@dataclass(frozen=True, slots=True)
class ListReassignments(Ask[dict[str, list["PartitionImage"]] | Refusal]):
    """The partitions of running reassignments by topic. `partitions` is None for all topics."""

    partitions: Mapping[str, Sequence[int]] | None

    def refuse(self, refusal: Refusal) -> dict[str, list[PartitionImage]] | Refusal:
        return refusal


# Brokers


@dataclass(frozen=True, slots=True)
class UnregisterBroker(ChangeRequest[Refusal | None]):
    node_id: int

    def decide(self, cluster: Cluster) -> tuple[Refusal | None, list[Change]]:
        decision = decide_unregistration(self.node_id, cluster)
        return (decision, []) if isinstance(decision, Refusal) else (None, decision.changes)

    def refuse(self, refusal: Refusal) -> Refusal | None:
        return refusal

    def needs_repair(self, result: Refusal | None, _before: MetadataImage, _after: MetadataImage) -> bool:
        return result is None


class BrokerStatus(NamedTuple):
    """The state of a broker after its request. `may_stop` when the broker leads nothing and is in no in-sync set."""

    error: ErrorCode
    is_fenced: bool = True
    may_stop: bool = False


@dataclass(frozen=True, slots=True)
class BrokerStateChange(Ask[BrokerStatus]):
    node_id: int
    broker_epoch: int

    def refuse(self, refusal: Refusal) -> BrokerStatus:
        return BrokerStatus(refusal.error)


@dataclass(frozen=True, slots=True)
class UnfenceBroker(BrokerStateChange):
    """The controller refuses while it does not reach the broker."""


@dataclass(frozen=True, slots=True)
class ShutDownBroker(BrokerStateChange):
    """A controlled shutdown: other brokers are to lead what this one leads."""


@dataclass(frozen=True, slots=True)
class ReportOfflineReplicas(Ask[ErrorCode]):
    """Replicas of a broker on log directories that failed: other replicas are to lead in their place."""

    node_id: int
    broker_epoch: int
    replicas: Sequence[OfflineReplica]

    def refuse(self, refusal: Refusal) -> ErrorCode:
        return refusal.error


@dataclass(frozen=True, slots=True)
class AlterPartitions(ChangeRequest[list[InSyncResult]]):
    """In-sync sets that a leader proposes; the results are in the order of the proposals."""

    node_id: int
    broker_epoch: int
    proposals: Sequence[InSyncProposal]
    timeout_ms: float = field(default=BROKER_REQUEST_TIMEOUT_MS, kw_only=True)
    waits_for_applied: ClassVar[bool] = False
    is_limited: ClassVar[bool] = False

    def decide(self, cluster: Cluster) -> tuple[list[InSyncResult], list[Change]]:
        results, changes = decide_in_sync_changes(self.node_id, self.broker_epoch, self.proposals, cluster)
        return self._for_each(results) if isinstance(results, ErrorCode) else results, changes

    def refuse(self, refusal: Refusal) -> list[InSyncResult]:
        return self._for_each(refusal.error)

    def _for_each(self, error: ErrorCode) -> list[InSyncResult]:
        return [InSyncResult(error)] * len(self.proposals)


@dataclass(frozen=True, slots=True)
class AllocateProducerIds(Ask[int]):
    """The result is the first of `count` ids, which are never allocated again, not even after a crash."""

    count: int

    def refuse(self, refusal: Refusal) -> NoReturn:
        raise StoreError(refusal.message or refusal.error.name)


def _refuse_topics(names: Iterable[str], topic_ids: Iterable[uuid.UUID], refusal: Refusal) -> list[TopicResult]:
    """One result for each topic, however often the request names it."""
    error, message = refusal
    by_name = [TopicResult(name=name, error=error, message=message) for name in dict.fromkeys(names)]
    return by_name + [
        TopicResult(name=None, topic_id=topic_id, error=error, message=message) for topic_id in dict.fromkeys(topic_ids)
    ]
