"""Ranges: each topic is cut into contiguous pieces, one per subscriber, in the order of the members.

Topics with equally many partitions and the same subscribers are cut alike, so that a member gets the same partitions of
each and can join them. An assignment does not depend on the one before: static members come first, ordered by their
instance ids, and so keep their ranges when they return with another member id.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

    from odradek.coordinator.groups.assignors.assignment import Assignment, MemberSubscription


def assign_ranges(members: Mapping[str, MemberSubscription], partition_counts: Mapping[UUID, int]) -> Assignment:
    assignment: Assignment = {member_id: {} for member_id in sorted(members, key=lambda id_: _place(id_, members[id_]))}
    subscribers: dict[UUID, list[str]] = {}
    for member_id in assignment:
        for topic_id in members[member_id].topic_ids:
            subscribers.setdefault(topic_id, []).append(member_id)
    for topic_id in sorted(subscribers):
        member_ids = subscribers[topic_id]
        size, with_one_more = divmod(partition_counts.get(topic_id, 0), len(member_ids))
        start = 0
        for number, member_id in enumerate(member_ids):
            end = start + size + (number < with_one_more)
            if start == end:
                break  # no partition is left for the following members
            assignment[member_id][topic_id] = frozenset(range(start, end))
            start = end
    return assignment


def _place(member_id: str, member: MemberSubscription) -> tuple[bool, bytes]:
    """Java compares strings by their UTF-16 units."""
    name = member.instance_id
    return name is None, (member_id if name is None else name).encode("utf-16-be", "surrogatepass")
