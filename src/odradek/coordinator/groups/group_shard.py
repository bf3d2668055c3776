"""The groups of one partition of `__consumer_offsets`: which rule serves which request, and what each record means.

A request runs a rule, the rule makes a decision, and the runtime carries the decision out (`runtime/shard`). Replaying
the records of all decisions rebuilds the groups after a restart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.coordinator.groups.classic.group import ClassicGroup
from odradek.coordinator.groups.classic.join import Join, join
from odradek.coordinator.groups.classic.members import metadata_bytes
from odradek.coordinator.groups.classic.rebalance import (
    on_join_timeout,
    on_load,
    on_session_timeout,
    on_sync_timeout,
    on_unload,
)
from odradek.coordinator.groups.classic.sync import heartbeat, leave, sync
from odradek.coordinator.groups.committed_offsets import CommittedOffsets
from odradek.coordinator.groups.consumer import classic_members, fencing
from odradek.coordinator.groups.consumer.group import ConsumerGroup
from odradek.coordinator.groups.consumer.heartbeat import ConsumerHeartbeat
from odradek.coordinator.groups.consumer.heartbeat import heartbeat as consumer_heartbeat
from odradek.coordinator.groups.consumer.subscriptions import on_patterns_matched
from odradek.coordinator.groups.decision import Decision, TimerKey, TimerKind
from odradek.coordinator.groups.group import NO_MEMBER_ID
from odradek.coordinator.groups.group_records import (
    ConsumerGroupKey,
    GroupKey,
    OffsetKey,
    decode_group_metadata,
    decode_key,
    offset_commit_key,
    offset_key_prefix,
)
from odradek.protocol.errors import ErrorCode
from odradek.protocol.malformed import MalformedMessage
from odradek.protocol.messages.join_group import JoinGroupResponse
from odradek.protocol.messages.leave_group import MemberResponse
from odradek.protocol.messages.sync_group import SyncGroupResponse

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Sequence

    from odradek.coordinator.groups.classic.join_budget import JoinBudget
    from odradek.coordinator.groups.consumer.patterns import MatchedPatterns
    from odradek.coordinator.groups.decision import PatternMatch
    from odradek.coordinator.groups.group import Group
    from odradek.coordinator.groups.group_records import NewerKey
    from odradek.coordinator.groups.group_settings import GroupSettings
    from odradek.coordinator.runtime.decision import Waiter
    from odradek.coordinator.runtime.shard import Shard
    from odradek.metadata.entities import TopicImage
    from odradek.metadata.image import MetadataImage
    from odradek.protocol.messages.heartbeat import HeartbeatRequest
    from odradek.protocol.messages.leave_group import MemberIdentity
    from odradek.protocol.messages.sync_group import SyncGroupRequest


class GroupShard:
    """The state machine of groups: `groups` and `offsets` change by replayed records, and by rules that keep in memory
    what no record holds (members that are joining, requests that wait)."""

    def __init__(
        self,
        shard: Shard[GroupShard],
        now_ms: Callable[[], int],
        settings: Callable[[], GroupSettings],
        image: Callable[[], MetadataImage],
        match: Callable[[GroupShard, PatternMatch], None],
        joins: JoinBudget,
    ) -> None:
        self.groups: dict[str, Group] = {}
        self.offsets = CommittedOffsets()
        self.deleted_topics: list[TopicImage] = []  # their committed offsets are to be removed
        self.now_ms = now_ms
        self.settings = settings
        self._shard = shard
        self._image = image
        self._match = match
        self._joins = joins
        self.answer_directly = shard.answer_directly
        self.append_pending = shard.append_pending
        self.fits_in_batch = shard.fits_in_batch
        self.write = shard.write
        self.write_each = shard.write_each
        self.write_shared = shard.write_shared
        self.write_in_transaction = shard.write_in_transaction

    @property
    def is_active(self) -> bool:
        return self._shard.is_active

    # Decide, append, replay

    def begin(self) -> Decision:
        self._shard.append_pending()
        return Decision(self.now_ms(), self.settings(), self._image(), self.groups, self._shard.write_limit_bytes)

    def settle(self, decision: Decision) -> None:
        self._shard.settle(decision)
        for match in decision.matches:
            self._match(self, match)

    def answer(self, waiter: Waiter, response: object) -> None:
        self._shard.answer(waiter, response)

    def replay(self, key: bytes, value: bytes | None) -> None:
        """Take over one record. MalformedMessage when it is not a record of groups."""
        decoded = decode_key(key)
        if isinstance(decoded, OffsetKey):
            if value is None:
                self.offsets.remove(*decoded)
                return
            self.offsets.put(*decoded, value)
            self.ensure_group(decoded.group)
        elif isinstance(decoded, GroupKey):
            self._replay_classic(decoded, value)
        elif decoded is not None:
            self._replay_consumer(decoded, value)

    def replay_offsets(self, group_id: str, offsets: Sequence[tuple[str, int, bytes]]) -> None:
        """The same change as replaying the records of these commits: topic, partition and value of each."""
        self.offsets.put_all(group_id, offsets)
        self.ensure_group(group_id)

    def ensure_group(self, group_id: str) -> None:
        """A client that only commits offsets has a group without members, also while its transaction is open."""
        if group_id not in self.groups:
            self.groups[group_id] = ClassicGroup(group_id)

    def is_unstable(self, group_id: str, topic: str, partition: int) -> bool:
        """Whether an open transaction has committed an offset of this partition (KIP-447)."""
        pending = self._shard.pending_transactions
        return bool(pending) and pending.has(offset_commit_key(group_id, topic, partition))

    def has_unstable_offsets(self, group_id: str) -> bool:
        """Whether an open transaction has committed an offset of this group."""
        prefix = offset_key_prefix(group_id)
        return any(key.startswith(prefix) for key in self._shard.pending_transactions.all_keys())

    @property
    def pending_offset_count(self) -> int:
        """The number of pending offsets of all groups."""
        return len(self._shard.pending_transactions.all_keys())

    def pending_offsets(self, group_id: str | None = None) -> Iterator[tuple[OffsetKey, list[bytes | None]]]:
        """The offsets that open transactions have committed, of one group or of all, with the value of each
        transaction. Keys of other groups are not decoded."""
        pending = self._shard.pending_transactions
        prefix = b"" if group_id is None else offset_key_prefix(group_id)
        for key in [each for each in pending.all_keys() if each.startswith(prefix)]:
            try:
                decoded = decode_key(key)
            except MalformedMessage:
                continue  # written by another version; it is reported when its transaction is committed
            if isinstance(decoded, OffsetKey):
                yield decoded, pending.values(key)

    def _replay_classic(self, key: GroupKey, value: bytes | None) -> None:
        group = self.groups.get(key.group)
        if value is not None:
            metadata = decode_group_metadata(value)
            if not isinstance(group, ClassicGroup):
                group = self.groups[key.group] = ClassicGroup(key.group)
            group.replay(metadata)
        elif isinstance(group, ClassicGroup):
            del self.groups[key.group]

    def _replay_consumer(self, key: NewerKey, value: bytes | None) -> None:
        group = self.groups.get(key.group)
        if not isinstance(group, ConsumerGroup):
            if value is None:
                return
            group = self.groups[key.group] = ConsumerGroup(key.group)
        if value is None and isinstance(key, ConsumerGroupKey):
            del self.groups[key.group]
        else:
            group.replay(key, value)

    def on_load(self) -> None:
        for key, _ in self.pending_offsets():
            self.ensure_group(key.group)
        decision = self.begin()
        for group in self.groups.values():
            if isinstance(group, ClassicGroup):
                on_load(group, decision)
            elif isinstance(group, ConsumerGroup):
                fencing.on_load(group, decision)
        self.settle(decision)

    def on_unload(self) -> None:
        decision = self.begin()
        for group in self.groups.values():
            if isinstance(group, ClassicGroup):
                self._joins.forget(group)
                on_unload(group, decision)
        self.settle(decision)

    # Members of consumer groups

    def consumer_heartbeat(self, beat: ConsumerHeartbeat) -> None:
        decision = self.begin()
        consumer_heartbeat(self.groups.get(beat.request.group_id), beat, decision)
        self.settle(decision)

    def knows_pattern(self, group_id: str, pattern: str) -> bool:
        group = self.groups.get(group_id)
        return isinstance(group, ConsumerGroup) and pattern in group.patterns

    def patterns_matched(self, match: PatternMatch, matched: MatchedPatterns) -> None:
        group = self.groups.get(match.group_id)
        if isinstance(group, ConsumerGroup):
            decision = self.begin()
            on_patterns_matched(group, match, matched, decision)
            self.settle(decision)

    # Members that speak the classic protocol

    def join(self, attempt: Join) -> None:
        request = attempt.request
        group = self.groups.get(request.group_id)
        decision = self.begin()
        batch_limit_bytes = self._shard.log.batch_limit_bytes
        if metadata_bytes(attempt.protocols) > batch_limit_bytes:
            attempt.refuse(ErrorCode.UNKNOWN_SERVER_ERROR, request.member_id, decision)
            self.settle(decision)
            return
        if group is None or (isinstance(group, ConsumerGroup) and group.is_empty):
            group = self._create_group(group, attempt, decision)
        if isinstance(group, ClassicGroup):
            error = self._joins.check(group, attempt, batch_limit_bytes)
            if error is ErrorCode.NONE:
                join(group, attempt, decision)
            else:
                attempt.refuse(error, request.member_id, decision)
        elif isinstance(group, ConsumerGroup):
            classic_members.join(group, attempt, decision)
        elif group is not None:
            attempt.refuse(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, NO_MEMBER_ID, decision)
        self.settle(decision)

    def _create_group(self, former: Group | None, attempt: Join, decision: Decision) -> Group | None:
        """A group exists from its first record on, so no client has a member id in a group that does not exist."""
        group_id, member_id = attempt.request.group_id, attempt.request.member_id
        if member_id != NO_MEMBER_ID:
            attempt.refuse(ErrorCode.UNKNOWN_MEMBER_ID, member_id, decision)
            return None
        before = [] if former is None else former.tombstones()
        error = self.write([*before, ClassicGroup(group_id, decision.now_ms).record({})])
        if error is not ErrorCode.NONE:
            decision.answer(attempt.waiter, JoinGroupResponse(error_code=error))
            return None
        return self.groups[group_id]

    def sync(self, request: SyncGroupRequest, waiter: Waiter) -> None:
        group = self.groups.get(request.group_id)
        decision = self.begin()
        if isinstance(group, ClassicGroup):
            sync(group, request, waiter, decision)
        elif isinstance(group, ConsumerGroup):
            decision.answer(waiter, classic_members.sync(group, request, decision))
        else:
            decision.answer(waiter, SyncGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID))
        self.settle(decision)

    def heartbeat(self, request: HeartbeatRequest) -> ErrorCode:
        group = self.groups.get(request.group_id)
        decision = self.begin()
        if isinstance(group, ClassicGroup):
            error = heartbeat(group, request, decision)
        elif isinstance(group, ConsumerGroup):
            error = classic_members.heartbeat(group, request, decision)
        else:
            return ErrorCode.UNKNOWN_MEMBER_ID
        self.settle(decision)
        return error

    def leave(self, group_id: str, members: list[MemberIdentity]) -> list[MemberResponse]:
        group = self.groups.get(group_id)
        decision = self.begin()
        if isinstance(group, ClassicGroup):
            responses = leave(group, members, decision)
        elif isinstance(group, ConsumerGroup):
            responses = classic_members.leave(group, members, decision)
        else:
            responses = [
                MemberResponse(
                    member_id=member.member_id,
                    group_instance_id=member.group_instance_id,
                    error_code=ErrorCode.UNKNOWN_MEMBER_ID,
                )
                for member in members
            ]
        self.settle(decision)
        return responses

    def touch(self, group: ClassicGroup, member_id: str) -> None:
        """A commit of a member counts as a heartbeat."""
        member = group.members.get(member_id)
        if member is not None:
            key = TimerKey(TimerKind.SESSION, group.group_id, member_id)
            self._shard.timers.start(key, member.session_timeout_ms)

    def on_timer(self, key: Hashable) -> None:
        assert isinstance(key, TimerKey)
        group = self.groups.get(key.group_id)
        decision = self.begin()
        if isinstance(group, ClassicGroup):
            match key.kind:
                case TimerKind.JOIN:
                    on_join_timeout(group, decision)
                case TimerKind.SYNC:
                    on_sync_timeout(group, decision)
                case TimerKind.SESSION:
                    on_session_timeout(group, key.member_id, decision)
        elif isinstance(group, ConsumerGroup):
            fencing.on_timeout(group, key, decision)
        self.settle(decision)
