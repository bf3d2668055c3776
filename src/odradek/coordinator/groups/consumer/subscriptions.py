"""The subscriptions of a consumer group, and when a change of them, or of the topics, begins a new epoch."""

from __future__ import annotations

import functools
import hashlib
from typing import TYPE_CHECKING, NamedTuple

from odradek.coordinator.groups.consumer.draft import Draft
from odradek.coordinator.groups.consumer.membership import submit
from odradek.coordinator.groups.consumer.patterns import ask_for_match, drop_unused_patterns, put_matched

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from uuid import UUID

    from odradek.coordinator.groups.consumer.group import ConsumerGroup
    from odradek.coordinator.groups.consumer.members import ConsumerMember
    from odradek.coordinator.groups.consumer.patterns import MatchedPatterns
    from odradek.coordinator.groups.decision import Decision, PatternMatch
    from odradek.metadata.image import MetadataImage
    from odradek.protocol.errors import ErrorCode

NO_TOPICS_HASH = 0


def metadata_hash(topics: Iterable[str], image: MetadataImage) -> int:
    """A hash of the metadata that an assignment depends on. It is compared with other hashes of this broker only, so it
    need not be Kafka's."""
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


class Subscriber(NamedTuple):
    """A member that may have changed what it subscribes to."""

    before: ConsumerMember
    after: ConsumerMember
    may_describe: Callable[[str], bool]  # a pattern must not match topics that its subscriber may not describe
    matched: MatchedPatterns | None = None  # a pattern that is new to the group


def refresh_subscriptions(draft: Draft, subscriber: Subscriber, decision: Decision) -> bool:
    """Brings the group's patterns, hash and epoch up to date; whether the member itself subscribes to other topics."""
    before, after, may_describe, matched = subscriber
    old_topics = draft.group.topics_of(before)
    if after != before:
        draft.put_metadata(after)
    if after.topic_pattern != before.topic_pattern:
        drop_unused_patterns(draft, [before.topic_pattern])
    have_patterns_changed = matched is not None and put_matched(draft, matched, may_describe, decision)
    ask_for_match(draft, after, may_describe, decision)
    has_member_changed = draft.group.topics_of(after) != old_topics
    refresh_epoch(draft, has_member_changed or have_patterns_changed, decision)
    return has_member_changed


def refresh_epoch(draft: Draft, has_changed: bool, decision: Decision) -> None:
    """A new epoch when subscriptions have changed, or the topics that they name. Topics have not changed when the table
    of topics is the same object."""
    topics = decision.image.topics
    if not has_changed and draft.group.hashed_topics is topics:
        return
    new_hash = metadata_hash(draft.group.subscribed_topics, decision.image)
    if has_changed or new_hash != draft.group.metadata_hash:
        draft.bump_epoch(new_hash)
    draft.group.hashed_topics = topics


def on_patterns_matched(
    group: ConsumerGroup, match: PatternMatch, matched: MatchedPatterns, decision: Decision
) -> None:
    group.is_matching = False
    draft = Draft(group)
    has_changed = put_matched(draft, matched, match.may_describe, decision)
    refresh_epoch(draft, has_changed, decision)
    submit(draft, decision, _ignore_outcome)


def _ignore_outcome(error: ErrorCode, decision: Decision) -> None:
    """A later heartbeat matches again what could not be written."""
