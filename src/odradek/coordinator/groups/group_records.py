"""The records of `__consumer_offsets`, byte for byte Kafka's: a key begins with the kind of the record, a value with
the version of its layout; a key without a value (a tombstone) removes the earlier records of that key."""

from __future__ import annotations

import enum
import functools
import struct
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, TypeVar

from odradek.coordinator.runtime.coordinator_record import CoordinatorRecord
from odradek.protocol.malformed import MalformedMessage
from odradek.protocol.schema import UUID, Message, Struct, array, bytes_, int32, int64, string, uuid
from odradek.protocol.sentinels import NO_TIMESTAMP, NO_TOPIC_ID

if TYPE_CHECKING:
    from odradek.protocol.schema import Part

M = TypeVar("M", bound=Message)


# The versions that Kafka 4.3 writes. All versions that Kafka 4.3 reads are read here.
GROUP_METADATA_VERSION = 3
OFFSET_COMMIT_VERSION = 4
OFFSET_COMMIT_VERSION_WITH_EXPIRY = 1


class RecordType(enum.IntEnum):
    """The first two bytes of a key. The numbers between are those of share and streams groups."""

    LEGACY_OFFSET_COMMIT = 0
    OFFSET_COMMIT = 1
    GROUP_METADATA = 2
    CONSUMER_GROUP_METADATA = 3
    CONSUMER_GROUP_PARTITION_METADATA = 4
    CONSUMER_GROUP_MEMBER_METADATA = 5
    CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA = 6
    CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER = 7
    CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT = 8
    CONSUMER_GROUP_REGULAR_EXPRESSION = 16


_OFFSET_COMMITS = (1, 0)  # numbers of RecordType: looking up a member of an enumeration costs more than the rest
# Version, offset, leader epoch, empty metadata, commit timestamp; one tagged field, tag 0, 16 bytes: the topic's id.
_PLAIN_OFFSET = struct.Struct(">hqibqbbb16s")
_pack_plain_offset = _PLAIN_OFFSET.pack
_partition = struct.Struct(">i").unpack_from


class OffsetCommitKey(Message):
    group: str = string()
    topic: str = string()
    partition: int = int32()


class OffsetCommitValue(Message, versions=(0, 4), flexible=4):
    offset: int = int64()
    leader_epoch: int = int32(versions="3+", default=-1)
    metadata: str = string()
    commit_timestamp: int = int64()
    expire_timestamp: int = int64(versions="1", default=-1)
    topic_id: UUID = uuid(versions="4+", tag=0, tagged="4+")


class GroupMetadataKey(Message):
    group: str = string()


class MemberMetadata(Struct):
    member_id: str = string()
    group_instance_id: str | None = string(versions="3+", nullable="3+", default=None)
    client_id: str = string()
    client_host: str = string()
    rebalance_timeout: int = int32(versions="1+", default=-1)
    session_timeout: int = int32()
    subscription: bytes = bytes_()
    assignment: bytes = bytes_()


class GroupMetadataValue(Message, versions=(0, 4), flexible=4):
    protocol_type: str = string()
    generation: int = int32()
    protocol: str | None = string(nullable="0+")
    leader: str | None = string(nullable="0+")
    current_state_timestamp: int = int64(versions="2+", default=-1)
    members: list[MemberMetadata] = array(MemberMetadata)


class CommittedOffset(NamedTuple):
    """The offset that a group committed for one partition, and when."""

    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp_ms: int
    expire_timestamp_ms: int = NO_TIMESTAMP
    topic_id: UUID = NO_TOPIC_ID


def offset_commit_value(committed: CommittedOffset) -> bytes:
    offset, leader_epoch, metadata, timestamp_ms, expire_ms, topic_id = committed
    if not metadata and expire_ms == NO_TIMESTAMP and topic_id.int:
        return plain_offset_value(offset, leader_epoch, timestamp_ms, topic_id.bytes)
    value = OffsetCommitValue(
        offset=offset,
        leader_epoch=leader_epoch,
        metadata=metadata,
        commit_timestamp=timestamp_ms,
        expire_timestamp=expire_ms,
        topic_id=topic_id,
    )
    has_expiry = expire_ms != NO_TIMESTAMP
    return encode_value(value, OFFSET_COMMIT_VERSION_WITH_EXPIRY if has_expiry else OFFSET_COMMIT_VERSION)


def plain_offset_value(offset: int, leader_epoch: int, timestamp_ms: int, topic_id: bytes) -> bytes:
    """The value of a commit without metadata and without an expiry of its own, for a topic with an id: most commits."""
    return _pack_plain_offset(OFFSET_COMMIT_VERSION, offset, leader_epoch, 1, timestamp_ms, 1, 0, 16, topic_id)


def offset_tombstone(group: str, topic: str, partition: int) -> CoordinatorRecord:
    return CoordinatorRecord(offset_commit_key(group, topic, partition), None)


def group_metadata_record(group: str, value: GroupMetadataValue) -> CoordinatorRecord:
    key = _join(RecordType.GROUP_METADATA, GroupMetadataKey(group=group).encode(0))
    return CoordinatorRecord(key, encode_value(value, GROUP_METADATA_VERSION))


def group_metadata_tombstone(group: str) -> CoordinatorRecord:
    return CoordinatorRecord(_join(RecordType.GROUP_METADATA, GroupMetadataKey(group=group).encode(0)), None)


class OffsetKey(NamedTuple):
    group: str
    topic: str
    partition: int


class GroupKey(NamedTuple):
    group: str


class ConsumerGroupKey(NamedTuple):
    group: str


class ConsumerGroupPartitionsKey(NamedTuple):
    group: str


class ConsumerGroupMemberKey(NamedTuple):
    group: str
    member_id: str


class TargetAssignmentKey(NamedTuple):
    group: str


