"""One consumer group (KIP-848): its members, its target assignment and its queries.

It has three kinds of epochs. The group's epoch counts changes of members, subscriptions and topics; the target's is the
group epoch for which partitions were last assigned; a member's is the target epoch that it has reached. Only records
change a group: those of the log and those of a `Draft`.
"""

from __future__ import annotations

import copy
import enum
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from odradek.coordinator.groups.consumer.members import ConsumerMember
from odradek.coordinator.groups.consumer.records import (
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataValue,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataValue,
    target_partitions,
    tombstone,
)
from odradek.coordinator.groups.consumer_protocol import CONSUMER_PROTOCOL_TYPE
from odradek.coordinator.groups.group import GroupKind, commit_time
from odradek.coordinator.groups.group_records import (
    ConsumerGroupKey,
    ConsumerGroupMemberKey,
    ConsumerGroupPartitionsKey,
    CurrentAssignmentKey,
    RegularExpressionKey,
    TargetAssignmentKey,
    TargetAssignmentMemberKey,
    decode_value,
)
from odradek.protocol.errors import ErrorCode
from odradek.protocol.refusal import Refusal
from odradek.protocol.sentinels import NO_EPOCH

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from uuid import UUID

    from odradek.coordinator.groups.consumer.members import PartitionEpochs, Partitions
    from odradek.coordinator.groups.group import Committer, Group, PartitionCheck
    from odradek.coordinator.groups.group_records import CommittedOffset, NewerKey
    from odradek.coordinator.runtime.coordinator_record import CoordinatorRecord
    from odradek.metadata.entities import TopicImage

FIRST_COMMIT_VERSION_WITH_MEMBER_EPOCH = 9
INITIAL_EPOCH = 1
NO_TARGET_TIMESTAMP_MS = 0  # the group has had no target assignment


