"""How a classic group gets its next generation: wait for the members, choose a protocol, and let the leader assign.

Also the timeouts of a group and of its members. The semantics are those of Kafka's GroupMetadataManager: a change of
members prepares a rebalance, and a rebalance is complete when all members have joined.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.coordinator.groups.classic.group import ClassicGroup, ClassicState
from odradek.coordinator.groups.decision import TimerKey, TimerKind
from odradek.coordinator.groups.group import NO_MEMBER_ID
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.join_group import JoinGroupResponse, JoinGroupResponseMember
from odradek.protocol.messages.sync_group import SyncGroupResponse

if TYPE_CHECKING:
    from odradek.coordinator.groups.classic.members import ClassicMember
    from odradek.coordinator.groups.decision import Decision

# Answers to requests that wait


def answer_join(group: ClassicGroup, member: ClassicMember, response: JoinGroupResponse, decision: Decision) -> None:
    if member.awaiting_join is not None:
        decision.answer(member.awaiting_join, response)
        group.await_join(member, None)


def answer_sync(group: ClassicGroup, member: ClassicMember, error: ErrorCode, decision: Decision) -> None:
    """Restarts the member's session: no heartbeats are expected while its request waits."""
    if member.awaiting_sync is None:
        return
    is_assigned = error is ErrorCode.NONE
    decision.answer(
        member.awaiting_sync,
        SyncGroupResponse(
            error_code=error,
            protocol_type=group.protocol_type if is_assigned else None,
            protocol_name=group.protocol_name if is_assigned else None,
            assignment=member.assignment,
        ),
    )
    member.awaiting_sync = None
    restart_session(group, member, decision)


def generation_response(group: ClassicGroup, member: ClassicMember) -> JoinGroupResponse:
    """The answer to a member of the generation; the leader's also lists the other members."""
    is_leader = group.leader_id == member.member_id
    return JoinGroupResponse(
        generation_id=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        leader=group.leader_id or NO_MEMBER_ID,
        member_id=member.member_id,
        members=describe_members(group) if is_leader else [],
    )


def describe_members(group: ClassicGroup) -> list[JoinGroupResponseMember]:
    return [
        JoinGroupResponseMember(
            member_id=each.member_id,
            group_instance_id=each.instance_id,
            metadata=each.metadata(group.protocol_name),
        )
        for each in group.members.values()
    ]


def restart_session(group: ClassicGroup, member: ClassicMember, decision: Decision) -> None:
    key = TimerKey(TimerKind.SESSION, group.group_id, member.member_id)
    decision.start_timer(key, member.session_timeout_ms)


# From the cause of a rebalance to its generation


def rebalance_or_complete(group: ClassicGroup, decision: Decision) -> None:
    """After a member has joined, left or changed its subscription."""
    if group.can_rebalance:
        prepare_rebalance(group, decision)
    else:
        complete_if_all_joined(group, decision)


def prepare_rebalance(group: ClassicGroup, decision: Decision) -> None:
    if group.state is ClassicState.COMPLETING_REBALANCE:
        reject_assignment(group, ErrorCode.REBALANCE_IN_PROGRESS, decision)
    group.pending_syncs.clear()
    decision.stop_timer(TimerKey(TimerKind.SYNC, group.group_id))
    was_empty = group.is_empty
    group.move_to(ClassicState.PREPARING_REBALANCE, decision.now_ms)
    if was_empty:
        # KIP-134: more members usually join shortly after the first one of a new group.
        delay_ms = decision.settings.initial_rebalance_delay_ms
        group.has_new_member = False
        group.initial_delay_ms = delay_ms
        group.initial_remaining_ms = max(group.rebalance_timeout_ms - delay_ms, 0)
        decision.start_timer(TimerKey(TimerKind.JOIN, group.group_id), delay_ms)
    elif group.has_all_members_joined:
        complete_join(group, decision)
    else:
        decision.start_timer(TimerKey(TimerKind.JOIN, group.group_id), group.rebalance_timeout_ms)


def complete_if_all_joined(group: ClassicGroup, decision: Decision) -> None:
    """The first rebalance of a group waits for its delay even when all known members have joined."""
    if (
        group.state is ClassicState.PREPARING_REBALANCE
        and group.previous_state is not ClassicState.EMPTY
        and group.has_all_members_joined
    ):
        complete_join(group, decision)


