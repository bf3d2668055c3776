"""Equal shares among members with different subscriptions.

Each member keeps the partitions that it may keep. Free partitions go to the subscriber with the fewest; topics with the
most partitions per subscriber come first, because they leave the least choice. Then, topic by topic and as long as it
helps, the member with the most gives to the member with the fewest: each move lowers a sum of squares, so this ends.
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
    """The holders of one topic's partitions. Members are numbers; `sizes`, shared by all topics, counts all partitions
    of each member."""

    def __init__(self, topic_id: UUID, partition_count: int, subscribers: list[int], sizes: list[int]) -> None:
        self.topic_id = topic_id
        self.partition_count = partition_count
        self.subscribers = subscribers
        self.sizes = sizes
        self.free = set(range(partition_count))
        self.held: dict[int, set[int]] = {}

    def choices(self) -> tuple[float, int, UUID]:
        """The lower, the less choice there is in assigning the topic."""
        return -self.partition_count / len(self.subscribers), len(self.subscribers), self.topic_id

    def keep(self, number: int, assigned: frozenset[int]) -> None:
        partitions = assigned & self.free
        self.free -= partitions
        self.held[number] = set(partitions)
        self.sizes[number] += len(partitions)

    def hand_out(self) -> None:
        """Each free partition goes to the subscriber with the fewest partitions."""
        takers = self._takers() if self.free else []
        for partition in sorted(self.free):
            size, rank, number = takers[0]
            self._give(partition, number)
            heapreplace(takers, (size + 1, rank, number))
        self.free.clear()

    def even_out(self) -> int:
        """Moves partitions from the member with the most to the one with the fewest until no move helps.
        Returns the number of moves."""
        sizes = self.sizes
        holders = [number for number, partitions in self.held.items() if partitions]
        if not holders or max([sizes[number] for number in holders]) - 1 <= min(
            [sizes[number] for number in self.subscribers]
        ):
            return 0
        takers = self._takers()
        givers = sorted((-size, -rank, number) for size, rank, number in takers if self.held.get(number))
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
        """A heap of (size, rank among equals, number). A member that was first in the order of sizes stays first."""
        in_order = sorted([(self.sizes[number], number) for number in self.subscribers])
        return [(size, rank, number) for rank, (size, number) in enumerate(in_order)]

    def _give(self, partition: int, number: int) -> None:
        self.held.setdefault(number, set()).add(partition)
        self.sizes[number] += 1
