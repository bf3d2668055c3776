"""SyncGroup, Heartbeat and LeaveGroup in a classic group."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from odradek.coordinator.groups.classic.group import ClassicGroup, ClassicState
from odradek.coordinator.groups.classic.rebalance import (
    answer_join,
    answer_sync,
    complete_if_all_joined,
    prepare_rebalance,
    reject_assignment,
    restart_session,
)
from odradek.coordinator.groups.decision import TimerKey, TimerKind
from odradek.coordinator.groups.group import NO_MEMBER_ID
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.join_group import JoinGroupResponse
from odradek.protocol.messages.leave_group import MemberResponse
from odradek.protocol.messages.sync_group import SyncGroupResponse

if TYPE_CHECKING:
    from odradek.coordinator.groups.decision import Decision
    from odradek.coordinator.runtime.decision import Waiter
    from odradek.protocol.messages.heartbeat import HeartbeatRequest
    from odradek.protocol.messages.leave_group import MemberIdentity
    from odradek.protocol.messages.sync_group import SyncGroupRequest


def sync(group: ClassicGroup, request: SyncGroupRequest, waiter: Waiter, decision: Decision) -> None:
    error = _check_sync(group, request)
    if error is not ErrorCode.NONE:
        decision.answer(waiter, SyncGroupResponse(error_code=error))
        return
    member = group.members[request.member_id]
    group.pending_syncs.discard(member.member_id)
    if not group.pending_syncs:
        decision.stop_timer(TimerKey(TimerKind.SYNC, group.group_id))
    if group.state is ClassicState.STABLE:
        decision.answer(
            waiter,
            SyncGroupResponse(
                protocol_type=group.protocol_type, protocol_name=group.protocol_name, assignment=member.assignment
            ),
        )
        return
    if member.awaiting_sync is not None:
        # A member that syncs on two connections: the first request must not wait for ever.
        answer_sync(group, member, ErrorCode.REBALANCE_IN_PROGRESS, decision)
    member.awaiting_sync = waiter
    if group.leader_id != member.member_id:
        return
    if sum(len(each.assignment) for each in request.assignments) > decision.write_limit_bytes():
        _assignment_stored(group, ErrorCode.UNKNOWN_SERVER_ERROR, decision)
    else:
        assignments = {each.member_id: each.assignment for each in request.assignments}
        decision.write([group.record(assignments)], partial(_assignment_stored, group))


def _check_sync(group: ClassicGroup, request: SyncGroupRequest) -> ErrorCode:
    if group.is_empty:
        return ErrorCode.UNKNOWN_MEMBER_ID
    error = group.check_member(request.member_id, request.group_instance_id)
    if error is not ErrorCode.NONE:
        return error
    if request.generation_id != group.generation:
        return ErrorCode.ILLEGAL_GENERATION
    for sent, known in ((request.protocol_type, group.protocol_type), (request.protocol_name, group.protocol_name)):
        if sent is not None and known is not None and sent != known:
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    if group.state is ClassicState.PREPARING_REBALANCE:
        return ErrorCode.REBALANCE_IN_PROGRESS
    return ErrorCode.NONE


def _assignment_stored(group: ClassicGroup, error: ErrorCode, decision: Decision) -> None:
    """Replaying the record has made the group stable; when it could not be written, all members must rejoin."""
    if error is ErrorCode.NONE:
        for member in group.members.values():
            answer_sync(group, member, ErrorCode.NONE, decision)
    else:
        reject_assignment(group, error, decision)
        prepare_rebalance(group, decision)


def heartbeat(group: ClassicGroup, request: HeartbeatRequest, decision: Decision) -> ErrorCode:
    error = group.check_member(request.member_id, request.group_instance_id)
    if error is not ErrorCode.NONE:
        return error
    if request.generation_id != group.generation:
        return ErrorCode.ILLEGAL_GENERATION
    if group.is_empty:
        return ErrorCode.UNKNOWN_MEMBER_ID
    restart_session(group, group.members[request.member_id], decision)
    is_joining = group.state is ClassicState.PREPARING_REBALANCE
    return ErrorCode.REBALANCE_IN_PROGRESS if is_joining else ErrorCode.NONE


def leave(group: ClassicGroup, members: list[MemberIdentity], decision: Decision) -> list[MemberResponse]:
    """Each member is removed or refused on its own; the group rebalances once."""
    responses = []
    for identity in members:
        error = _leave_one(group, identity, decision)
        responses.append(
            MemberResponse(member_id=identity.member_id, group_instance_id=identity.group_instance_id, error_code=error)
        )
    if any(response.error_code == ErrorCode.NONE for response in responses):
        if group.state in (ClassicState.STABLE, ClassicState.COMPLETING_REBALANCE):
            prepare_rebalance(group, decision)
        else:
            complete_if_all_joined(group, decision)
    return responses


def _leave_one(group: ClassicGroup, identity: MemberIdentity, decision: Decision) -> ErrorCode:
    member_id = identity.member_id
    if member_id == NO_MEMBER_ID:
        # An administrator removes a static member by its instance id.
        if identity.group_instance_id is None or identity.group_instance_id not in group.static_members:
            return ErrorCode.UNKNOWN_MEMBER_ID
        member_id = group.static_members[identity.group_instance_id]
    elif member_id not in group.pending_members:
        error = group.check_member(member_id, identity.group_instance_id)
        if error is not ErrorCode.NONE:
            return error
    member = group.members.get(member_id)
    if member is not None:
        answer_join(group, member, JoinGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID), decision)
        if member.awaiting_sync is not None:
            decision.answer(member.awaiting_sync, SyncGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID))
            member.awaiting_sync = None
    group.remove(member_id)
    decision.stop_timer(TimerKey(TimerKind.SESSION, group.group_id, member_id))
    return ErrorCode.NONE
