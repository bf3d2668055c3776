"""The parts of an OffsetFetch request that are answered in one turn each: few topics and partitions of one group."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.handlers.cooperative_scheduling import ELEMENTS_PER_TURN
from odradek.protocol.messages.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponseGroup,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

ELEMENTS_OF_WHOLE_GROUP = 50  # a guess: how many offsets a group has is not known from the request
PARTITIONS_OF_PART = ELEMENTS_PER_TURN - 2  # besides their group and their topic


def count_elements(group: OffsetFetchRequestGroup) -> int:
    if group.topics is None:
        return ELEMENTS_OF_WHOLE_GROUP
    return 1 + sum(map(_count_topic, group.topics))


def _count_topic(topic: OffsetFetchRequestTopics) -> int:
    return 1 + len(topic.partition_indexes)


def cut_group(group: OffsetFetchRequestGroup) -> list[OffsetFetchRequestGroup]:
    """The same topics and partitions in their order, in requests of at most `ELEMENTS_PER_TURN` elements each."""
    if group.topics is None or count_elements(group) <= ELEMENTS_PER_TURN:
        return [group]
    parts: list[list[OffsetFetchRequestTopics]] = [[]]
    left = ELEMENTS_PER_TURN - 1
    for topic in group.topics:
        for piece in _cut_topic(topic):
            count = _count_topic(piece)
            if count > left:
                parts.append([])
                left = ELEMENTS_PER_TURN - 1
            parts[-1].append(piece)
            left -= count
    return [
        OffsetFetchRequestGroup(
            group_id=group.group_id, member_id=group.member_id, member_epoch=group.member_epoch, topics=topics
        )
        for topics in parts
    ]


def _cut_topic(topic: OffsetFetchRequestTopics) -> list[OffsetFetchRequestTopics]:
    indexes = topic.partition_indexes
    if len(indexes) <= PARTITIONS_OF_PART:
        return [topic]
    return [
        OffsetFetchRequestTopics(
            name=topic.name, topic_id=topic.topic_id, partition_indexes=indexes[start : start + PARTITIONS_OF_PART]
        )
        for start in range(0, len(indexes), PARTITIONS_OF_PART)
    ]


def join_group(
    requested: OffsetFetchRequestGroup, answers: Sequence[OffsetFetchResponseGroup]
) -> OffsetFetchResponseGroup:
    """The answer to the whole group, out of those to its parts. An error of one part is that of the group."""
    if len(answers) == 1:
        return answers[0]
    for answer in answers:
        if answer.error_code:
            return answer
    pieces = iter([topic for answer in answers for topic in answer.topics])
    topics = []
    for topic in requested.topics or ():
        whole = next(pieces)
        while len(whole.partitions) < len(topic.partition_indexes):
            whole.partitions += next(pieces).partitions
        topics.append(whole)
    return OffsetFetchResponseGroup(group_id=requested.group_id, topics=topics)
