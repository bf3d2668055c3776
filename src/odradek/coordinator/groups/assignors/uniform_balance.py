"""Equal shares among members with different subscriptions.

Everybody keeps what is still theirs to have. What is free goes to the subscriber with the least, topics with the most
partitions per subscriber first, for they leave the least choice. Then, topic by topic and as long as it helps, who has
the most gives to who has the least: each time a sum of squares falls, so that ends.
"""

from __future__ import annotations

from heapq import heappop, heapreplace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

    from odradek.coordinator.groups.assignors.assignment import Assignment, MemberSubscription

# Chains of subscriptions (a member of A and B, one of B and C, …) even out slowly. Two or three rounds are usual.
MOST_ROUNDS = 64


def assign_unequal_subscribers(
    members: Mapping[str, MemberSubscription], partition_counts: Mapping[UUID, int]
) -> Assignment:
    """`members` are in the order in which they are served."""
    sizes = [0] * len(members)
    subscribers: dict[UUID, list[int]] = {}
    for number, member in enumerate(members.values()):
        for topic_id in member.topic_ids & partition_counts.keys():
            subscribers.setdefault(topic_id, []).append(number)
    topics = [_Topic(topic_id, partition_counts[topic_id], numbers, sizes) for topic_id, numbers in subscribers.items()]
    topics.sort(key=_Topic.choices)
    by_id = {topic.topic_id: topic for topic in topics}
    for number, member in enumerate(members.values()):
        for topic_id in member.assigned.keys() & member.topic_ids & by_id.keys():
            by_id[topic_id].keep(number, member.assigned[topic_id])
    for topic in topics:
        topic.hand_out()
    for _ in range(MOST_ROUNDS):
        if not sum([topic.even_out() for topic in topics]):
            break
    assignment: Assignment = {member_id: {} for member_id in members}
    member_ids = list(members)
    for topic in topics:
        for number, partitions in topic.held.items():
            if partitions:
                assignment[member_ids[number]][topic.topic_id] = frozenset(partitions)
    return assignment


class _Topic:
    """Who holds what of one topic. Members are numbers; `sizes`, shared by all topics, is how much each has in all."""

    def __init__(self, topic_id: UUID, partition_count: int, subscribers: list[int], sizes: list[int]) -> None:
        self.topic_id = topic_id
        self.partition_count = partition_count
        self.subscribers = subscribers
        self.sizes = sizes
        self.free = set(range(partition_count))
        self.held: dict[int, set[int]] = {}

    def choices(self) -> tuple[float, int, UUID]:
        """The lower, the less choice there is about who gets what."""
        return -self.partition_count / len(self.subscribers), len(self.subscribers), self.topic_id

    def keep(self, number: int, assigned: frozenset[int]) -> None:
        partitions = assigned & self.free
        self.free -= partitions
        self.held[number] = set(partitions)
        self.sizes[number] += len(partitions)

    def hand_out(self) -> None:
        """What is free, each to the subscriber that has the least."""
        takers = self._takers() if self.free else []
        for partition in sorted(self.free):
            size, place, number = takers[0]
            self._give(partition, number)
            heapreplace(takers, (size + 1, place, number))
        self.free.clear()

    def even_out(self) -> int:
        """Moves partitions from who has the most to who has the least, until no such move helps; how many."""
        sizes = self.sizes
        holders = [number for number, partitions in self.held.items() if partitions]
        if not holders or max([sizes[number] for number in holders]) - 1 <= min(
            [sizes[number] for number in self.subscribers]
        ):
            return 0
        takers = self._takers()
        givers = sorted((-size, -place, number) for size, place, number in takers if self.held.get(number))
        to_give = {number: sorted(self.held[number]) for number in holders}
        moves = 0
        while givers:
            most, giver_place, giver = givers[0]
            least, taker_place, taker = takers[0]
            if -most - least <= 1:
                break
            partition = to_give[giver].pop()
            self.held[giver].discard(partition)
            sizes[giver] -= 1
            self._give(partition, taker)
            heapreplace(takers, (least + 1, taker_place, taker))
            if to_give[giver]:
                heapreplace(givers, (most + 1, giver_place, giver))
            else:
                heappop(givers)
            moves += 1
        return moves

    def _takers(self) -> list[tuple[int, int, int]]:
        """A heap: size, place among equals, number. Whoever came first in the order of sizes goes on coming first."""
        in_order = sorted([(self.sizes[number], number) for number in self.subscribers])
        return [(size, place, number) for place, (size, number) in enumerate(in_order)]

    def _give(self, partition: int, number: int) -> None:
        self.held.setdefault(number, set()).add(partition)
        self.sizes[number] += 1
