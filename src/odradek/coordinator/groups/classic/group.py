"""One classic group: its state, its members and its queries. The rules that move it from state to state are `join`,
`rebalance` and `sync` in this room; its durable part is one record."""

from __future__ import annotations

import enum
from collections import Counter
from typing import TYPE_CHECKING

from odradek.coordinator.groups.classic.members import ClassicMember, metadata_bytes, restore_member
from odradek.coordinator.groups.consumer_protocol import CONSUMER_PROTOCOL_TYPE, subscribed_topics
from odradek.coordinator.groups.group import NO_MEMBER_ID, GroupKind, commit_time
from odradek.coordinator.groups.group_records import (
    GroupMetadataValue,
    group_metadata_record,
    group_metadata_tombstone,
)
from odradek.metadata.streams import is_stream_topic, split_name
from odradek.protocol.errors import ErrorCode
from odradek.protocol.sentinels import NO_TIMESTAMP

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from odradek.coordinator.groups.classic.members import Protocols
    from odradek.coordinator.groups.group import Committer
    from odradek.coordinator.groups.group_records import CommittedOffset
    from odradek.coordinator.runtime.coordinator_record import CoordinatorRecord
    from odradek.coordinator.runtime.decision import Waiter


class ClassicState(enum.Enum):
    """The names are the protocol's (DescribeGroups)."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


# Looking up an attribute of an enum is slow.
_EMPTY = ClassicState.EMPTY
_NONE = ErrorCode.NONE


class ClassicGroup:
    """Changed only by the rules, inside one decision, and by replayed records."""

    kind = GroupKind.CLASSIC

    def __init__(self, group_id: str, now_ms: int = NO_TIMESTAMP) -> None:
        self.group_id = group_id
        self.state = ClassicState.EMPTY
        self.previous_state = ClassicState.DEAD
        self.state_timestamp_ms = now_ms
        self.generation = 0
        self.protocol_type: str | None = None
        self.protocol_name: str | None = None
        self.leader_id: str | None = None
        self.members: dict[str, ClassicMember] = {}
        self.static_members: dict[str, str] = {}  # instance id -> member id
        self.pending_members: set[str] = set()  # were given an id that they have not joined with (KIP-394)
        self.pending_syncs: set[str] = set()
        self.awaiting_join_count = 0
        self.subscribed_topics: frozenset[str] | None = None
        # A new group waits for more members: the present delay, and how much longer it may wait after it.
        self.initial_delay_ms = 0
        self.initial_remaining_ms = 0
        self.has_new_member = False
        self._protocol_counts: Counter[str] = Counter()
        self.metadata_bytes = 0  # of all protocols of all members

    # Queries

    @property
    def state_name(self) -> str:
        return self.state.value

    @property
    def is_empty(self) -> bool:
        return self.state is _EMPTY

    @property
    def uses_consumer_protocol(self) -> bool:
        return self.protocol_type == CONSUMER_PROTOCOL_TYPE

    @property
    def has_all_members_joined(self) -> bool:
        return len(self.members) == self.awaiting_join_count and not self.pending_members

    @property
    def can_rebalance(self) -> bool:
        return self.state in (ClassicState.STABLE, ClassicState.COMPLETING_REBALANCE, ClassicState.EMPTY)

    @property
    def rebalance_timeout_ms(self) -> int:
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    def find_member(self, member_id: str, instance_id: str | None) -> ClassicMember | None:
        """A static member may come without its member id."""
        if member_id == NO_MEMBER_ID and instance_id is not None:
            member_id = self.static_members.get(instance_id, NO_MEMBER_ID)
        return self.members.get(member_id)

    def check_member(self, member_id: str, instance_id: str | None) -> ErrorCode:
        """A member id that another client with the same instance id has replaced is fenced (KIP-345)."""
        if instance_id is not None:
            holder = self.static_members.get(instance_id)
            if holder is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            if holder != member_id:
                return ErrorCode.FENCED_INSTANCE_ID
        return ErrorCode.NONE if member_id in self.members else ErrorCode.UNKNOWN_MEMBER_ID

    def check_commit(self, committer: Committer) -> ErrorCode:
        _, member_id, instance_id, generation, _, _ = committer
        if (generation < 0 and self.state is _EMPTY) or committer.is_of_any_client:
            return _NONE  # an administrator, or a consumer that assigns its partitions itself
        if generation < 0 and member_id == NO_MEMBER_ID and instance_id is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        error = self.check_member(member_id, instance_id)
        if error is not ErrorCode.NONE:
            return error
        if generation != self.generation:
            return ErrorCode.ILLEGAL_GENERATION
        if self.state is ClassicState.COMPLETING_REBALANCE and not committer.is_transactional:
            return ErrorCode.REBALANCE_IN_PROGRESS
        return ErrorCode.NONE

    def check_fetch(self, member_id: str | None, epoch: int) -> ErrorCode:  # noqa: ARG002 - the shape of all groups
        return ErrorCode.NONE

    def check_offset_deletion(self) -> ErrorCode:
        if self.is_empty or self.uses_consumer_protocol:
            return ErrorCode.NONE
        return ErrorCode.NON_EMPTY_GROUP

    def check_deletion(self) -> ErrorCode:
        return ErrorCode.NONE if self.is_empty else ErrorCode.NON_EMPTY_GROUP

    def is_subscribed_to(self, topic: str) -> bool:
        """A group of consumers whose subscriptions cannot be decoded counts as subscribed to every topic. Members that
        name a topic of a stream by its alias have subscribed to it."""
        if self.subscribed_topics is None:
            return self.uses_consumer_protocol
        if topic in self.subscribed_topics:
            return True
        return is_stream_topic(topic) and split_name(topic).alias in self.subscribed_topics

    def expiry_base(self) -> Callable[[CommittedOffset], int] | None:
        """KIP-211: from when the group became empty, or from the commit when no member subscribes to the topic."""
        if self.protocol_type is None:
            return commit_time
        if self.is_empty:
            emptied_ms = self.state_timestamp_ms
            return commit_time if emptied_ms == NO_TIMESTAMP else lambda _: emptied_ms
        if self.uses_consumer_protocol and self.subscribed_topics is not None and self.state is ClassicState.STABLE:
            return commit_time
        return None

    def supports(self, protocol_type: str, protocol_names: Iterable[str]) -> bool:
        """Whether a member with these protocols can be part of the group: all members must have one in common."""
        if self.is_empty:
            return bool(protocol_type) and any(True for _ in protocol_names)
        if self.protocol_type != protocol_type:
            return False
        return any(self._protocol_counts[name] == len(self.members) for name in protocol_names)

    def select_protocol(self) -> str:
        """Each member votes for its first protocol that all support; most votes win, the earliest among equals."""
        count = len(self.members)
        candidates = {name for name, supporters in self._protocol_counts.items() if supporters == count}
        votes = Counter(vote for member in self.members.values() if (vote := member.vote(candidates)) is not None)
        return votes.most_common(1)[0][0]

    # Members

    def add(self, member: ClassicMember, protocol_type: str, waiter: Waiter | None = None) -> None:
        if not self.members:
            self.protocol_type = protocol_type
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id
        if self.leader_id is None:
            self.leader_id = member.member_id
        self.members[member.member_id] = member
        self._count_protocols(member)
        self.pending_members.discard(member.member_id)
        self.await_join(member, waiter)

    def _count_protocols(self, member: ClassicMember) -> None:
        self._protocol_counts.update(member.protocol_names)
        self.metadata_bytes += metadata_bytes(member.protocols)

    def _discount_protocols(self, member: ClassicMember) -> None:
        self._protocol_counts -= Counter(member.protocol_names)
        self.metadata_bytes -= metadata_bytes(member.protocols)

    def await_join(self, member: ClassicMember, waiter: Waiter | None) -> None:
        """The only method that changes the number of waiting joins."""
        self.awaiting_join_count += (waiter is not None) - (member.awaiting_join is not None)
        member.awaiting_join = waiter

    def update(
        self,
        member: ClassicMember,
        protocols: Protocols,
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
        waiter: Waiter | None,
    ) -> None:
        self._discount_protocols(member)
        member.protocols = protocols
        self._count_protocols(member)
        member.rebalance_timeout_ms = rebalance_timeout_ms
        member.session_timeout_ms = session_timeout_ms
        self.await_join(member, waiter)

    def remove(self, member_id: str) -> None:
        member = self.members.pop(member_id, None)
        if member is not None:
            self.await_join(member, None)
            self._discount_protocols(member)
            if member.instance_id is not None:
                del self.static_members[member.instance_id]
        if self.leader_id == member_id:
            self.leader_id = next(iter(self.members), None)
        self.pending_members.discard(member_id)
        self.pending_syncs.discard(member_id)

    def rename(self, member: ClassicMember, new_member_id: str) -> None:
        """A static member rejoined and got a new id; it keeps its assignment and its leadership."""
        old_member_id = member.member_id
        del self.members[old_member_id]
        member.member_id = new_member_id
        self.members[new_member_id] = member
        if self.leader_id == old_member_id:
            self.leader_id = new_member_id
        if member.instance_id is not None:
            self.static_members[member.instance_id] = new_member_id

    def elect_joined_leader(self) -> bool:
        """The leader stays if it has joined, otherwise the first member that has joined leads; False when none has."""
        leader = self.members.get(self.leader_id or NO_MEMBER_ID)
        if leader is None or leader.awaiting_join is None:
            joined = next((each for each in self.members.values() if each.awaiting_join is not None), None)
            if joined is None:
                return False
            self.leader_id = joined.member_id
        return True

    # States

    def move_to(self, state: ClassicState, now_ms: int) -> None:
        self.previous_state = self.state
        self.state = state
        self.state_timestamp_ms = now_ms

    def begin_generation(self, now_ms: int) -> None:
        self.generation += 1
        self.pending_syncs.clear()
        if self.members:
            self.protocol_name = self.select_protocol()
            self.move_to(ClassicState.COMPLETING_REBALANCE, now_ms)
        else:
            self.protocol_name = None
            self.move_to(ClassicState.EMPTY, now_ms)
        self.subscribed_topics = self._find_subscribed_topics()

    def _find_subscribed_topics(self) -> frozenset[str] | None:
        if not self.uses_consumer_protocol:
            return None
        topics: set[str] = set()
        for member in self.members.values():
            subscription = subscribed_topics(member.metadata(self.protocol_name))
            if subscription is None:
                return None
            topics |= subscription
        return frozenset(topics)

    # Records

    def record(self, assignments: Mapping[str, bytes]) -> CoordinatorRecord:
        """The group as a restart restores it, with these assignments by member id."""
        name = self.protocol_name
        members = [] if name is None else list(self.members.values())
        return group_metadata_record(
            self.group_id,
            GroupMetadataValue(
                protocol_type=self.protocol_type or "",
                generation=self.generation,
                protocol=name,
                leader=self.leader_id,
                current_state_timestamp=self.state_timestamp_ms,
                members=[member.stored(name or "", assignments.get(member.member_id, b"")) for member in members],
            ),
        )

    def replay(self, value: GroupMetadataValue) -> None:
        """Take over the record. Members that the group has keep what no record holds: waiting requests, and protocols
        that were not chosen."""
        stored = {member.member_id: member for member in value.members}
        for member_id in [each for each in self.members if each not in stored]:
            self.remove(member_id)
        for member_id, metadata in stored.items():
            member = self.members.get(member_id)
            restored = restore_member(metadata, value.protocol or "")
            if member is None:
                self.add(restored, value.protocol_type)
                continue
            member.assignment = metadata.assignment
            is_same = member.metadata(value.protocol) == metadata.subscription
            protocols = member.protocols if is_same else restored.protocols
            timeouts = restored.rebalance_timeout_ms, restored.session_timeout_ms
            self.update(member, protocols, *timeouts, member.awaiting_join)
        self.generation = value.generation
        self.protocol_type = value.protocol_type or None
        self.protocol_name = value.protocol
        self.leader_id = value.leader
        self.previous_state = self.state
        self.state = ClassicState.STABLE if stored else ClassicState.EMPTY
        self.state_timestamp_ms = value.current_state_timestamp
        self.subscribed_topics = self._find_subscribed_topics()

    def tombstones(self) -> list[CoordinatorRecord]:
        return [group_metadata_tombstone(self.group_id)]