class TargetAssignmentMemberKey(NamedTuple):
    group: str
    member_id: str


class CurrentAssignmentKey(NamedTuple):
    group: str
    member_id: str


class RegularExpressionKey(NamedTuple):
    group: str
    pattern: str


_OfGroup: TypeAlias = ConsumerGroupKey | ConsumerGroupPartitionsKey | TargetAssignmentKey
_InGroup: TypeAlias = ConsumerGroupMemberKey | TargetAssignmentMemberKey | CurrentAssignmentKey | RegularExpressionKey
NewerKey: TypeAlias = _OfGroup | _InGroup

_KEYS_OF_GROUP: dict[int, type[_OfGroup]] = {
    RecordType.CONSUMER_GROUP_METADATA: ConsumerGroupKey,
    RecordType.CONSUMER_GROUP_PARTITION_METADATA: ConsumerGroupPartitionsKey,
    RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA: TargetAssignmentKey,
}
_KEYS_IN_GROUP: dict[int, type[_InGroup]] = {
    RecordType.CONSUMER_GROUP_MEMBER_METADATA: ConsumerGroupMemberKey,
    RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER: TargetAssignmentMemberKey,
    RecordType.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT: CurrentAssignmentKey,
    RecordType.CONSUMER_GROUP_REGULAR_EXPRESSION: RegularExpressionKey,
}
_NUMBERS: dict[type[NewerKey], int] = {key: number for number, key in (_KEYS_OF_GROUP | _KEYS_IN_GROUP).items()}


class KeyInGroup(Message):
    """The key of a member or of a pattern: all have this layout."""

    group: str = string()
    name: str = string()


def encode_key(key: NewerKey) -> bytes:
    group, *name = key
    message = KeyInGroup(group=group, name=name[0]) if name else GroupMetadataKey(group=group)
    return _join(_NUMBERS[type(key)], message.encode(0))


def decode_key(key: bytes) -> OffsetKey | GroupKey | NewerKey | None:
    """None for a kind of record that this broker does not know; MalformedMessage for bytes that are not a key."""
    number = _number(key)
    if number in _OFFSET_COMMITS:
        # A start may read a million of these keys: the names of group and topic repeat, only the partition differs.
        group, topic = _decode_names(key[:-4])
        return OffsetKey(group, topic, _partition(key, len(key) - 4)[0])
    if number == RecordType.GROUP_METADATA:
        return GroupKey(GroupMetadataKey.decode(memoryview(key), 2, 0).group)
    if (key_of_group := _KEYS_OF_GROUP.get(number)) is not None:
        return key_of_group(GroupMetadataKey.decode(memoryview(key), 2, 0).group)
    if (key_in_group := _KEYS_IN_GROUP.get(number)) is not None:
        decoded = KeyInGroup.decode(memoryview(key), 2, 0)
        return key_in_group(decoded.group, decoded.name)
    return None


@functools.lru_cache(maxsize=4096)
def _decode_names(key_without_partition: bytes) -> tuple[str, str]:
    decoded = OffsetCommitKey.decode(memoryview(key_without_partition + b"\0\0\0\0"), 2, 0)
    return decoded.group, decoded.topic


def check_offset(value: bytes) -> None:
    """MalformedMessage when `decode_offset` would raise it."""
    if not _is_plain_offset(value):
        decode_offset(value)


def decode_offset(value: bytes) -> CommittedOffset:
    if _is_plain_offset(value):
        _, offset, leader_epoch, _, timestamp_ms, _, _, _, topic_id = _PLAIN_OFFSET.unpack(value)
        return CommittedOffset(offset, leader_epoch, "", timestamp_ms, NO_TIMESTAMP, _topic_id(topic_id))
    decoded = decode_value(OffsetCommitValue, value)
    return CommittedOffset(
        decoded.offset,
        decoded.leader_epoch,
        decoded.metadata,
        decoded.commit_timestamp,
        decoded.expire_timestamp,
        decoded.topic_id,
    )


def _is_plain_offset(value: bytes) -> bool:
    """Version 4, no metadata, and the topic's id as the only tagged field: most commits, recognized by a few bytes."""
    return len(value) == 42 and value[:2] == b"\0\4" and value[14] == 1 and value[23:26] == b"\1\0\x10"


@functools.lru_cache(maxsize=4096)
def _topic_id(data: bytes) -> UUID:
    return UUID(bytes=data)


def decode_group_metadata(value: bytes) -> GroupMetadataValue:
    return decode_value(GroupMetadataValue, value)


@functools.lru_cache(maxsize=4096)
def offset_commit_key(group: str, topic: str, partition: int) -> bytes:
    return _join(RecordType.OFFSET_COMMIT, OffsetCommitKey(group=group, topic=topic, partition=partition).encode(0))


def offset_key_prefix(group: str) -> bytes:
    """How the key of every committed offset of this group begins; no other key begins with it."""
    return offset_commit_key(group, "", 0)[: -len(b"\0\0" + b"\0\0\0\0")]  # without topic and partition


def _join(number: int, parts: list[Part]) -> bytes:
    return number.to_bytes(2, "big") + b"".join(parts)  # type: ignore[arg-type]  # these messages hold no slices


def _number(data: bytes) -> int:
    if len(data) < 2:
        raise MalformedMessage(f"{len(data)} bytes are no record of a coordinator")
    return int.from_bytes(data[:2], "big", signed=True)


def encode_value(value: Message, version: int) -> bytes:
    return _join(version, value.encode(version))


def decode_value(message: type[M], value: bytes) -> M:
    version = _number(value)
    if not message.versions[0] <= version <= message.versions[1]:
        raise MalformedMessage(f"{message.__name__} has no version {version}")
    return message.decode(memoryview(value), 2, version)
