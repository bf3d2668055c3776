"""One result for each thing that a request names, with Kafka's message, and the changes that are accepted. Pure.

The rules for a single topic, resource or quota are in `topics`, `topic_deletion`, `configs` and
`metadata/client_quotas`.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from odradek.configuration.config_descriptions import describe_topic_configs
from odradek.controller.decisions.configs import (
    ConfigAlteration,
    ConfigReplacement,
    decide_alteration,
    decide_replacement,
    repeated_resources,
)
from odradek.controller.decisions.topics import (
    QUOTA_EXCEEDED,
    check_additions_size,
    decide_partitions,
    decide_topics,
    duplicates,
)
from odradek.conventions.dataclass import dataclass
from odradek.metadata.changes import ClientQuotaChanged, ConfigsChanged, ProducerIdsAllocated
from odradek.metadata.client_quotas import QuotaAlteration, QuotaEntity, decide_quota
from odradek.metadata.streams import split_name
from odradek.protocol.errors import ErrorCode
from odradek.protocol.refusal import Refusal
from odradek.security.quotas.mutation_quota import UNLIMITED_MUTATIONS, MutationQuota

if TYPE_CHECKING:
    import uuid
    from collections.abc import Iterable, Sequence

    from odradek.configuration.config_types import ConfigEntry
    from odradek.controller.decisions.topics import Cluster, NewPartitions, NewTopic
    from odradek.metadata.changes import Change
    from odradek.metadata.entities import TopicImage


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicResult:
    """`configs` are a new topic's effective settings, which CreateTopics 5 and later returns."""

    name: str | None
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None
    topic_id: uuid.UUID | None = None
    topic: TopicImage | None = None
    configs: tuple[ConfigEntry, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigResult:
    resource_type: int
    resource_name: str
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaResult:
    entity: QuotaEntity
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None


def decide_topic_creations(
    requests: Sequence[NewTopic], cluster: Cluster, mutations: MutationQuota = UNLIMITED_MUTATIONS
) -> tuple[list[TopicResult], list[Change]]:
    repeated = duplicates(request.name for request in requests)
    results: list[TopicResult] = []
    changes: list[Change] = []
    # Thousands of topics in one request mostly have the same settings.
    described: dict[tuple[str, frozenset[tuple[str, str | None]]], tuple[ConfigEntry, ...]] = {}
    for request, decision in decide_topics([each for each in requests if each.name not in repeated], cluster):
        if isinstance(decision, Refusal):
            results.append(TopicResult(name=request.name, error=decision.error, message=decision.message))
            continue
        topic, topic_changes = decision
        if not mutations.allows(len(topic.partitions)):
            error, message = QUOTA_EXCEEDED
            results.append(TopicResult(name=request.name, error=error, message=message))
            continue
        changes += topic_changes
        settings = split_name(request.name).path, frozenset(request.configs.items())
        if settings not in described:
            described[settings] = _describe_new_topic(request, cluster)
        results.append(TopicResult(name=topic.name, topic_id=topic.topic_id, topic=topic, configs=described[settings]))
    return results + _refuse_duplicates(repeated), changes


def decide_partition_additions(
    requests: Sequence[NewPartitions], cluster: Cluster, mutations: MutationQuota = UNLIMITED_MUTATIONS
) -> tuple[list[TopicResult], list[Change]]:
    repeated = duplicates(request.name for request in requests)
    results = _refuse_duplicates(repeated)
    changes: list[Change] = []
    distinct = [request for request in requests if request.name not in repeated]
    too_many = check_additions_size(distinct, cluster.image)
    for request in distinct:
        decision = too_many or decide_partitions(request, cluster, mutations)
        if isinstance(decision, Refusal):
            results.append(TopicResult(name=request.name, error=decision.error, message=decision.message))
        else:
            results.append(TopicResult(name=request.name))
            changes += decision
    return results, changes


def decide_config_changes(
    requests: Sequence[ConfigReplacement | ConfigAlteration], cluster: Cluster
) -> tuple[list[ConfigResult], list[Change]]:
    repeated = repeated_resources(requests)
    results: list[ConfigResult] = []
    changes: list[Change] = []
    decision: ConfigsChanged | Refusal
    for request in requests:
        resource_type, name = request.resource_type, request.resource_name
        if (resource_type, name) in repeated:
            decision = Refusal(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
        elif isinstance(request, ConfigReplacement):
            decision = decide_replacement(request, cluster.image, cluster.config)
        else:
            decision = decide_alteration(request, cluster.image, cluster.config)
        error, message = decision if isinstance(decision, Refusal) else (ErrorCode.NONE, None)
        results.append(ConfigResult(resource_type=resource_type, resource_name=name, error=error, message=message))
        if not isinstance(decision, Refusal) and decision.values:
            changes.append(decision)
    return results, changes


def decide_quota_changes(
    alterations: Sequence[QuotaAlteration], cluster: Cluster
) -> tuple[list[QuotaResult], list[Change]]:
    """An entity that is named twice is refused, and nothing of it is changed: Kafka answers the same, but makes the
    first change."""
    results: dict[QuotaEntity, QuotaResult] = {}
    changes: list[Change] = []
    counts = Counter(frozenset(alteration.entity) for alteration in alterations)
    for alteration in alterations:
        entity = frozenset(alteration.entity)
        decision = (
            Refusal(ErrorCode.INVALID_REQUEST, "Ignoring duplicate entity")
            if counts[entity] > 1
            else decide_quota(alteration, cluster.image.client_quotas)
        )
        if isinstance(decision, Refusal):
            results[entity] = QuotaResult(entity=entity, error=decision.error, message=decision.message)
        else:
            results[entity] = QuotaResult(entity=entity)
            if decision:
                changes.append(ClientQuotaChanged(entity, decision))
    return list(results.values()), changes


def decide_producer_ids(count: int, cluster: Cluster) -> tuple[int, list[Change]]:
    """The first of `count` producer ids that are allocated once only."""
    first = cluster.image.next_producer_id
    return first, [ProducerIdsAllocated(first + count)]


def _refuse_duplicates(names: Iterable[str]) -> list[TopicResult]:
    return [TopicResult(name=name, error=ErrorCode.INVALID_REQUEST, message="Duplicate topic name.") for name in names]


def _describe_new_topic(request: NewTopic, cluster: Cluster) -> tuple[ConfigEntry, ...]:
    overrides = {name: value for name, value in request.configs.items() if value is not None}
    inherited = cluster.image.inherited_settings(request.name)
    return tuple(describe_topic_configs(overrides, cluster.config, inherited=inherited))
