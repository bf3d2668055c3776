"""What a consumer group subscribes to: whether it has changed, and which topics its patterns match.

Departure from Kafka: a new pattern is matched at once, in the heartbeat that brings it, and not in the background.
"""

from __future__ import annotations

import functools
import hashlib
from typing import TYPE_CHECKING, NamedTuple

from odradek.coordinator.consumer_group import ResolvedPattern
from odradek.coordinator.topic_patterns import InvalidPattern, check_pattern, matching_topics
from odradek.metadata.refusal import Refusal
from odradek.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from uuid import UUID

    from odradek.coordinator.consumer_draft import Draft
    from odradek.coordinator.consumer_group import ConsumerGroup
    from odradek.coordinator.consumer_members import ConsumerMember
    from odradek.coordinator.decision import Decision
    from odradek.metadata.image import MetadataImage

NO_TOPICS_HASH = 0
# Matching reads the names of all topics; when many are created one after another, that is not done for each.
MATCH_INTERVAL_MS = 10_000


def metadata_hash(topics: Iterable[str], image: MetadataImage) -> int:
    """One number for all that an assignment depends on. It is compared with itself only, so it need not be Kafka's."""
    known = [image.topics[name] for name in sorted(topics) if name in image.topics]
    if not known:
        return NO_TOPICS_HASH
    digest = hashlib.blake2b(digest_size=8)
    for topic in known:
        digest.update(_topic_digest(topic.name, topic.topic_id, len(topic.partitions)))
    return int.from_bytes(digest.digest(), "big", signed=True)


@functools.lru_cache(maxsize=4096)
def _topic_digest(name: str, topic_id: UUID, partition_count: int) -> bytes:
    data = topic_id.bytes + partition_count.to_bytes(4, "big") + name.encode()
    return hashlib.blake2b(data, digest_size=8).digest()


def topic_ids(names: Iterable[str], image: MetadataImage) -> frozenset[UUID]:
    """Of those that exist."""
    topics = image.topics
    return frozenset(topics[name].topic_id for name in names if name in topics)


class Subscriber(NamedTuple):
    """A member that may have changed what it subscribes to."""

    before: ConsumerMember
    after: ConsumerMember
    may_describe: Callable[[str], bool]  # a pattern must not show its subscriber topics that it may not see


def refresh_subscriptions(draft: Draft, subscriber: Subscriber, decision: Decision) -> bool | Refusal:
    """Brings the group's patterns, hash and epoch up to date; whether the member itself subscribes to other topics."""
    before, after, _ = subscriber
    old_topics = draft.group.topics_of(before)
    if after != before:
        draft.put_metadata(after)
    have_patterns_changed = _refresh_patterns(draft, subscriber, decision)
    if isinstance(have_patterns_changed, Refusal):
        return have_patterns_changed
    has_member_changed = draft.group.topics_of(after) != old_topics
    image = decision.image
    if has_member_changed or have_patterns_changed or draft.group.hashed_topics is not image.topics:
        new_hash = metadata_hash(draft.group.subscribed_topics, image)
        if has_member_changed or have_patterns_changed or new_hash != draft.group.metadata_hash:
            draft.bump_epoch(new_hash)
        draft.group.hashed_topics = image.topics
    return has_member_changed


def _refresh_patterns(draft: Draft, subscriber: Subscriber, decision: Decision) -> bool | Refusal:
    """Whether some pattern matches other topics than before."""
    old, new = subscriber.before.topic_pattern, subscriber.after.topic_pattern
    if old and old != new:
        drop_unused_patterns(draft, [old])
    to_match = set(draft.group.patterns) if _is_refresh_due(draft.group, decision) else set()
    if new and new not in draft.group.patterns:
        try:
            check_pattern(new)
        except InvalidPattern as problem:
            message = f"SubscribedTopicRegex `{new}` is not a valid regular expression: {problem}."
            return Refusal(ErrorCode.INVALID_REGULAR_EXPRESSION, message)
        to_match.add(new)
    has_changed = False
    for pattern in sorted(to_match):
        known = draft.group.patterns.get(pattern)
        names = matching_topics(pattern, decision.image.topics)
        topics = frozenset(name for name in names if subscriber.may_describe(name))
        has_changed |= topics != (frozenset() if known is None else known.topics)
        draft.put_pattern(pattern, ResolvedPattern(topics, decision.image.version, decision.now_ms))
    if to_match == draft.group.patterns.keys():
        draft.group.matched_topics = decision.image.topics
    return has_changed


def _is_refresh_due(group: ConsumerGroup, decision: Decision) -> bool:
    if not group.patterns:
        return False
    age_ms = decision.now_ms - min(resolved.timestamp_ms for resolved in group.patterns.values())
    if age_ms <= MATCH_INTERVAL_MS:
        return False
    return age_ms > decision.settings.pattern_refresh_interval_ms or _has_new_topics(group, decision.image)


def _has_new_topics(group: ConsumerGroup, image: MetadataImage) -> bool:
    """Deleted topics are no reason to match again: they leave the assignment by themselves."""
    known = group.matched_topics
    if known is not None and (known is image.topics or image.topics.keys() <= known.keys()):
        group.matched_topics = image.topics
        return False
    return True


def drop_unused_patterns(draft: Draft, patterns: Iterable[str]) -> None:
    for pattern in set(patterns) & draft.group.patterns.keys():
        if not draft.group.subscribers_of_pattern(pattern):
            draft.remove_pattern(pattern)
