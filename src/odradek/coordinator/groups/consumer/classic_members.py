"""Members of a consumer group that speak the classic protocol: the broker assigns their partitions as for all members,
and JoinGroup, SyncGroup and Heartbeat return the assignment. None of the members leads, and no request waits."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from odradek.coordinator.groups.classic.join import requires_member_id
from odradek.coordinator.groups.consumer.draft import Draft
from odradek.coordinator.groups.consumer.fencing import fence
from odradek.coordinator.groups.consumer.members import ClassicClient, MemberState
from odradek.coordinator.groups.consumer.membership import (
    Identity,
    check_room,
    find_member,
    known_member,
    reconcile_member,
    restart_session,
    submit,
)
from odradek.coordinator.groups.consumer.migration import by_id, can_downgrade, downgrade
from odradek.coordinator.groups.consumer.subscriptions import Subscriber, refresh_subscriptions
from odradek.coordinator.groups.consumer.targets import update_target
from odradek.coordinator.groups.consumer_protocol import CONSUMER_PROTOCOL_TYPE, decode_subscription, encode_assignment
from odradek.coordinator.groups.decision import TimerKey, TimerKind
from odradek.coordinator.groups.group import NO_MEMBER_ID
from odradek.protocol.errors import ErrorCode
from odradek.protocol.malformed import MalformedMessage
from odradek.protocol.messages.join_group import JoinGroupResponse
from odradek.protocol.messages.leave_group import MemberResponse
from odradek.protocol.messages.sync_group import SyncGroupResponse
from odradek.protocol.refusal import Refusal

if TYPE_CHECKING:
    from odradek.coordinator.groups.classic.join import Join
    from odradek.coordinator.groups.consumer.group import ConsumerGroup
    from odradek.coordinator.groups.consumer.members import ConsumerMember, Partitions
    from odradek.coordinator.groups.consumer_protocol import Subscription
    from odradek.coordinator.groups.decision import Decision
    from odradek.protocol.messages.heartbeat import HeartbeatRequest
    from odradek.protocol.messages.leave_group import MemberIdentity
    from odradek.protocol.messages.sync_group import SyncGroupRequest

# JoinGroup


def join(group: ConsumerGroup, attempt: Join, decision: Decision) -> None:
    request = attempt.request
    is_new = request.member_id == NO_MEMBER_ID
    member_id = attempt.new_member_id if is_new else request.member_id
    error = _check_join(group, attempt, member_id, decision)
    if error is not ErrorCode.NONE:
        attempt.refuse(error, NO_MEMBER_ID, decision)
        return
    if is_new and requires_member_id(attempt):
        attempt.refuse(ErrorCode.MEMBER_ID_REQUIRED, member_id, decision)
        return
    try:
        # All of them must be readable, because any of them may be chosen if the group becomes a classic one.
        subscription, *_ = [decode_subscription(metadata) for _, metadata in attempt.protocols]
    except MalformedMessage:
        attempt.refuse(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, NO_MEMBER_ID, decision)
        return
    draft = Draft(group)
    may_be_new = is_new or request.group_instance_id is None
    before = find_member(draft, Identity(member_id, request.group_instance_id, True, may_be_new))
    if isinstance(before, Refusal):
        attempt.refuse(before.error, NO_MEMBER_ID, decision)
        return
    after = _updated(before, attempt, subscription)
    has_changed = refresh_subscriptions(draft, Subscriber(before, after, attempt.may_describe), decision)
    replaced = group.static_member(request.group_instance_id)
    others = [each for each in group.members.values() if each is not replaced]
    if replaced is not None and replaced.classic is None and can_downgrade(others, len(group.members), decision):
        rebalances = draft.group.target_epoch < draft.group.epoch
        if not rebalances:
            after = reconcile_member(draft, after, has_changed, _owned(subscription, decision), decision)
        downgrade(draft, (), rebalances, decision, partial(_answer_join, attempt, after, False))
        return
    update_target(draft, decision)
    after = reconcile_member(draft, after, has_changed, _owned(subscription, decision), decision)
    submit(draft, decision, partial(_answer_join, attempt, after, True))


def _check_join(group: ConsumerGroup, attempt: Join, member_id: str, decision: Decision) -> ErrorCode:
    if not decision.settings.migration_policy.allows_any:
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    if check_room(group, member_id, decision):
        return ErrorCode.GROUP_MAX_SIZE_REACHED
    if not group.supports_classic_protocols(attempt.request.protocol_type, [name for name, _ in attempt.protocols]):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    return ErrorCode.NONE


def _updated(member: ConsumerMember, attempt: Join, subscription: Subscription) -> ConsumerMember:
    request = attempt.request
    return replace(
        member,
        instance_id=request.group_instance_id or member.instance_id,
        rack_id=subscription.rack_id or member.rack_id,
        client_id=attempt.client_id,
        client_host=attempt.client_host,
        topic_names=frozenset(subscription.topics),
        topic_pattern="",
        rebalance_timeout_ms=request.rebalance_timeout_ms,
        classic=ClassicClient(request.session_timeout_ms, attempt.protocols),
    )


def _owned(subscription: Subscription, decision: Decision) -> Partitions:
    """A member that gave all partitions back before it joined owns none."""
    return by_id({each.topic: each.partitions for each in subscription.owned_partitions}, decision.image)


def _answer_join(
    attempt: Join, member: ConsumerMember, stays_consumer: bool, error: ErrorCode, decision: Decision
) -> None:
    if error is not ErrorCode.NONE:
        attempt.refuse(error, NO_MEMBER_ID, decision)
        return
    group_id, member_id = attempt.request.group_id, member.member_id
    decision.stop_timer(TimerKey(TimerKind.JOIN, group_id, member_id))
    if stays_consumer:
        restart_session(group_id, member, decision)
        decision.start_timer(TimerKey(TimerKind.SYNC, group_id, member_id), member.rebalance_timeout_ms)
    decision.answer(
        attempt.waiter,
        JoinGroupResponse(
            generation_id=member.epoch,
            protocol_type=CONSUMER_PROTOCOL_TYPE,
            protocol_name=attempt.protocols[0][0],
            member_id=member_id,
        ),
    )


# SyncGroup and Heartbeat


def _classic_member(
    group: ConsumerGroup, member_id: str, instance_id: str | None, generation: int
) -> ConsumerMember | ErrorCode:
    member = known_member(group, member_id, instance_id)
    if isinstance(member, Refusal):
        return member.error
    if member.classic is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    return member if generation == member.epoch else ErrorCode.ILLEGAL_GENERATION


def sync(group: ConsumerGroup, request: SyncGroupRequest, decision: Decision) -> SyncGroupResponse:
    member = _classic_member(group, request.member_id, request.group_instance_id, request.generation_id)
    if isinstance(member, ErrorCode):
        return SyncGroupResponse(error_code=member)
    assert member.classic is not None
    name, metadata = member.classic.protocols[0]
    if request.protocol_type not in (None, CONSUMER_PROTOCOL_TYPE) or request.protocol_name not in (None, name):
        return SyncGroupResponse(error_code=ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    if group.target_epoch > member.epoch and member.state is not MemberState.UNREVOKED_PARTITIONS:
        _await_join(group, member, decision)
        return SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
    decision.stop_timer(TimerKey(TimerKind.SYNC, group.group_id, member.member_id))
    restart_session(group.group_id, member, decision)
    topics = decision.image.topics_by_id
    assigned = {topics[each].name: epochs for each, epochs in member.assigned.items() if each in topics}
    return SyncGroupResponse(
        protocol_type=request.protocol_type,
        protocol_name=request.protocol_name,
        assignment=encode_assignment(assigned, metadata),
    )


def heartbeat(group: ConsumerGroup, request: HeartbeatRequest, decision: Decision) -> ErrorCode:
    member = _classic_member(group, request.member_id, request.group_instance_id, request.generation_id)
    if isinstance(member, ErrorCode):
        return member
    restart_session(group.group_id, member, decision)
    if not _must_rejoin(group, member):
        return ErrorCode.NONE
    _await_join(group, member, decision)
    return ErrorCode.REBALANCE_IN_PROGRESS


def _must_rejoin(group: ConsumerGroup, member: ConsumerMember) -> bool:
    """For a new target, to confirm that it gave partitions back, or to get partitions that are free."""
    if member.epoch < group.target_epoch or member.state is MemberState.UNREVOKED_PARTITIONS:
        return True
    return member.state is MemberState.UNRELEASED_PARTITIONS and not any(
        partition not in member.assigned.get(topic_id, {}) and group.is_owned(topic_id, partition)
        for topic_id, partitions in group.targets.get(member.member_id, {}).items()
        for partition in partitions
    )


def _await_join(group: ConsumerGroup, member: ConsumerMember, decision: Decision) -> None:
    """The timer starts with the first answer that asks the member to rejoin."""
    decision.ensure_timer(TimerKey(TimerKind.JOIN, group.group_id, member.member_id), member.rebalance_timeout_ms)


# LeaveGroup


def leave(group: ConsumerGroup, members: list[MemberIdentity], decision: Decision) -> list[MemberResponse]:
    """Each is removed or refused on its own; the group changes once, and when the write fails no member has left."""
    responses: list[MemberResponse] = []
    leaving: dict[str, ConsumerMember] = {}
    for identity in members:
        member = _find_leaving(group, identity)
        response = MemberResponse(member_id=identity.member_id, group_instance_id=identity.group_instance_id)
        if isinstance(member, Refusal):
            response.error_code = member.error
        else:
            leaving[member.member_id] = member
        responses.append(response)

    def finish(error: ErrorCode, _: Decision) -> None:
        for response in responses:
            response.error_code = response.error_code or error

    fence(group, list(leaving.values()), decision, finish)
    return responses


def _find_leaving(group: ConsumerGroup, identity: MemberIdentity) -> ConsumerMember | Refusal:
    """An administrator removes a static member by its instance id alone."""
    if identity.group_instance_id is not None and identity.member_id == NO_MEMBER_ID:
        holder = group.static_member(identity.group_instance_id)
        return holder or Refusal(ErrorCode.UNKNOWN_MEMBER_ID)
    return known_member(group, identity.member_id, identity.group_instance_id)
