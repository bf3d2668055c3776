"""JoinGroup in a classic group: who may come in, under which id, and whether that needs a new generation."""

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


class Join(NamedTuple):
    """One JoinGroup request: what it says, who says it, and the id that a new member would get."""

    request: JoinGroupRequest
    version: int
    client_id: str
    client_host: str
    new_member_id: str
    waiter: Waiter
    may_describe: Callable[[str], bool] = lambda _: True  # asked when topics are found by a pattern

    @property
    def protocols(self) -> Protocols:
        return tuple((protocol.name, protocol.metadata) for protocol in self.request.protocols)

    def refuse(self, error: ErrorCode, member_id: str, decision: Decision) -> None:
        decision.answer(self.waiter, JoinGroupResponse(error_code=error, member_id=member_id))


def requires_member_id(wish: Join) -> bool:
    """Whoever asks again and again without listening must not fill a group: an id first, then membership."""
    return wish.version >= FIRST_VERSION_WITH_REQUIRED_MEMBER_ID and wish.request.group_instance_id is None


def join(group: ClassicGroup, wish: Join, decision: Decision) -> None:
    request = wish.request
    member_id = request.member_id
    if not _has_room(group, member_id, decision.settings.max_size):
        wish.refuse(ErrorCode.GROUP_MAX_SIZE_REACHED, NO_MEMBER_ID, decision)
        group.remove(member_id)
        complete_if_all_joined(group, decision)
    elif not group.supports(request.protocol_type, [protocol.name for protocol in request.protocols]):
        wish.refuse(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, member_id, decision)
    elif member_id == NO_MEMBER_ID:
        _join_without_id(group, wish, decision)
    elif member_id in group.pending_members and request.group_instance_id is None:
        _add(group, wish, member_id, decision)
    else:
        error = group.check_member(member_id, request.group_instance_id)
        if error is ErrorCode.NONE:
            _rejoin(group, group.members[member_id], wish, decision)
        else:
            decision.answer(wish.waiter, JoinGroupResponse(error_code=error, member_id=member_id, protocol_name=None))


def _has_room(group: ClassicGroup, member_id: str, max_size: int) -> bool:
    """KIP-389. While members join, those who have count: when the limit was lowered the last to come are left out."""
    member = group.members.get(member_id)
    match group.state:
        case ClassicState.PREPARING_REBALANCE:
            return (member is not None and member.awaiting_join is not None) or group.awaiting_join_count < max_size
        case ClassicState.COMPLETING_REBALANCE | ClassicState.STABLE:
            return member is not None or len(group.members) < max_size
        case _:
            return True


def _join_without_id(group: ClassicGroup, wish: Join, decision: Decision) -> None:
    instance_id = wish.request.group_instance_id
    if instance_id is not None:
        holder = group.members.get(group.static_members.get(instance_id, NO_MEMBER_ID))
        if holder is None:
            _add(group, wish, wish.new_member_id, decision)
        else:
            _replace_static_member(group, holder, wish, decision)
    elif requires_member_id(wish):
        group.pending_members.add(wish.new_member_id)
        decision.start_timer(
            TimerKey(TimerKind.SESSION, group.group_id, wish.new_member_id), wish.request.session_timeout_ms
        )
        wish.refuse(ErrorCode.MEMBER_ID_REQUIRED, wish.new_member_id, decision)
    else:
        _add(group, wish, wish.new_member_id, decision)


def _add(group: ClassicGroup, wish: Join, member_id: str, decision: Decision) -> None:
    request = wish.request
    member = ClassicMember(
        member_id,
        request.group_instance_id,
        wish.client_id,
        wish.client_host,
        request.rebalance_timeout_ms,
        request.session_timeout_ms,
        wish.protocols,
    )
    member.is_new = True
    if group.state is ClassicState.PREPARING_REBALANCE and group.previous_state is ClassicState.EMPTY:
        group.has_new_member = True  # the first rebalance may wait a little longer
    group.add(member, request.protocol_type, wish.waiter)
    decision.start_timer(
        TimerKey(TimerKind.SESSION, group.group_id, member_id), decision.settings.new_member_join_timeout_ms
    )
    rebalance_or_complete(group, decision)


def _rejoin(group: ClassicGroup, member: ClassicMember, wish: Join, decision: Decision) -> None:
    """A known member joins again. Nothing changes when it only missed the answer to what it asked before."""
    is_same = member.protocols == wish.protocols
    match group.state:
        case ClassicState.COMPLETING_REBALANCE if is_same:
            decision.answer(wish.waiter, generation_response(group, member))
        case ClassicState.STABLE if is_same and group.leader_id != member.member_id:
            decision.answer(wish.waiter, generation_response(group, member))
        case ClassicState.EMPTY:
            wish.refuse(ErrorCode.UNKNOWN_MEMBER_ID, member.member_id, decision)
        case _:
            _update(group, member, wish, decision)
            rebalance_or_complete(group, decision)


def _update(group: ClassicGroup, member: ClassicMember, wish: Join, decision: Decision) -> None:
    request = wish.request
    # Asked twice, on two connections: the first request must not wait for ever.
    again = JoinGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS, member_id=member.member_id)
    answer_join(group, member, again, decision)
    group.update(member, wish.protocols, request.rebalance_timeout_ms, request.session_timeout_ms, wish.waiter)


def _replace_static_member(group: ClassicGroup, holder: ClassicMember, wish: Join, decision: Decision) -> None:
    """KIP-345: an instance came back without its id. The old id is fenced; the group goes on without a rebalance when
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
    group.rename(holder, wish.new_member_id)
    holder.is_new = False
    _update(group, holder, wish, decision)
    restart_session(group, holder, decision)
    if group.state is ClassicState.STABLE and group.select_protocol() == group.protocol_name:
        assignments = {member.member_id: member.assignment for member in group.members.values()}
        decision.write(
            [group.record(assignments)], partial(_finish_replacement, group, holder, old, old_leader_id, wish.version)
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
        # It must not assign anew, so it is told that its former self leads.
        response.leader, response.members = old_leader_id, []
    answer_join(group, member, response, decision)
