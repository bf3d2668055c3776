"""Rules that change committed offsets: committing, deleting and expiring them, and deleting groups."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from odradek.coordinator.groups.classic.group import ClassicGroup
from odradek.coordinator.groups.group_records import (
    CommittedOffset,
    decode_offset,
    offset_commit_key,
    offset_commit_value,
    offset_tombstone,
    plain_offset_value,
)
from odradek.coordinator.java_strings import java_length
from odradek.coordinator.runtime.coordinator_record import CoordinatorRecord
from odradek.protocol.errors import ErrorCode
from odradek.protocol.malformed import MalformedMessage
from odradek.protocol.sentinels import NO_TIMESTAMP

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Container, Iterable, Sequence
    from uuid import UUID

    from odradek.coordinator.groups.group import Committer, Group, PartitionCheck
    from odradek.coordinator.groups.group_shard import GroupShard
    from odradek.coordinator.runtime.shard_log import TransactionalWrite
    from odradek.metadata.entities import TopicImage
    from odradek.protocol.topic_partition import TopicPartition

FIRST_COMMIT_VERSION_WITH_UNKNOWN_GROUP = 9
MOST_GROUP_ID_CHARACTERS = 16 * 1024 * 1024
"""Limits the keys of one commit. Each has the group id, which may have 32,767 characters: thousands of partitions would
take hundreds of megabytes. A group id of 1,000 characters never exceeds it."""

_NONE = ErrorCode.NONE  # looking up an attribute of an enum costs more than comparing with it
_new_tuple = tuple.__new__  # half the time of a NamedTuple's constructor


class NewOffset(NamedTuple):
    topic: str
    topic_id: UUID
    partition: int
    offset: int
    leader_epoch: int
    metadata: str | None


def commit_offsets(
    shard: GroupShard,
    committer: Committer,
    offsets: Sequence[NewOffset],
    retention_ms: int,
    done: Callable[[list[ErrorCode]], None],
) -> list[ErrorCode] | None:
    """One error for each offset, in their order; None when the commit shares a batch: then `done` gets the errors.

    Commits commute: whether one is allowed depends on the group and its members, which no commit changes.
    """
    check = _check_committer(shard, committer, len(offsets))
    if check is not _NONE and isinstance(check, ErrorCode):
        return [check] * len(offsets)
    errors, changes, records = _build_records(shard, committer.group_id, offsets, retention_ms, check)
    if not records:
        return errors
    if len(records) > 1 and not shard.fits_in_batch(records):
        return _with_outcome(errors, shard.write_each(records))
    outcome = shard.write_shared(
        records,
        partial(shard.replay_offsets, committer.group_id, changes),
        lambda outcome: done(_with_outcome(errors, outcome)),
    )
    if outcome is _NONE:
        return errors
    return None if outcome is None else _with_outcome(errors, outcome)


def commit_in_transaction(
    shard: GroupShard, committer: Committer, offsets: Sequence[NewOffset], transaction: TransactionalWrite
) -> list[ErrorCode]:
    """One error for each offset, in their order. The offsets count when the transaction is committed."""
    check = _check_committer(shard, committer, len(offsets))
    if check is not _NONE and isinstance(check, ErrorCode):
        return [check] * len(offsets)
    errors, _, records = _build_records(shard, committer.group_id, offsets, NO_TIMESTAMP, check)
    if not records:
        return errors
    outcome = shard.write_in_transaction(records, transaction)
    if outcome is _NONE:
        shard.ensure_group(committer.group_id)
    return _with_outcome(errors, outcome)


def _build_records(
    shard: GroupShard,
    group_id: str,
    offsets: Sequence[NewOffset],
    retention_ms: int,
    check: ErrorCode | PartitionCheck,
) -> tuple[list[ErrorCode], list[tuple[str, int, bytes]], list[CoordinatorRecord]]:
    """The error of each offset; and of those that may be committed the change (topic, partition, value) and the
    record."""
    now_ms = shard.now_ms()
    expire_ms = NO_TIMESTAMP if retention_ms == NO_TIMESTAMP else now_ms + retention_ms
    errors: list[ErrorCode] = []
    changes: list[tuple[str, int, bytes]] = []
    records: list[CoordinatorRecord] = []
    for topic, topic_id, partition, offset, leader_epoch, metadata in offsets:
        if metadata and java_length(metadata) > shard.settings().offset_metadata_max_length:
            errors.append(ErrorCode.OFFSET_METADATA_TOO_LARGE)
            continue
        if not isinstance(check, ErrorCode) and (error := check(topic_id, partition)) is not _NONE:
            errors.append(error)
            continue
        errors.append(_NONE)
        if not metadata and expire_ms == NO_TIMESTAMP and topic_id.int:
            value = plain_offset_value(offset, leader_epoch, now_ms, topic_id.bytes)
        else:
            committed = CommittedOffset(offset, leader_epoch, metadata or "", now_ms, expire_ms, topic_id)
            value = offset_commit_value(committed)
        changes.append((topic, partition, value))
        records.append(_new_tuple(CoordinatorRecord, (offset_commit_key(group_id, topic, partition), value)))
    return errors, changes, records


def _with_outcome(errors: list[ErrorCode], outcome: ErrorCode) -> list[ErrorCode]:
    """An append that failed is the error of every offset that was allowed."""
    return errors if outcome is _NONE else [outcome if error is _NONE else error for error in errors]


def _check_committer(shard: GroupShard, committer: Committer, offset_count: int) -> ErrorCode | PartitionCheck:
    if len(committer.group_id) * offset_count > MOST_GROUP_ID_CHARACTERS:
        return ErrorCode.INVALID_COMMIT_OFFSET_SIZE
    group = shard.groups.get(committer.group_id)
    if group is None:
        # The first commit creates the group, so it does not commute with the next one before it is replayed.
        shard.append_pending()
        group = shard.groups.get(committer.group_id)
    if group is None:
        if committer.generation < 0:
            return _NONE  # a group without members exists from its first offset on
        if committer.version >= FIRST_COMMIT_VERSION_WITH_UNKNOWN_GROUP and not committer.is_transactional:
            return ErrorCode.GROUP_ID_NOT_FOUND
        return ErrorCode.ILLEGAL_GENERATION
    check = group.check_commit(committer)
    if check is _NONE and committer.member_id and isinstance(group, ClassicGroup):
        shard.touch(group, committer.member_id)
    return check


def delete_offsets(
    shard: GroupShard, group_id: str, partitions: Iterable[TopicPartition]
) -> ErrorCode | list[ErrorCode]:
    """One error for the group, or one error for each partition."""
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
        if (topic, partition) in committed or shard.is_unstable(group_id, topic, partition):
            records.append(offset_tombstone(group_id, topic, partition))
    error = shard.write_each(records)
    return answers if error is ErrorCode.NONE else error


def deletion_size(shard: GroupShard, group_id: str) -> int:
    """How many tombstones `delete_group` writes, about. Ten pending offsets of any group take as long as one."""
    return len(shard.offsets.partitions(group_id)) + shard.pending_offset_count // 10


def delete_group(shard: GroupShard, group_id: str) -> ErrorCode:
    group = shard.groups.get(group_id)
    if group is None:
        return ErrorCode.GROUP_ID_NOT_FOUND
    error = group.check_deletion()
    if error is not ErrorCode.NONE:
        return error
    pending = {(key.topic, key.partition) for key, _ in shard.pending_offsets(group_id)}
    partitions = [*shard.offsets.partitions(group_id), *pending.difference(shard.offsets.partitions(group_id))]
    offsets = [offset_tombstone(group_id, topic, partition) for topic, partition in partitions]
    return shard.write_each(offsets + group.tombstones())


def expire_offsets(shard: GroupShard, group_id: str) -> ErrorCode:
    """Remove expired offsets, and the group itself when it is empty and has no other offsets."""
    group = shard.groups.get(group_id)
    if group is None:
        return ErrorCode.NONE
    decision = shard.begin()
    offsets = shard.offsets.items(group_id)
    expired = _expired_offsets(group, offsets, decision.now_ms, decision.settings.offsets_retention_ms)
    expired = [each for each in expired if not shard.is_unstable(group_id, *each)]
    records = [offset_tombstone(group_id, topic, partition) for topic, partition in expired]
    is_unused = group.is_empty and len(expired) == len(shard.offsets.partitions(group_id))
    if is_unused and not shard.has_unstable_offsets(group_id):
        records += group.tombstones()
    return shard.write_each(records)


def forget_topics(shard: GroupShard, group_id: str, topics: Collection[TopicImage]) -> ErrorCode:
    """Remove the offsets of deleted topics: a new topic of the same name must not start at the old one's offsets. Those
    that an open transaction replaces are left to `forget_pending_offsets`."""
    names, topic_ids = {topic.name for topic in topics}, {topic.topic_id for topic in topics}
    return shard.write_each(
        [
            offset_tombstone(group_id, topic, partition)
            for topic, partition, committed in shard.offsets.of_topics(group_id, names)
            if _is_of(committed, topic_ids) and not shard.is_unstable(group_id, topic, partition)
        ]
    )


def forget_pending_offsets(shard: GroupShard, topics: Collection[TopicImage]) -> ErrorCode:
    """Remove the offsets of deleted topics that open transactions have committed, and those that they replace. Offsets
    of a new topic of the same name stay: they are part of their transaction."""
    names, topic_ids = {topic.name for topic in topics}, {topic.topic_id for topic in topics}
    return shard.write_each(
        [
            offset_tombstone(*key)
            for key, values in shard.pending_offsets()
            if key.topic in names and all(_is_value_of(value, topic_ids) for value in values)
        ]
    )


def _is_value_of(value: bytes | None, topic_ids: Container[UUID]) -> bool:
    try:
        return value is None or _is_of(decode_offset(value), topic_ids)
    except MalformedMessage:
        return False


def _is_of(committed: CommittedOffset, topic_ids: Container[UUID]) -> bool:
    """Whether the offset may be one of these topics: old clients and logs name no topic id."""
    return not committed.topic_id.int or committed.topic_id in topic_ids


def _expired_offsets(
    group: Group, offsets: Iterable[tuple[TopicPartition, CommittedOffset]], now_ms: int, retention_ms: int
) -> list[TopicPartition]:
    """The offsets that are too old to keep (KIP-211). Those of topics that a member subscribes to never expire."""
    base = group.expiry_base()
    if base is None:
        return []
    return [
        (topic, partition)
        for (topic, partition), committed in offsets
        if not group.is_subscribed_to(topic)
        and (
            # Clients from before KIP-211 choose the retention themselves.
            now_ms >= committed.expire_timestamp_ms
            if committed.expire_timestamp_ms != NO_TIMESTAMP
            else now_ms - base(committed) >= retention_ms
        )
    ]
