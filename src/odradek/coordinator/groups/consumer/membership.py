"""The steps of every heartbeat of a consumer group's member, whichever protocol it speaks: find the member, take its
next step, and set its timers when the records are written."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from odradek.coordinator.groups.consumer.group import ConsumerGroup
from odradek.coordinator.groups.consumer.members import JOIN_EPOCH, LEAVE_STATIC_EPOCH, ConsumerMember, MemberState
from odradek.coordinator.groups.consumer.reconciliation import Goal, reconcile
from odradek.coordinator.groups.decision import TimerKey, TimerKind
from odradek.protocol.errors import ErrorCode
from odradek.protocol.refusal import Refusal

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.coordinator.groups.consumer.draft import Draft
    from odradek.coordinator.groups.consumer.members import Partitions
    from odradek.coordinator.groups.decision import Decision

MEMBER_TIMERS = (TimerKind.SESSION, TimerKind.REVOCATION, TimerKind.JOIN, TimerKind.SYNC)


class Identity(NamedTuple):
    member_id: str
    instance_id: str | None
    is_classic: bool
    may_be_new: bool


def check_room(group: ConsumerGroup, member_id: str, decision: Decision) -> Refusal | None:
    largest = decision.settings.consumer_max_size
    if len(group.members) < largest or member_id in group.members:
        return None
    message = f"The consumer group has reached its maximum capacity of {largest} members."
    return Refusal(ErrorCode.GROUP_MAX_SIZE_REACHED, message)


def find_member(draft: Draft, identity: Identity) -> ConsumerMember | Refusal:
    """The member before this request; a member that is new, or that replaces a static member, has epoch zero."""
    group = draft.group
    if not identity.may_be_new:
        return known_member(group, identity.member_id, identity.instance_id)
    holder = group.static_member(identity.instance_id)
    if holder is None:
        return group.members.get(identity.member_id) or ConsumerMember(member_id=identity.member_id)
    speak_consumer = not identity.is_classic and holder.classic is None
    if speak_consumer and holder.epoch != LEAVE_STATIC_EPOCH:
        message = f"Instance id {identity.instance_id} is still in use by member {holder.member_id}."
        return Refusal(ErrorCode.UNRELEASED_INSTANCE_ID, message)
    return _replace_static_member(draft, holder, identity.member_id)


def _replace_static_member(draft: Draft, holder: ConsumerMember, member_id: str) -> ConsumerMember:
    """A static member returns with another id: it keeps its partitions, target and subscription."""
    target = draft.group.targets.get(holder.member_id, {})
    member = replace(holder, member_id=member_id, epoch=JOIN_EPOCH, previous_epoch=JOIN_EPOCH)
    draft.remove_member(holder.member_id)
    draft.put_metadata(member)
    draft.put_target(member_id, target)
    draft.put_assignment(member)
    if member_id != holder.member_id:
        draft.afterwards.append(lambda decision: stop_timers(draft.group_id, holder.member_id, decision))
    return member


def known_member(group: ConsumerGroup, member_id: str, instance_id: str | None) -> ConsumerMember | Refusal:
    """A member that must exist."""
    if instance_id is None:
        return group.members.get(member_id) or _unknown(member_id, group)
    holder = group.static_member(instance_id)
    if holder is None:
        return Refusal(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    if holder.member_id != member_id:
        message = f"Static member {member_id} with instance id {instance_id} was fenced by member {holder.member_id}."
        return Refusal(ErrorCode.FENCED_INSTANCE_ID, message)
    return holder


def _unknown(member_id: str, group: ConsumerGroup) -> Refusal:
    return Refusal(ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {group.group_id}.")


def reconcile_member(
    draft: Draft, member: ConsumerMember, has_changed: bool, owned: Partitions | None, decision: Decision
) -> ConsumerMember:
    """The member's next step towards its target. A member that must give partitions back has its rebalance timeout to
    do so."""
    group = draft.group
    if member.is_reconciled_to(group.target_epoch) and not has_changed:
        return member
    goal = Goal(
        epoch=group.target_epoch,
        target=group.targets.get(member.member_id, {}),
        subscribed_topic_ids=decision.image.topic_ids(group.topics_of(member)),
        is_owned=group.is_owned,
        has_subscription_changed=has_changed,
        owned=owned,
    )
    after = reconcile(member, goal)
    if after != member:
        draft.put_assignment(after)
        if after.classic is None:
            draft.afterwards.append(lambda decision: await_revocation(draft.group_id, after, decision))
    return after


def await_revocation(group_id: str, member: ConsumerMember, decision: Decision) -> None:
    key = TimerKey(TimerKind.REVOCATION, group_id, member.member_id)
    if member.state is MemberState.UNREVOKED_PARTITIONS:
        decision.start_timer(key, member.rebalance_timeout_ms)
    else:
        decision.stop_timer(key)


def restart_session(group_id: str, member: ConsumerMember, decision: Decision) -> None:
    """A member of the classic protocol has chosen its own timeout; all others have the group's."""
    timeout_ms = (
        decision.consumer_settings(group_id).session_timeout_ms
        if member.classic is None
        else member.classic.session_timeout_ms
    )
    decision.start_timer(TimerKey(TimerKind.SESSION, group_id, member.member_id), timeout_ms)


def stop_timers(group_id: str, member_id: str, decision: Decision) -> None:
    for kind in MEMBER_TIMERS:
        decision.stop_timer(TimerKey(kind, group_id, member_id))


def submit(draft: Draft, decision: Decision, then: Callable[[ErrorCode, Decision], None]) -> None:
    """Write the draft's records; timers and answers follow when they are in the log."""

    def finish(error: ErrorCode, decision: Decision) -> None:
        if error is ErrorCode.NONE:
            group = decision.groups.get(draft.group_id)
            if isinstance(group, ConsumerGroup):
                group.adopt(draft.group)
            for follow_up in draft.afterwards:
                follow_up(decision)
        then(error, decision)

    decision.write(draft.records, finish)