def complete_join(group: ClassicGroup, decision: Decision) -> None:
    """Members that have not joined are removed; a static member may be away until its session ends."""
    decision.stop_timer(TimerKey(TimerKind.JOIN, group.group_id))
    for member in [each for each in group.members.values() if each.awaiting_join is None and not each.is_static]:
        group.remove(member.member_id)
        decision.stop_timer(TimerKey(TimerKind.SESSION, group.group_id, member.member_id))
    if group.members and not group.elect_joined_leader():
        # All members are static and away: wait until one joins, or until their sessions end.
        decision.start_timer(TimerKey(TimerKind.JOIN, group.group_id), group.rebalance_timeout_ms)
        return
    group.begin_generation(decision.now_ms)
    if not group.members:
        # If this record is not stored, the next start restores the old generation, whose members then time out.
        decision.write([group.record({})], _ignore_outcome)
        return
    for member in group.members.values():
        answer_join(group, member, generation_response(group, member), decision)
        restart_session(group, member, decision)
        member.is_new = False
        group.pending_syncs.add(member.member_id)
    decision.start_timer(TimerKey(TimerKind.SYNC, group.group_id), group.rebalance_timeout_ms)


def reject_assignment(group: ClassicGroup, error: ErrorCode, decision: Decision) -> None:
    """Answers members that wait for their assignment with an error, so that they rejoin."""
    for member in group.members.values():
        member.assignment = b""
        answer_sync(group, member, error, decision)


def _ignore_outcome(error: ErrorCode, decision: Decision) -> None:
    pass


# Timeouts


def on_join_timeout(group: ClassicGroup, decision: Decision) -> None:
    if group.state is not ClassicState.PREPARING_REBALANCE:
        return
    if group.previous_state is ClassicState.EMPTY and group.has_new_member and group.initial_remaining_ms > 0:
        group.has_new_member = False
        delay_ms = min(decision.settings.initial_rebalance_delay_ms, group.initial_remaining_ms)
        group.initial_remaining_ms = max(group.initial_remaining_ms - group.initial_delay_ms, 0)
        group.initial_delay_ms = delay_ms
        decision.start_timer(TimerKey(TimerKind.JOIN, group.group_id), delay_ms)
        return
    complete_join(group, decision)


def on_sync_timeout(group: ClassicGroup, decision: Decision) -> None:
    """Removes members that joined and never sent SyncGroup: their partitions would not be consumed."""
    if group.state not in (ClassicState.COMPLETING_REBALANCE, ClassicState.STABLE) or not group.pending_syncs:
        return
    for member_id in sorted(group.pending_syncs):
        group.remove(member_id)
        decision.stop_timer(TimerKey(TimerKind.SESSION, group.group_id, member_id))
    prepare_rebalance(group, decision)


def on_session_timeout(group: ClassicGroup, member_id: str, decision: Decision) -> None:
    member = group.members.get(member_id)
    if member is None:
        if member_id in group.pending_members:
            group.remove(member_id)
            _complete_without(group, decision)
    elif not member.has_satisfied_heartbeat:
        # A new member may time out while its join waits: the error makes a client that is alive rejoin.
        response = JoinGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID)
        answer_join(group, member, response, decision)
        group.remove(member_id)
        if group.state in (ClassicState.STABLE, ClassicState.COMPLETING_REBALANCE):
            prepare_rebalance(group, decision)
        else:
            _complete_without(group, decision)


def _complete_without(group: ClassicGroup, decision: Decision) -> None:
    """Completes the rebalance that was waiting for the removed member."""
    if group.state is ClassicState.PREPARING_REBALANCE and group.has_all_members_joined:
        complete_join(group, decision)


def on_load(group: ClassicGroup, decision: Decision) -> None:
    """Members restored from the log have one session timeout to send a heartbeat.

    A record without a leader is that of a consumer group that became classic and has not assigned its partitions.
    """
    for member in group.members.values():
        restart_session(group, member, decision)
    has_no_leader = group.members and group.leader_id is None
    if has_no_leader or len(group.members) > decision.settings.max_size:
        prepare_rebalance(group, decision)


def on_unload(group: ClassicGroup, decision: Decision) -> None:
    """Refuses the requests that wait in the group, so that their clients look for the new coordinator."""
    for member in group.members.values():
        answer_join(
            group,
            member,
            JoinGroupResponse(error_code=ErrorCode.NOT_COORDINATOR, member_id=member.member_id),
            decision,
        )
        if member.awaiting_sync is not None:
            decision.answer(member.awaiting_sync, SyncGroupResponse(error_code=ErrorCode.NOT_COORDINATOR))
            member.awaiting_sync = None