class ConsumerState(enum.Enum):
    """The names are the protocol's (ConsumerGroupDescribe)."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"


class ResolvedPattern(NamedTuple):
    """Which topics a regular expression matched, in which version of the metadata, and when."""

    topics: frozenset[str]
    version: int
    timestamp_ms: int


class ConsumerGroup:
    kind = GroupKind.CONSUMER
    protocol_type = CONSUMER_PROTOCOL_TYPE

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.epoch = INITIAL_EPOCH
        self.metadata_hash = 0
        self.target_epoch = INITIAL_EPOCH
        self.target_timestamp_ms = NO_TARGET_TIMESTAMP_MS
        self.members: dict[str, ConsumerMember] = {}
        self.static_members: dict[str, str] = {}  # instance id -> member id
        self.targets: dict[str, Partitions] = {}
        self.patterns: dict[str, ResolvedPattern] = {}
        self.has_partition_metadata = False  # a record of an older Kafka, to be removed
        # The topics with which the hash was last computed and patterns last matched: no record holds them.
        self.hashed_topics: Mapping[str, TopicImage] | None = None
        self.matched_topics: Mapping[str, TopicImage] | None = None
        self.is_matching = False
        self._owners: dict[tuple[UUID, int], str] = {}
        self._classic_count = 0
        self._classic_protocols: Counter[str] = Counter()  # how many members speak each
        self._subscribed_topics: frozenset[str] | None = None

    def copy(self) -> ConsumerGroup:
        """Members and targets are immutable values, so only the tables are copied."""
        other = copy.copy(self)
        for name in ("members", "static_members", "targets", "patterns", "_owners", "_classic_protocols"):
            setattr(other, name, getattr(self, name).copy())
        return other

    # Queries

    @property
    def state(self) -> ConsumerState:
        if not self.members:
            return ConsumerState.EMPTY
        if self.epoch > self.target_epoch:
            return ConsumerState.ASSIGNING
        if all(member.is_reconciled_to(self.target_epoch) for member in self.members.values()):
            return ConsumerState.STABLE
        return ConsumerState.RECONCILING

    @property
    def state_name(self) -> str:
        return self.state.value

    @property
    def is_empty(self) -> bool:
        return not self.members

    def static_member(self, instance_id: str | None) -> ConsumerMember | None:
        return None if instance_id is None else self.members.get(self.static_members.get(instance_id, ""))

    def adopt(self, drafted: ConsumerGroup) -> None:
        """Take over the fields that no record holds, from a draft whose records are in the log."""
        self.hashed_topics = drafted.hashed_topics
        self.matched_topics = drafted.matched_topics

    def is_owned(self, topic_id: UUID, partition: int) -> bool:
        return (topic_id, partition) in self._owners

    def topics_of(self, member: ConsumerMember) -> frozenset[str]:
        """The member's topics, by name and by pattern. A pattern that was not matched has no topics."""
        resolved = self.patterns.get(member.topic_pattern)
        return member.topic_names if resolved is None else member.topic_names | resolved.topics

    @property
    def subscribed_topics(self) -> frozenset[str]:
        if self._subscribed_topics is None:
            by_name = {member.topic_names for member in self.members.values()}
            self._subscribed_topics = frozenset().union(*by_name, *(each.topics for each in self.patterns.values()))
        return self._subscribed_topics

    def is_subscribed_to(self, topic: str) -> bool:
        return topic in self.subscribed_topics

    def subscribers_of_pattern(self, pattern: str) -> int:
        return sum(member.topic_pattern == pattern for member in self.members.values())

    def preferred_assignor(self, default: str) -> str:
        """The assignor that most members prefer, among members that prefer one."""
        votes = Counter(member.assignor for member in self.members.values() if member.assignor is not None)
        return votes.most_common(1)[0][0] if votes else default

    def supports_classic_protocols(self, protocol_type: str, names: Iterable[str]) -> bool:
        """All members of the classic protocol must have an assignor in common, for the group to become classic."""
        if protocol_type != CONSUMER_PROTOCOL_TYPE:
            return False
        return any(self._classic_protocols[name] == self._classic_count for name in names)

    # Offsets and deletion

    def check_commit(self, committer: Committer) -> ErrorCode | PartitionCheck:
        if (committer.generation < 0 and self.is_empty) or committer.is_of_any_client:
            return ErrorCode.NONE  # an administrator, or a consumer that assigns its partitions itself
        member = self.members.get(committer.member_id)
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        knows_epochs = committer.is_transactional or committer.version >= FIRST_COMMIT_VERSION_WITH_MEMBER_EPOCH
        if member.classic is None and not knows_epochs:
            return ErrorCode.UNSUPPORTED_VERSION
        if committer.generation == member.epoch:
            return ErrorCode.NONE
        stale = ErrorCode.ILLEGAL_GENERATION if committer.is_transactional else _stale(member)
        if committer.generation > member.epoch:
            return stale
        holder, epoch = member, committer.generation

        def check_partition(topic_id: UUID, partition: int) -> ErrorCode:
            """A commit with an older epoch is accepted if the member has had the partition since that epoch."""
            since = holder.assignment_epoch(topic_id, partition)
            return ErrorCode.NONE if since is not None and epoch >= since else stale

        return check_partition

    def check_fetch(self, member_id: str | None, epoch: int) -> ErrorCode:
        if member_id is None and epoch < 0:
            return ErrorCode.NONE
        member = self.members.get(member_id or "")
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return ErrorCode.NONE if epoch == member.epoch else _stale(member)

    def check_offset_deletion(self) -> ErrorCode:
        return ErrorCode.NONE

    def check_deletion(self) -> ErrorCode:
        return ErrorCode.NONE if self.is_empty else ErrorCode.NON_EMPTY_GROUP

    def expiry_base(self) -> Callable[[CommittedOffset], int] | None:
        return commit_time

    # Changing

    def put_member(self, member: ConsumerMember) -> None:
        self._forget(member.member_id)
        self.members[member.member_id] = member
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id
        for topic_id, partition in _pairs(member.assigned, member.pending_revocation):
            self._owners[topic_id, partition] = member.member_id
        if member.classic is not None:
            self._classic_count += 1
            self._classic_protocols.update(member.classic.protocol_names)
        self._subscribed_topics = None

    def remove_member(self, member_id: str) -> None:
        self._forget(member_id)
        self.members.pop(member_id, None)
        self._subscribed_topics = None

    def _forget(self, member_id: str) -> None:
        """Update the tables that are not keyed by the member's id."""
        member = self.members.get(member_id)
        if member is None:
            return
        for pair in _pairs(member.assigned, member.pending_revocation):
            if self._owners.get(pair) == member_id:
                del self._owners[pair]
        if member.instance_id is not None and self.static_members.get(member.instance_id) == member_id:
            del self.static_members[member.instance_id]
        if member.classic is not None:
            self._classic_count -= 1
            self._classic_protocols -= Counter(member.classic.protocol_names)  # removes protocols that no member speaks

    def replay(self, key: NewerKey, value: bytes | None) -> None:
        """Take over one record of this group. The shard replays the record that removes the group."""
        match key:
            case ConsumerGroupKey() if value is not None:
                metadata = decode_value(ConsumerGroupMetadataValue, value)
                self.epoch, self.metadata_hash = metadata.epoch, metadata.metadata_hash
            case ConsumerGroupPartitionsKey():
                self.has_partition_metadata = value is not None
            case ConsumerGroupMemberKey(_, member_id):
                self._replay_member(member_id, value)
            case CurrentAssignmentKey(_, member_id):
                self._replay_assignment(member_id, value)
            case TargetAssignmentKey():
                self._replay_target(value)
            case TargetAssignmentMemberKey(_, member_id):
                if value is None:
                    self.targets.pop(member_id, None)
                else:
                    self.targets[member_id] = target_partitions(
                        decode_value(ConsumerGroupTargetAssignmentMemberValue, value)
                    )
            case RegularExpressionKey(_, pattern):
                self._replay_pattern(pattern, value)

    def _replay_member(self, member_id: str, value: bytes | None) -> None:
        if value is None:
            self.remove_member(member_id)
        else:
            member = self.members.get(member_id) or ConsumerMember(member_id=member_id)
            self.put_member(member.with_metadata(decode_value(ConsumerGroupMemberMetadataValue, value)))

    def _replay_assignment(self, member_id: str, value: bytes | None) -> None:
        member = self.members.get(member_id)
        if value is not None:
            member = member or ConsumerMember(member_id=member_id)
            self.put_member(member.with_assignment(decode_value(ConsumerGroupCurrentMemberAssignmentValue, value)))
        elif member is not None:
            self.put_member(member.with_assignment(_LEFT))

    def _replay_target(self, value: bytes | None) -> None:
        if value is None:
            self.target_epoch, self.target_timestamp_ms = NO_EPOCH, NO_TARGET_TIMESTAMP_MS
        else:
            metadata = decode_value(ConsumerGroupTargetAssignmentMetadataValue, value)
            self.target_epoch, self.target_timestamp_ms = metadata.assignment_epoch, metadata.assignment_timestamp

    def _replay_pattern(self, pattern: str, value: bytes | None) -> None:
        if value is None:
            self.patterns.pop(pattern, None)
        else:
            decoded = decode_value(ConsumerGroupRegularExpressionValue, value)
            self.patterns[pattern] = ResolvedPattern(frozenset(decoded.topics), decoded.version, decoded.timestamp)
        self._subscribed_topics = None

    def tombstones(self) -> list[CoordinatorRecord]:
        """The tombstones in the order that Kafka requires: members and assignments first, the group last."""
        group_id = self.group_id
        return [
            *(tombstone(CurrentAssignmentKey(group_id, member_id)) for member_id in self.members),
            *(tombstone(TargetAssignmentMemberKey(group_id, member_id)) for member_id in self.members),
            tombstone(TargetAssignmentKey(group_id)),
            *(tombstone(ConsumerGroupMemberKey(group_id, member_id)) for member_id in self.members),
            *(tombstone(RegularExpressionKey(group_id, pattern)) for pattern in self.patterns),
            tombstone(ConsumerGroupPartitionsKey(group_id)),
            tombstone(ConsumerGroupKey(group_id)),
        ]


_LEFT = ConsumerGroupCurrentMemberAssignmentValue(member_epoch=-1, previous_member_epoch=-1)


def no_consumer_group(group_id: str, group: Group | None) -> Refusal:
    kind = "not found" if group is None else "is not a consumer group"
    return Refusal(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} {kind}.")


def _stale(member: ConsumerMember) -> ErrorCode:
    return ErrorCode.STALE_MEMBER_EPOCH if member.classic is None else ErrorCode.ILLEGAL_GENERATION


def _pairs(*parts: PartitionEpochs) -> Iterable[tuple[UUID, int]]:
    return [(topic_id, partition) for part in parts for topic_id, epochs in part.items() for partition in epochs]
