"""Committing, deleting and expiring offsets, and deleting groups: what changes a shard's offsets."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from odradek.coordinator.groups.classic.group import ClassicGroup
from odradek.coordinator.groups.group_records import (
    CommittedOffset,
    offset_commit_record,
    offset_tombstone,
)
from odradek.coordinator.java_strings import java_length
from odradek.coordinator.groups.offsets.offset_expiry import expired_offsets
from odradek.protocol.errors import ErrorCode
from odradek.protocol.sentinels import NO_TIMESTAMP

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence
    from uuid import UUID

    from odradek.coordinator.groups.group import Committer, PartitionCheck
    from odradek.coordinator.groups.group_records import CoordinatorRecord
    from odradek.coordinator.groups.group_shard import GroupShard
    from odradek.metadata.image import TopicImage
    from odradek.protocol.topic_partition import TopicPartition

FIRST_COMMIT_VERSION_WITH_UNKNOWN_GROUP = 9


class NewOffset(NamedTuple):
    topic: str
    topic_id: UUID
    partition: int
    offset: int
    leader_epoch: int
    metadata: str | None


def commit_offsets(
    shard: GroupShard, committer: Committer, offsets: Sequence[NewOffset], retention_ms: int = NO_TIMESTAMP
) -> list[ErrorCode]:
    """One answer for each offset, in their order."""
    check = _check_committer(shard, committer)
    if isinstance(check, ErrorCode) and check is not ErrorCode.NONE:
        return [check] * len(offsets)
    decision = shard.begin()
    expire_ms = NO_TIMESTAMP if retention_ms == NO_TIMESTAMP else decision.now_ms + retention_ms
    longest = decision.settings.offset_metadata_max_length
    answers: list[ErrorCode] = []
    records: list[CoordinatorRecord] = []
    for topic, topic_id, partition, offset, leader_epoch, metadata in offsets:
        if metadata is not None and java_length(metadata) > longest:
            answers.append(ErrorCode.OFFSET_METADATA_TOO_LARGE)
            continue
        if not isinstance(check, ErrorCode) and (error := check(topic_id, partition)) is not ErrorCode.NONE:
            answers.append(error)
            continue
        answers.append(ErrorCode.NONE)
        committed = CommittedOffset(offset, leader_epoch, metadata or "", decision.now_ms, expire_ms, topic_id)
        records.append(offset_commit_record(committer.group_id, topic, partition, committed))
    error = shard.write_each(records)
    if error is not ErrorCode.NONE:
        return [error if answer is ErrorCode.NONE else answer for answer in answers]
    return answers


def _check_committer(shard: GroupShard, committer: Committer) -> ErrorCode | PartitionCheck:
    group = shard.groups.get(committer.group_id)
    if group is None:
        if committer.generation < 0:
            return ErrorCode.NONE  # a group without members comes to be with its first offset
        if committer.version >= FIRST_COMMIT_VERSION_WITH_UNKNOWN_GROUP:
            return ErrorCode.GROUP_ID_NOT_FOUND
        return ErrorCode.ILLEGAL_GENERATION
    check = group.check_commit(committer)
    if check is ErrorCode.NONE and isinstance(group, ClassicGroup):
        shard.touch(group, committer.member_id)
    return check


def delete_offsets(
    shard: GroupShard, group_id: str, partitions: Iterable[TopicPartition]
) -> ErrorCode | list[ErrorCode]:
    """One error for the group, or one answer for each partition."""
    group = shard.groups.get(group_id)
    if group is None:
        return ErrorCode.GROUP_ID_NOT_FOUND
    error = group.check_offset_deletion()
    if error is not ErrorCode.NONE:
        return error
    committed = shard.offsets.partitions(group_id)
    answers: list[ErrorCode] = []
    records: list[CoordinatorRecord] = []
    for topic, partition in partitions:
        if group.is_subscribed_to(topic):
            answers.append(ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC)
            continue
        answers.append(ErrorCode.NONE)
        if (topic, partition) in committed:
            records.append(offset_tombstone(group_id, topic, partition))
    error = shard.write_each(records)
    return answers if error is ErrorCode.NONE else error


def delete_group(shard: GroupShard, group_id: str) -> ErrorCode:
    group = shard.groups.get(group_id)
    if group is None:
        return ErrorCode.GROUP_ID_NOT_FOUND
    error = group.check_deletion()
    if error is not ErrorCode.NONE:
        return error
    offsets = [offset_tombstone(group_id, topic, partition) for topic, partition in shard.offsets.partitions(group_id)]
    return shard.write_each(offsets + group.tombstones())


def expire_offsets(shard: GroupShard, group_id: str) -> ErrorCode:
    """Also the group itself, when it is empty and nothing is left of it."""
    group = shard.groups.get(group_id)
    if group is None:
        return ErrorCode.NONE
    decision = shard.begin()
    offsets = shard.offsets.items(group_id)
    expired = expired_offsets(group, offsets, decision.now_ms, decision.settings.offsets_retention_ms)
    records = [offset_tombstone(group_id, topic, partition) for topic, partition in expired]
    if group.is_empty and len(expired) == len(shard.offsets.partitions(group_id)):
        records += group.tombstones()
    return shard.write_each(records)


def forget_topics(shard: GroupShard, group_id: str, topics: Collection[TopicImage]) -> ErrorCode:
    """They were deleted: a new one of the same name must not begin where the old one ended."""
    names, topic_ids = {topic.name for topic in topics}, {topic.topic_id for topic in topics}
    return shard.write_each(
        [
            offset_tombstone(group_id, topic, partition)
            for topic, partition, committed in shard.offsets.of_topics(group_id, names)
            if not committed.topic_id.int or committed.topic_id in topic_ids
        ]
    )
