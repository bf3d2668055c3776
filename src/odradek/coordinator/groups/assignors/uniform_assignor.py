"""Equal shares: no member has two partitions more than another that could take one of them, and members keep as many of
their partitions as that allows."""

from __future__ import annotations

from itertools import chain, islice
from typing import TYPE_CHECKING

from odradek.coordinator.groups.assignors.uniform_balance import assign_unequal_subscribers

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

    from odradek.coordinator.groups.assignors.assignment import Assignment, MemberSubscription, Partitions


def assign_uniformly(members: Mapping[str, MemberSubscription], partition_counts: Mapping[UUID, int]) -> Assignment:
    in_order = {member_id: members[member_id] for member_id in sorted(members)}
    subscriptions = {member.topic_ids for member in members.values()}
    if len(subscriptions) > 1:
        return assign_unequal_subscribers(in_order, partition_counts)
    topics = sorted(topic_id for topic_ids in subscriptions for topic_id in topic_ids if topic_id in partition_counts)
    return _assign_equal_subscribers(in_order, {topic_id: partition_counts[topic_id] for topic_id in topics})


def _assign_equal_subscribers(
    members: Mapping[str, MemberSubscription], partition_counts: Mapping[UUID, int]
) -> Assignment:
    """A member with more than its fair share gives the rest back; members with less get the rest and what is free."""
    share, shares_with_one_more = divmod(sum(partition_counts.values()), len(members) or 1)
    free = {topic_id: set(range(count)) for topic_id, count in partition_counts.items()}
    kept: dict[str, list[tuple[UUID, int]]] = {}
    rooms: dict[str, int] = {}
    given_back: list[tuple[UUID, int]] = []
    for members_before, (member_id, member) in enumerate(members.items()):
        held = _take_held(member.assigned, free)
        # Members that hold a larger share keep it; the remaining larger shares go to the last members.
        has_one_more = shares_with_one_more > 0 and (
            len(held) > share or len(members) - members_before <= shares_with_one_more
        )
        shares_with_one_more -= has_one_more
        size = share + has_one_more
        kept[member_id], rooms[member_id] = held[:size], size - len(held)
        given_back += held[size:]
    unassigned = chain(((topic_id, partition) for topic_id in free for partition in sorted(free[topic_id])), given_back)
    return {
        member_id: _grouped([*held, *islice(unassigned, max(rooms[member_id], 0))], members[member_id].assigned)
        for member_id, held in kept.items()
    }


def _take_held(assigned: Partitions, free: dict[UUID, set[int]]) -> list[tuple[UUID, int]]:
    """The partitions of these that exist and are free, in order; they are taken from the free ones."""
    held = []
    for topic_id in sorted(assigned.keys() & free.keys()):
        partitions = assigned[topic_id] & free[topic_id]
        free[topic_id] -= partitions
        held += [(topic_id, partition) for partition in sorted(partitions)]
    return held


def _grouped(pairs: list[tuple[UUID, int]], before: Partitions) -> dict[UUID, frozenset[int]]:
    """Partitions by topic; the same set objects as before for topics that did not change."""
    partitions: dict[UUID, list[int]] = {}
    for topic_id, partition in pairs:
        partitions.setdefault(topic_id, []).append(partition)
    grouped = {topic_id: frozenset(numbers) for topic_id, numbers in partitions.items()}
    return dict(before) if grouped == before else grouped
