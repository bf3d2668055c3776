"""How a member of a consumer group gets from its present partitions to its target assignment. Pure.

The member first gives partitions back, then moves to the new epoch, then gets partitions that are free, so no partition
ever has two owners. The steps and their names are those of KIP-848 (in Kafka, CurrentAssignmentBuilder).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from odradek.coordinator.groups.consumer.members import MemberState

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from uuid import UUID

    from odradek.coordinator.groups.consumer.members import ConsumerMember, PartitionEpochs, Partitions


class Goal(NamedTuple):
    """The assignment that the member should get, and the partitions that are not free."""

    epoch: int
    target: Partitions
    subscribed_topic_ids: Collection[UUID]  # the member must not get partitions of other topics
    is_owned: Callable[[UUID, int], bool]  # by any member, this one included
    has_subscription_changed: bool
    owned: Partitions | None  # what the member says that it has; None when it says nothing


def reconcile(member: ConsumerMember, goal: Goal) -> ConsumerMember:
    """The member after its next step; the same value when there is none to take."""
    match member.state:
        case MemberState.STABLE if member.epoch == goal.epoch:
            return _drop_unsubscribed(member, goal) if goal.has_subscription_changed else member
        case MemberState.UNREVOKED_PARTITIONS if _has_any(goal.owned, member.pending_revocation):
            return _drop_unsubscribed(member, goal) if goal.has_subscription_changed else member
        case _:
            return _next_step(member, goal)


def _has_any(owned: Partitions | None, partitions: PartitionEpochs) -> bool:
    """A member that does not report its partitions may have all of them."""
    if owned is None:
        return True
    return any(not partitions.get(topic_id, {}).keys().isdisjoint(some) for topic_id, some in owned.items())


def _drop_unsubscribed(member: ConsumerMember, goal: Goal) -> ConsumerMember:
    """The target may be older than the subscription: the member loses the topics that it unsubscribed from at once."""
    dropped = {topic: epochs for topic, epochs in member.assigned.items() if topic not in goal.subscribed_topic_ids}
    if not dropped:
        return member
    kept = {topic: epochs for topic, epochs in member.assigned.items() if topic not in dropped}
    pending = dict(member.pending_revocation)
    for topic_id, epochs in dropped.items():
        pending[topic_id] = {**pending.get(topic_id, {}), **epochs}
    if _has_any(goal.owned, pending):
        return member.moved(member.epoch, MemberState.UNREVOKED_PARTITIONS, kept, pending)
    return member.moved(member.epoch, member.state, kept, member.pending_revocation)


def _next_step(member: ConsumerMember, goal: Goal) -> ConsumerMember:
    kept: dict[UUID, dict[int, int]] = {}
    to_revoke: dict[UUID, dict[int, int]] = {}
    to_assign: dict[UUID, list[int]] = {}
    is_waiting = False
    for topic_id in dict.fromkeys((*goal.target, *member.assigned)):
        target = goal.target.get(topic_id, frozenset()) if topic_id in goal.subscribed_topic_ids else frozenset()
        has = member.assigned.get(topic_id, {})
        gives_back = member.pending_revocation.get(topic_id, {})
        for partition, epoch in has.items():
            (kept if partition in target else to_revoke).setdefault(topic_id, {})[partition] = epoch
        for partition in target - has.keys():
            # Partitions that the member itself is giving back are free for it.
            if goal.is_owned(topic_id, partition) and partition not in gives_back:
                is_waiting = True
            else:
                to_assign.setdefault(topic_id, []).append(partition)
    if to_revoke and _has_any(goal.owned, to_revoke):
        return member.moved(member.epoch, MemberState.UNREVOKED_PARTITIONS, kept, to_revoke)
    for topic_id, partitions in to_assign.items():
        kept.setdefault(topic_id, {}).update(dict.fromkeys(partitions, goal.epoch))
    state = MemberState.UNRELEASED_PARTITIONS if is_waiting else MemberState.STABLE
    return member.moved(goal.epoch, state, kept, {})
