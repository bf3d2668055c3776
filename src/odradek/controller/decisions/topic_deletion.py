"""Which topics a request deletes, by name or by id; a topic that is named twice is not deleted. Pure."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from odradek.controller.decisions.request_results import TopicResult
from odradek.controller.decisions.topics import QUOTA_EXCEEDED
from odradek.metadata.changes import TopicDeleted
from odradek.protocol.errors import ErrorCode
from odradek.protocol.refusal import Refusal
from odradek.security.quotas.mutation_quota import UNLIMITED_MUTATIONS, MutationQuota

if TYPE_CHECKING:
    import uuid
    from collections.abc import Iterable

    from odradek.metadata.changes import Change
    from odradek.metadata.entities import TopicImage
    from odradek.metadata.image import MetadataImage

_UNKNOWN_NAME = Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition.")
_UNKNOWN_ID = Refusal(ErrorCode.UNKNOWN_TOPIC_ID, "This server does not host this topic ID.")
_DISABLED = Refusal(ErrorCode.TOPIC_DELETION_DISABLED, "Topic deletion is disabled.")
_NAMED_TWICE = Refusal(ErrorCode.INVALID_REQUEST, "The provided topic name maps to an ID that was already supplied.")


def decide_deletions(
    image: MetadataImage,
    names: Iterable[str],
    topic_ids: Iterable[uuid.UUID],
    mutations: MutationQuota = UNLIMITED_MUTATIONS,
    *,
    is_enabled: bool,
) -> tuple[list[TopicResult], list[Change]]:
    results: list[TopicResult] = []
    by_id: dict[uuid.UUID, TopicImage] = {}
    for topic_id, count in Counter(topic_ids).items():
        topic = image.topic_by_id(topic_id)
        if (refusal := _refusal(topic, count, is_enabled=is_enabled, by="id")) is not None:
            results.append(TopicResult(name=None, topic_id=topic_id, error=refusal.error, message=refusal.message))
        elif topic is not None:
            by_id[topic_id] = topic
    deleted = dict(by_id)
    for name, count in Counter(names).items():
        topic = image.topics.get(name)
        refusal = _refusal(topic, count, is_enabled=is_enabled, by="name")
        if refusal is None and topic is not None and topic.topic_id in by_id:
            refusal = _NAMED_TWICE
            deleted.pop(topic.topic_id, None)
        if refusal is not None:
            results.append(TopicResult(name=name, error=refusal.error, message=refusal.message))
        elif topic is not None:
            deleted[topic.topic_id] = topic
    for topic in tuple(deleted.values()):
        error, message = ErrorCode.NONE, None
        if not mutations.allows(len(topic.partitions)):
            del deleted[topic.topic_id]
            error, message = QUOTA_EXCEEDED
        results.append(TopicResult(name=topic.name, topic_id=topic.topic_id, topic=topic, error=error, message=message))
    return results, [TopicDeleted(topic_id) for topic_id in deleted]


def _refusal(topic: TopicImage | None, count: int, *, is_enabled: bool, by: str) -> Refusal | None:
    if not is_enabled:
        return _DISABLED
    if count > 1:
        return Refusal(ErrorCode.INVALID_REQUEST, f"Duplicate topic {by}.")
    if topic is None:
        return _UNKNOWN_ID if by == "id" else _UNKNOWN_NAME
    return None
