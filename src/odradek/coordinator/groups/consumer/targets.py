"""The target assignment of a consumer group: which member should have which partitions. An assignor computes it when
something has changed, and not before an interval has passed since the last time (KIP-1263)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.coordinator.groups.assignors.by_name import ASSIGNORS, MemberSubscription
from odradek.coordinator.groups.consumer.group import NO_TARGET_TIMESTAMP_MS

if TYPE_CHECKING:
    from uuid import UUID

    from odradek.coordinator.groups.consumer.draft import Draft
    from odradek.coordinator.groups.consumer.group import ConsumerGroup
    from odradek.coordinator.groups.decision import Decision
    from odradek.metadata.image import MetadataImage


def update_target(draft: Draft, decision: Decision) -> None:
    group = draft.group
    if group.target_epoch >= group.epoch or not _is_due(group, decision):
        return
    subscriptions = _subscriptions(group, decision.image)
    topics = frozenset().union(*(each.topic_ids for each in subscriptions.values()))
    partition_counts = {topic_id: len(decision.image.topics_by_id[topic_id].partitions) for topic_id in topics}
    default = decision.settings.consumer_assignors[0]
    # A log that another broker wrote may name an assignor that this broker does not have.
    assign = ASSIGNORS.get(group.preferred_assignor(default), ASSIGNORS[default])
    assignment = assign(subscriptions, partition_counts)
    for member_id in subscriptions:
        target = assignment.get(member_id, {})
        if target != group.targets.get(member_id):
            draft.put_target(member_id, target)
    draft.put_target_epoch(group.epoch, decision.now_ms)


def _is_due(group: ConsumerGroup, decision: Decision) -> bool:
    interval_ms = decision.consumer_settings(group.group_id).assignment_interval_ms
    if group.target_timestamp_ms == NO_TARGET_TIMESTAMP_MS or interval_ms == 0:
        return True
    # A clock that was set back, or that of another coordinator, must not hold up the members until it has caught up.
    return not 0 <= decision.now_ms - group.target_timestamp_ms < interval_ms


def _subscriptions(group: ConsumerGroup, image: MetadataImage) -> dict[str, MemberSubscription]:
    ids: dict[frozenset[str], frozenset[UUID]] = {}  # most members of a group subscribe to the same topics
    subscriptions = {}
    for member_id, member in group.members.items():
        topics = group.topics_of(member)
        if topics not in ids:
            ids[topics] = image.topic_ids(topics)
        target = group.targets.get(member_id, {})
        subscriptions[member_id] = MemberSubscription(ids[topics], target, member.instance_id)
    return subscriptions
