"""JoinGroup in a classic group: which members may join, with which id, and whether that starts a rebalance."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from odradek.coordinator.groups.classic.group import ClassicGroup, ClassicState
from odradek.coordinator.groups.classic.members import ClassicMember
from odradek.coordinator.groups.classic.rebalance import (
    answer_join,
    answer_sync,
    complete_if_all_joined,
    describe_members,
    generation_response,
    prepare_rebalance,
    rebalance_or_complete,
    restart_session,
)
from odradek.coordinator.groups.decision import TimerKey, TimerKind
from odradek.coordinator.groups.group import NO_MEMBER_ID
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.join_group import JoinGroupResponse

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.coordinator.groups.classic.members import Protocols
    from odradek.coordinator.groups.decision import Decision
    from odradek.coordinator.runtime.decision import Waiter
    from odradek.protocol.messages.join_group import JoinGroupRequest

FIRST_VERSION_WITH_REQUIRED_MEMBER_ID = 4  # KIP-394
FIRST_VERSION_WITH_SKIPPED_ASSIGNMENT = 9  # KIP-814
MOST_PENDING_MEMBERS = 10_000
"""The largest number of member ids that a group has given out and with which no member has joined. Each is kept for a
session timeout."""


class Join(NamedTuple):
    """One JoinGroup request with its client, its waiter, and the id that a new member would get."""

    request: JoinGroupRequest
    version: int
    client_id: str
    client_host: str
    new_member_id: str
    waiter: Waiter
    may_describe: Callable[[str], bool] = lambda _: True  # used when topics are found by a pattern

    @property
    def protocols(self) -> Protocols:
        return tuple((protocol.name, protocol.metadata) for protocol in self.request.protocols)

    def refuse(self, error: ErrorCode, member_id: str, decision: Decision) -> None:
        decision.answer(self.waiter, JoinGroupResponse(error_code=error, member_id=member_id))


def requires_member_id(attempt: Join) -> bool:
    """KIP-394: a client first gets an id and joins with it, so that retries of one client do not fill a group."""
    return attempt.version >= FIRST_VERSION_WITH_REQUIRED_MEMBER_ID and attempt.request.group_instance_id is None


def join(group: ClassicGroup, attempt: Join, decision: Decision) -> None:
    request = attempt.request
    member_id = request.member_id
    if not _has_room(group, member_id, decision.settings.max_size):
        attempt.refuse(ErrorCode.GROUP_MAX_SIZE_REACHED, NO_MEMBER_ID, decision)
        group.remove(member_id)
        complete_if_all_joined(group, decision)
    elif not group.supports(request.protocol_type, [protocol.name for protocol in request.protocols]):
        attempt.refuse(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, member_id, decision)
    elif member_id == NO_MEMBER_ID:
        _join_without_id(group, attempt, decision)
    elif member_id in group.pending_members and request.group_instance_id is None:
        _add(group, attempt, member_id, decision)
    else:
        error = group.check_member(member_id, request.group_instance_id)
        if error is ErrorCode.NONE:
            _rejoin(group, group.members[member_id], attempt, decision)
        else:
            decision.answer(
                attempt.waiter, JoinGroupResponse(error_code=error, member_id=member_id, protocol_name=None)
            )


def _has_room(group: ClassicGroup, member_id: str, max_size: int) -> bool:
    """KIP-389. During a rebalance only members that have joined count, so a lowered limit refuses the last to join."""
    member = group.members.get(member_id)
    match group.state:
        case ClassicState.PREPARING_REBALANCE:
            return (member is not None and member.awaiting_join is not None) or group.awaiting_join_count < max_size
        case ClassicState.COMPLETING_REBALANCE | ClassicState.STABLE:
            return member is not None or len(group.members) < max_size
        case _:
            return True


def _join_without_id(group: ClassicGroup, attempt: Join, decision: Decision) -> None:
    instance_id = attempt.request.group_instance_id
    if instance_id is not None:
        holder = group.members.get(group.static_members.get(instance_id, NO_MEMBER_ID))
        if holder is None:
            _add(group, attempt, attempt.new_member_id, decision)
        else:
            _replace_static_member(group, holder, attempt, decision)
    elif requires_member_id(attempt) and len(group.pending_members) >= MOST_PENDING_MEMBERS:
        attempt.refuse(ErrorCode.COORDINATOR_NOT_AVAILABLE, NO_MEMBER_ID, decision)  # clients try again after a pause
    elif requires_member_id(attempt):
        group.pending_members.add(attempt.new_member_id)
        decision.start_timer(
            TimerKey(TimerKind.SESSION, group.group_id, attempt.new_member_id), attempt.request.session_timeout_ms
        )
        attempt.refuse(ErrorCode.MEMBER_ID_REQUIRED, attempt.new_member_id, decision)
    else:
        _add(group, attempt, attempt.new_member_id, decision)


def _add(group: ClassicGroup, attempt: Join, member_id: str, decision: Decision) -> None:
    request = attempt.request
    member = ClassicMember(
        member_id,
        request.group_instance_id,
        attempt.client_id,
        attempt.client_host,
        request.rebalance_timeout_ms,
        request.session_timeout_ms,
        attempt.protocols,
    )
    member.is_new = True
    if group.state is ClassicState.PREPARING_REBALANCE and group.previous_state is ClassicState.EMPTY:
        group.has_new_member = True  # extends the delay of the first rebalance
    group.add(member, request.protocol_type, attempt.waiter)
    decision.start_timer(
        TimerKey(TimerKind.SESSION, group.group_id, member_id), decision.settings.new_member_join_timeout_ms
    )
    rebalance_or_complete(group, decision)


def _rejoin(group: ClassicGroup, member: ClassicMember, attempt: Join, decision: Decision) -> None:
    """A known member rejoins. Nothing changes when it repeats a request whose answer it has missed."""
    is_same = member.protocols == attempt.protocols
    match group.state:
        case ClassicState.COMPLETING_REBALANCE if is_same:
            decision.answer(attempt.waiter, generation_response(group, member))
        case ClassicState.STABLE if is_same and group.leader_id != member.member_id:
            decision.answer(attempt.waiter, generation_response(group, member))
        case ClassicState.EMPTY:
            attempt.refuse(ErrorCode.UNKNOWN_MEMBER_ID, member.member_id, decision)
        case _:
            _update(group, member, attempt, decision)
            rebalance_or_complete(group, decision)


def _update(group: ClassicGroup, member: ClassicMember, attempt: Join, decision: Decision) -> None:
    request = attempt.request
    # A member that joins on two connections: the first request must not wait for ever.
    again = JoinGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS, member_id=member.member_id)
    answer_join(group, member, again, decision)
    group.update(member, attempt.protocols, request.rebalance_timeout_ms, request.session_timeout_ms, attempt.waiter)


def _replace_static_member(group: ClassicGroup, holder: ClassicMember, attempt: Join, decision: Decision) -> None:
    """KIP-345: a static member rejoins without its member id. The old id is fenced; the group does not rebalance when
    it is stable and would choose the same protocol."""
    old = _Replaced(holder.member_id, holder.protocols, holder.rebalance_timeout_ms, holder.session_timeout_ms)
    answer_join(
        group,
        holder,
        JoinGroupResponse(
            error_code=ErrorCode.FENCED_INSTANCE_ID, member_id=holder.member_id, protocol_name=None, leader=NO_MEMBER_ID
        ),
        decision,
    )
    answer_sync(group, holder, ErrorCode.FENCED_INSTANCE_ID, decision)
    decision.stop_timer(TimerKey(TimerKind.SESSION, group.group_id, holder.member_id))
    group.pending_syncs.discard(holder.member_id)
    old_leader_id = group.leader_id or NO_MEMBER_ID
    group.rename(holder, attempt.new_member_id)
    holder.is_new = False
    _update(group, holder, attempt, decision)
    restart_session(group, holder, decision)
    if group.state is ClassicState.STABLE and group.select_protocol() == group.protocol_name:
        assignments = {member.member_id: member.assignment for member in group.members.values()}
        decision.write(
            [group.record(assignments)],
            partial(_finish_replacement, group, holder, old, old_leader_id, attempt.version),
        )
    elif group.state is ClassicState.PREPARING_REBALANCE:
        complete_if_all_joined(group, decision)
    else:
        prepare_rebalance(group, decision)


class _Replaced(NamedTuple):
    member_id: str
    protocols: Protocols
    rebalance_timeout_ms: int
    session_timeout_ms: int


def _finish_replacement(
    group: ClassicGroup,
    member: ClassicMember,
    old: _Replaced,
    old_leader_id: str,
    version: int,
    error: ErrorCode,
    decision: Decision,
) -> None:
    response = generation_response(group, member)
    if error is not ErrorCode.NONE:
        response = JoinGroupResponse(
            error_code=error,
            generation_id=group.generation,
            protocol_type=group.protocol_type,
            protocol_name=group.protocol_name,
            leader=old_leader_id,
        )
        answer_join(group, member, response, decision)
        decision.stop_timer(TimerKey(TimerKind.SESSION, group.group_id, member.member_id))
        group.update(member, old.protocols, old.rebalance_timeout_ms, old.session_timeout_ms, None)
        group.rename(member, old.member_id)
        restart_session(group, member, decision)
        return
    if version >= FIRST_VERSION_WITH_SKIPPED_ASSIGNMENT:
        response.skip_assignment = group.leader_id == member.member_id
        response.members = describe_members(group) if response.skip_assignment else []
    else:
        # The member must not compute an assignment, so the answer names its former id as the leader.
        response.leader, response.members = old_leader_id, []
    answer_join(group, member, response, decision)
