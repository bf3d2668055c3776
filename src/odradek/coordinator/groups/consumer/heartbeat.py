"""ConsumerGroupHeartbeat: the one request of a member of a consumer group. With it the member joins, shows that it is
alive, reports its subscription and its partitions, gets its assignment, and leaves."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from odradek.coordinator.groups.consumer.draft import Draft
from odradek.coordinator.groups.consumer.fencing import fence
from odradek.coordinator.groups.consumer.group import ConsumerGroup, no_consumer_group
from odradek.coordinator.groups.consumer.members import JOIN_EPOCH, LEAVE_EPOCH, LEAVE_STATIC_EPOCH, MemberState
from odradek.coordinator.groups.consumer.membership import (
    Identity,
    check_room,
    find_member,
    known_member,
    reconcile_member,
    restart_session,
    submit,
)
from odradek.coordinator.groups.consumer.migration import open_group
from odradek.coordinator.groups.consumer.subscriptions import Subscriber, refresh_subscriptions
from odradek.coordinator.groups.consumer.targets import update_target
from odradek.coordinator.groups.decision import TimerKey, TimerKind
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from odradek.protocol.refusal import Refusal

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.coordinator.groups.consumer.members import ConsumerMember, PartitionEpochs, Partitions
    from odradek.coordinator.groups.consumer.patterns import MatchedPatterns
    from odradek.coordinator.groups.decision import Decision
    from odradek.coordinator.groups.group import Group
    from odradek.coordinator.runtime.decision import Waiter
    from odradek.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest


class ConsumerHeartbeat(NamedTuple):
    """One request with its client, its waiter, and the permissions of its sender."""

    request: ConsumerGroupHeartbeatRequest
    client_id: str
    client_host: str
    may_describe: Callable[[str], bool]
    waiter: Waiter
    matched: MatchedPatterns | None = None  # its pattern, when that is new to the group

    def refuse(self, refusal: Refusal, decision: Decision) -> None:
        error, message = refusal
        decision.answer(self.waiter, ConsumerGroupHeartbeatResponse(error_code=error, error_message=message))

    @property
    def is_full(self) -> bool:
        """Whether the request has all fields, as members send when they join and after a failure."""
        request = self.request
        has_subscription = request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None
        return request.rebalance_timeout_ms != -1 and has_subscription and request.topic_partitions is not None

    @property
    def subscription_bytes(self) -> int:
        return sum(map(len, self.request.subscribed_topic_names or ()))

    @property
    def owned(self) -> Partitions | None:
        partitions = self.request.topic_partitions
        return None if partitions is None else {each.topic_id: frozenset(each.partitions) for each in partitions}


def heartbeat(group: Group | None, beat: ConsumerHeartbeat, decision: Decision) -> None:
    if beat.request.member_epoch in (LEAVE_EPOCH, LEAVE_STATIC_EPOCH):
        refusal = _leave(group, beat, decision)
    else:
        refusal = _live(group, beat, decision)
    if refusal is not None:
        beat.refuse(refusal, decision)


def _live(group: Group | None, beat: ConsumerHeartbeat, decision: Decision) -> Refusal | None:
    request = beat.request
    is_joining = request.member_epoch == JOIN_EPOCH
    # The record of a subscription is built, read and compressed: with twice the size of a batch it takes about 40 ms.
    if request.subscribed_topic_names and beat.subscription_bytes > decision.write_limit_bytes() // 2:
        return Refusal(ErrorCode.UNKNOWN_SERVER_ERROR)
    draft = open_group(group, request.group_id, is_joining, decision)
    if isinstance(draft, Refusal):
        return draft
    refusal = check_room(draft.group, request.member_id, decision)
    if refusal is not None:
        return refusal
    member = find_member(draft, Identity(request.member_id, request.instance_id, False, is_joining))
    if isinstance(member, Refusal):
        return member
    refusal = _check_epoch(member, beat)
    if refusal is not None:
        return refusal
    after = _updated(member, beat)
    has_changed = refresh_subscriptions(draft, Subscriber(member, after, beat.may_describe, beat.matched), decision)
    update_target(draft, decision)
    after = reconcile_member(draft, after, has_changed, beat.owned, decision)
    has_assignment = is_joining or beat.is_full or after.assigned != member.assigned
    submit(draft, decision, partial(_answer, beat, after, has_assignment))
    return None


def _check_epoch(member: ConsumerMember, beat: ConsumerHeartbeat) -> Refusal | None:
    """Epoch zero is always accepted: a member that was fenced rejoins with it."""
    epoch = beat.request.member_epoch
    if member.state is MemberState.UNKNOWN and beat.owned != {}:
        return Refusal(ErrorCode.FENCED_MEMBER_EPOCH, "The member is in an unknown state and must join again.")
    if epoch in (JOIN_EPOCH, member.epoch):
        return None
    if epoch == member.previous_epoch and epoch < member.epoch and _is_within(beat.owned, member.assigned):
        return None  # it has not received the answer with the new epoch
    message = f"The member's epoch {epoch} is not the one known here ({member.epoch}). It must give up all and join."
    return Refusal(ErrorCode.FENCED_MEMBER_EPOCH, message)


def _is_within(owned: Partitions | None, assigned: PartitionEpochs) -> bool:
    if owned is None:
        return False
    return all(topic_id in assigned and some <= assigned[topic_id].keys() for topic_id, some in owned.items())


def _updated(member: ConsumerMember, beat: ConsumerHeartbeat) -> ConsumerMember:
    """The member with the fields of the request; fields that are absent have not changed."""
    request = beat.request
    names, pattern = request.subscribed_topic_names, request.subscribed_topic_regex
    return replace(
        member,
        instance_id=member.instance_id if request.instance_id is None else request.instance_id,
        rack_id=member.rack_id if request.rack_id is None else request.rack_id,
        client_id=beat.client_id,
        client_host=beat.client_host,
        topic_names=member.topic_names if names is None else frozenset(names),
        topic_pattern=member.topic_pattern if pattern is None else pattern,
        assignor=member.assignor if request.server_assignor is None else request.server_assignor,
        rebalance_timeout_ms=(
            member.rebalance_timeout_ms if request.rebalance_timeout_ms == -1 else request.rebalance_timeout_ms
        ),
        classic=None,
    )


def _answer(
    beat: ConsumerHeartbeat, member: ConsumerMember, has_assignment: bool, error: ErrorCode, decision: Decision
) -> None:
    if error is not ErrorCode.NONE:
        beat.refuse(Refusal(error), decision)
        return
    group_id = beat.request.group_id
    restart_session(group_id, member, decision)
    for kind in (TimerKind.JOIN, TimerKind.SYNC):  # timers of the classic protocol, which it may have spoken
        decision.stop_timer(TimerKey(kind, group_id, member.member_id))
    decision.answer(
        beat.waiter,
        ConsumerGroupHeartbeatResponse(
            member_id=member.member_id,
            member_epoch=member.epoch,
            heartbeat_interval_ms=decision.consumer_settings(group_id).heartbeat_interval_ms,
            assignment=_assignment(member.assigned) if has_assignment else None,
        ),
    )


def _assignment(assigned: PartitionEpochs) -> Assignment:
    topics = [TopicPartitions(topic_id=topic_id, partitions=sorted(epochs)) for topic_id, epochs in assigned.items()]
    return Assignment(topic_partitions=topics)


def _leave(group: Group | None, beat: ConsumerHeartbeat, decision: Decision) -> Refusal | None:
    request = beat.request
    if not isinstance(group, ConsumerGroup):
        return no_consumer_group(request.group_id, group)
    member = known_member(group, request.member_id, request.instance_id)
    if isinstance(member, Refusal):
        return member

    def answer(error: ErrorCode, decision: Decision) -> None:
        if error is not ErrorCode.NONE:
            beat.refuse(Refusal(error), decision)
            return
        response = ConsumerGroupHeartbeatResponse(member_id=request.member_id, member_epoch=request.member_epoch)
        decision.answer(beat.waiter, response)

    if request.member_epoch == LEAVE_STATIC_EPOCH:
        draft = Draft(group)
        draft.put_assignment(member.away())
        key = TimerKey(TimerKind.REVOCATION, group.group_id, member.member_id)
        draft.afterwards.append(lambda decision: decision.stop_timer(key))
        submit(draft, decision, answer)
    else:
        fence(group, [member], decision, answer)
    return None
