"""The controller's results, one for each thing that a request names: error code, Kafka's message, and outcome."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from odradek.protocol.errors import ErrorCode

if TYPE_CHECKING:
    import uuid
    from collections.abc import Iterable

    from odradek.configuration.config_types import ConfigEntry
    from odradek.controller.config_decisions import ConfigAlteration, ConfigReplacement
    from odradek.controller.topic_decisions import NewPartitions, NewTopic
    from odradek.metadata.client_quotas import QuotaAlteration, QuotaEntity
    from odradek.metadata.entities import TopicImage
    from odradek.protocol.refusal import Refusal


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


# Refusals of whole requests: one result for each thing that the request names, however often it names it.


def refuse_topics(requests: Iterable[NewTopic | NewPartitions], refusal: Refusal) -> list[TopicResult]:
    return refuse_deletions((request.name for request in requests), (), refusal)


def refuse_deletions(names: Iterable[str], topic_ids: Iterable[uuid.UUID], refusal: Refusal) -> list[TopicResult]:
    error, message = refusal
    by_name = [TopicResult(name=name, error=error, message=message) for name in dict.fromkeys(names)]
    return by_name + [
        TopicResult(name=None, topic_id=topic_id, error=error, message=message) for topic_id in dict.fromkeys(topic_ids)
    ]


def refuse_config_changes(
    requests: Iterable[ConfigReplacement | ConfigAlteration], refusal: Refusal
) -> list[ConfigResult]:
    error, message = refusal
    resources = dict.fromkeys((request.resource_type, request.resource_name) for request in requests)
    return [
        ConfigResult(resource_type=resource_type, resource_name=name, error=error, message=message)
        for resource_type, name in resources
    ]


def refuse_quota_changes(alterations: Iterable[QuotaAlteration], refusal: Refusal) -> list[QuotaResult]:
    error, message = refusal
    entities = dict.fromkeys(frozenset(alteration.entity) for alteration in alterations)
    return [QuotaResult(entity=entity, error=error, message=message) for entity in entities]
