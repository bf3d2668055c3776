"""Members that leave a consumer group, or time out: their partitions are free at once, and a new epoch begins."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from odradek.coordinator.groups.consumer.draft import Draft
from odradek.coordinator.groups.consumer.members import MemberState
from odradek.coordinator.groups.consumer.membership import await_revocation, restart_session, stop_timers, submit
from odradek.coordinator.groups.consumer.migration import can_downgrade, downgrade
from odradek.coordinator.groups.consumer.patterns import drop_unused_patterns
from odradek.coordinator.groups.consumer.subscriptions import refresh_epoch
from odradek.coordinator.groups.decision import TimerKind
from odradek.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from odradek.coordinator.groups.consumer.group import ConsumerGroup
    from odradek.coordinator.groups.consumer.members import ConsumerMember
    from odradek.coordinator.groups.decision import Decision, TimerKey

RETRY_MS = 500

Outcome: TypeAlias = "Callable[[ErrorCode, Decision], None]"


def fence(group: ConsumerGroup, members: Sequence[ConsumerMember], decision: Decision, then: Outcome) -> None:
    """When only members of the classic protocol stay, the group becomes a classic one."""
    if not members:
        then(ErrorCode.NONE, decision)
        return
    member_ids = {member.member_id for member in members}
    staying = [member for member_id, member in group.members.items() if member_id not in member_ids]
    if can_downgrade(staying, len(staying), decision):
        downgrade(Draft(group), member_ids, True, decision, partial(_finish_downgrade, group, members, then))
    else:
        _remove(group, members, decision, then)


def _finish_downgrade(
    group: ConsumerGroup, members: Sequence[ConsumerMember], then: Outcome, error: ErrorCode, decision: Decision
) -> None:
    """A classic group is one record, which may be too large. Then the group stays a consumer group."""
    if error is ErrorCode.UNKNOWN_SERVER_ERROR:
        _remove(group, members, decision, then)
    else:
        then(error, decision)


def _remove(group: ConsumerGroup, members: Sequence[ConsumerMember], decision: Decision, then: Outcome) -> None:
    draft = Draft(group)
    member_ids = [member.member_id for member in members]
    for member_id in member_ids:
        draft.remove_member(member_id)
    drop_unused_patterns(draft, (member.topic_pattern for member in members))
    refresh_epoch(draft, True, decision)

    def forget_timers(decision: Decision) -> None:
        for member_id in member_ids:
            stop_timers(group.group_id, member_id, decision)

    draft.afterwards.append(forget_timers)
    submit(draft, decision, then)


def on_timeout(group: ConsumerGroup, key: TimerKey, decision: Decision) -> None:
    """The member was silent, or did not give partitions back, join or sync in time: it is removed."""
    member = group.members.get(key.member_id)
    if member is None:
        return
    if key.kind is TimerKind.REVOCATION and member.state is not MemberState.UNREVOKED_PARTITIONS:
        return

    def try_again(error: ErrorCode, decision: Decision) -> None:
        if error is not ErrorCode.NONE:
            decision.start_timer(key, RETRY_MS)

    fence(group, [member], decision, try_again)


def on_load(group: ConsumerGroup, decision: Decision) -> None:
    """Members restored from the log have one session timeout to send a heartbeat."""
    for member in group.members.values():
        restart_session(group.group_id, member, decision)
        if member.classic is None:
            await_revocation(group.group_id, member, decision)
