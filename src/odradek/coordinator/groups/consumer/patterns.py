"""Which topics the regular expressions of a consumer group match: kept in records, and found off the event loop.

A pattern is matched before its first subscriber joins (`ConsumerHeartbeat.matched`), so that the member gets its
partitions at once. New topics and an interval make the group match all of its patterns again, concurrently with
heartbeats, because a malicious pattern may take long.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from odradek.coordinator.groups.consumer.group import ConsumerGroup, ResolvedPattern
from odradek.coordinator.groups.consumer.topic_patterns import InvalidPattern, matching_names
from odradek.coordinator.groups.decision import PatternMatch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from odradek.coordinator.groups.consumer.draft import Draft
    from odradek.coordinator.groups.consumer.members import ConsumerMember
    from odradek.coordinator.groups.decision import Decision
    from odradek.metadata.image import MetadataImage

# When many topics are created one after another, patterns are not matched again for each of them.
LEAST_AGE_MS = 10_000


class MatchedPatterns(NamedTuple):
    """The topics of one image that each pattern matches."""

    topics: Mapping[str, frozenset[str]]
    image: MetadataImage


def match_new_pattern(pattern: str, image: MetadataImage) -> MatchedPatterns:
    """Slow: called on a worker. InvalidPattern when it is not a pattern."""
    return MatchedPatterns({pattern: matching_names(pattern, image.topics)}, image)


def match_patterns(patterns: Iterable[str], image: MetadataImage) -> MatchedPatterns:
    """Slow: called on a worker. These patterns come from the log, where only valid ones were written; an invalid one
    matches nothing."""
    topics = {}
    for pattern in sorted(patterns):
        try:
            topics[pattern] = matching_names(pattern, image.topics)
        except InvalidPattern:
            topics[pattern] = frozenset()
    return MatchedPatterns(topics, image)


def put_matched(
    draft: Draft, matched: MatchedPatterns, may_describe: Callable[[str], bool], decision: Decision
) -> bool:
    """Store the topics of patterns that a member subscribes to; whether the topics of one have changed."""
    # Another match has used newer metadata. A version after the present one comes from another cluster's log.
    version, latest = matched.image.version, decision.image.version
    overtaken = {pattern for pattern, known in draft.group.patterns.items() if version < known.version <= latest}
    has_changed = False
    for pattern, names in matched.topics.items():
        if pattern in overtaken or not draft.group.subscribers_of_pattern(pattern):
            continue
        known = draft.group.patterns.get(pattern)
        topics = frozenset(name for name in names if may_describe(name))
        has_changed |= topics != (frozenset() if known is None else known.topics)
        draft.put_pattern(pattern, ResolvedPattern(topics, version, decision.now_ms))
    if draft.group.patterns.keys() <= matched.topics.keys() - overtaken:
        draft.group.matched_topics = matched.image.topics
    return has_changed


def drop_unused_patterns(draft: Draft, patterns: Iterable[str]) -> None:
    for pattern in sorted(set(patterns) & draft.group.patterns.keys()):
        if not draft.group.subscribers_of_pattern(pattern):
            draft.remove_pattern(pattern)


def ask_for_match(
    draft: Draft, member: ConsumerMember, may_describe: Callable[[str], bool], decision: Decision
) -> None:
    """Request a match when it is due, or when this member's pattern was never matched, unless a match is running."""
    group, pattern = draft.group, member.topic_pattern
    patterns = group.patterns.keys() | {pattern} if pattern else group.patterns.keys()
    if group.is_matching or not (len(patterns) > len(group.patterns) or _is_due(group, decision)):
        return
    match = PatternMatch(group.group_id, frozenset(patterns), may_describe)

    def ask(decision: Decision) -> None:
        written = decision.groups[match.group_id]
        if isinstance(written, ConsumerGroup):
            written.is_matching = True
            decision.matches.append(match)

    draft.afterwards.append(ask)


def _is_due(group: ConsumerGroup, decision: Decision) -> bool:
    if not group.patterns:
        return False
    age_ms = decision.now_ms - min(resolved.timestamp_ms for resolved in group.patterns.values())
    if age_ms < 0:
        return True  # the clock was set back, or was that of another coordinator: it may take long to catch up
    if age_ms <= LEAST_AGE_MS:
        return False
    return age_ms > decision.settings.pattern_refresh_interval_ms or _has_new_topics(group, decision.image)


def _has_new_topics(group: ConsumerGroup, image: MetadataImage) -> bool:
    """Deleted topics need no new match: they leave the assignment without it."""
    known = group.matched_topics
    if known is not None and (known is image.topics or image.topics.keys() <= known.keys()):
        group.matched_topics = image.topics
        return False
    return True
