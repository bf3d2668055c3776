"""The records of consumer groups (KIP-848) in `__consumer_offsets`, byte for byte Kafka's.

Kafka writes partitions in the order of its hash tables, Odradek in ascending order; readers accept any order. The
partition metadata of a group is a record of Kafka 4.0 and older; it is removed, never read or written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.coordinator.groups.group_records import (
    ConsumerGroupKey,
    ConsumerGroupMemberKey,
    CurrentAssignmentKey,
    NewerKey,
    RegularExpressionKey,
    TargetAssignmentKey,
    TargetAssignmentMemberKey,
    encode_key,
    encode_value,
)
from odradek.coordinator.runtime.coordinator_record import CoordinatorRecord
from odradek.protocol.schema import (
    UUID,
    Message,
    Struct,
    array,
    bytes_,
    int8,
    int32,
    int64,
    string,
    struct,
    uuid,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

VERSION = 0  # of every value below


class ConsumerGroupMetadataValue(Message, flexible=0):
    epoch: int = int32()
    metadata_hash: int = int64(tag=0, tagged="0+")


class ClassicProtocol(Struct):
    name: str = string()
    metadata: bytes = bytes_()


class ClassicMemberMetadata(Struct):
    session_timeout_ms: int = int32()
    supported_protocols: list[ClassicProtocol] = array(ClassicProtocol)


class ConsumerGroupMemberMetadataValue(Message, flexible=0):
    """A member of the newer protocol must say `classic_member_metadata=None`: Kafka reads the field's absence as a
    classic member of defaults."""

    instance_id: str | None = string(nullable="0+", default=None)
    rack_id: str | None = string(nullable="0+", default=None)
    client_id: str = string()
    client_host: str = string()
    subscribed_topic_names: list[str] = array(string())
    subscribed_topic_regex: str | None = string(nullable="0+", default=None)
    rebalance_timeout_ms: int = int32(default=-1)
    server_assignor: str | None = string(nullable="0+", default=None)
    classic_member_metadata: ClassicMemberMetadata | None = struct(
        ClassicMemberMetadata, nullable="0+", tag=0, tagged="0+"
    )


class ConsumerGroupTargetAssignmentMetadataValue(Message, flexible=0):
    assignment_epoch: int = int32()
    assignment_timestamp: int = int64(tag=0, tagged="0+")


class TopicPartition(Struct):  # Kafka's name of this struct, although it holds several partitions
    topic_id: UUID = uuid()
    partitions: list[int] = array(int32())


class ConsumerGroupTargetAssignmentMemberValue(Message, flexible=0):
    topic_partitions: list[TopicPartition] = array(TopicPartition)


class TopicPartitions(Struct):
    topic_id: UUID = uuid()
    partitions: list[int] = array(int32())
    assignment_epochs: list[int] | None = array(int32(), nullable="0+", tag=0, tagged="0+")


class ConsumerGroupCurrentMemberAssignmentValue(Message, flexible=0):
    member_epoch: int = int32()
    previous_member_epoch: int = int32()
    state: int = int8()
    assigned_partitions: list[TopicPartitions] = array(TopicPartitions)
    partitions_pending_revocation: list[TopicPartitions] = array(TopicPartitions)


class ConsumerGroupRegularExpressionValue(Message, flexible=0):
    topics: list[str] = array(string())
    version: int = int64()
    timestamp: int = int64()


def tombstone(key: NewerKey) -> CoordinatorRecord:
    return CoordinatorRecord(encode_key(key), None)


def consumer_group_record(group: str, epoch: int, metadata_hash: int) -> CoordinatorRecord:
    return _record(ConsumerGroupKey(group), ConsumerGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash))


def member_record(group: str, member_id: str, metadata: ConsumerGroupMemberMetadataValue) -> CoordinatorRecord:
    """The names of the topics in `metadata` must be sorted, as Kafka does."""
    return _record(ConsumerGroupMemberKey(group, member_id), metadata)


def target_assignment_record(group: str, assignment_epoch: int, timestamp_ms: int) -> CoordinatorRecord:
    value = ConsumerGroupTargetAssignmentMetadataValue(
        assignment_epoch=assignment_epoch, assignment_timestamp=timestamp_ms
    )
    return _record(TargetAssignmentKey(group), value)


def target_assignment_member_record(
    group: str, member_id: str, partitions: Mapping[UUID, Iterable[int]]
) -> CoordinatorRecord:
    topics = [TopicPartition(topic_id=topic_id, partitions=sorted(partitions[topic_id])) for topic_id in partitions]
    value = ConsumerGroupTargetAssignmentMemberValue(topic_partitions=topics)
    return _record(TargetAssignmentMemberKey(group, member_id), value)


def current_assignment_record(
    group: str,
    member_id: str,
    *,
    member_epoch: int,
    previous_member_epoch: int,
    state: int,
    assigned: Mapping[UUID, Mapping[int, int]],
    pending_revocation: Mapping[UUID, Mapping[int, int]],
) -> CoordinatorRecord:
    """Each partition comes with the epoch at which this member got it."""
    value = ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=member_epoch,
        previous_member_epoch=previous_member_epoch,
        state=state,
        assigned_partitions=_with_epochs(assigned),
        partitions_pending_revocation=_with_epochs(pending_revocation),
    )
    return _record(CurrentAssignmentKey(group, member_id), value)


def regular_expression_record(
    group: str, pattern: str, topics: Iterable[str], version: int, timestamp_ms: int
) -> CoordinatorRecord:
    """`version` is that of the cluster's metadata in which the pattern matched these topics."""
    value = ConsumerGroupRegularExpressionValue(topics=sorted(topics), version=version, timestamp=timestamp_ms)
    return _record(RegularExpressionKey(group, pattern), value)


def target_partitions(value: ConsumerGroupTargetAssignmentMemberValue) -> dict[UUID, frozenset[int]]:
    return {topic.topic_id: frozenset(topic.partitions) for topic in value.topic_partitions}


def partitions_with_epochs(topics: Sequence[TopicPartitions], member_epoch: int) -> dict[UUID, dict[int, int]]:
    """An older Kafka wrote no epochs of partitions: the member's own is used, or 0 while a static member is away."""
    found = {}
    for topic in topics:
        epochs = topic.assignment_epochs or []
        if len(epochs) != len(topic.partitions):
            epochs = [max(member_epoch, 0)] * len(topic.partitions)
        found[topic.topic_id] = dict(zip(topic.partitions, epochs, strict=True))
    return found


def _with_epochs(assigned: Mapping[UUID, Mapping[int, int]]) -> list[TopicPartitions]:
    topics = []
    for topic_id, epochs in assigned.items():
        partitions = sorted(epochs)
        in_order = [epochs[partition] for partition in partitions]
        topics.append(TopicPartitions(topic_id=topic_id, partitions=partitions, assignment_epochs=in_order))
    return topics


def _record(key: NewerKey, value: Message) -> CoordinatorRecord:
    return CoordinatorRecord(encode_key(key), encode_value(value, VERSION))
