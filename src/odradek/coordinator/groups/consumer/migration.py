"""Groups that change their protocol while they run: from classic to consumer when the first member of the newer
protocol comes, and back when the last of them goes (KIP-848, `group.consumer.migration.policy`)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from odradek.coordinator.groups.classic.group import ClassicGroup
from odradek.coordinator.groups.classic.members import ClassicMember
from odradek.coordinator.groups.classic.rebalance import answer_join, answer_sync, prepare_rebalance
from odradek.coordinator.groups.classic.rebalance import restart_session as restart_classic_session
from odradek.coordinator.groups.consumer.draft import Draft, records_of
from odradek.coordinator.groups.consumer.group import ConsumerGroup, no_consumer_group
from odradek.coordinator.groups.consumer.members import ClassicClient, ConsumerMember
from odradek.coordinator.groups.consumer.membership import restart_session, stop_timers
from odradek.coordinator.groups.consumer.subscriptions import metadata_hash
from odradek.coordinator.groups.consumer_protocol import (
    CONSUMER_PROTOCOL_TYPE,
    decode_assignment,
    decode_subscription,
    encode_assignment,
)
from odradek.coordinator.groups.decision import TimerKey, TimerKind
from odradek.protocol.errors import ErrorCode
from odradek.protocol.malformed import MalformedMessage
from odradek.protocol.messages.join_group import JoinGroupResponse
from odradek.protocol.refusal import Refusal

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from odradek.coordinator.groups.consumer.members import Partitions
    from odradek.coordinator.groups.decision import Decision
    from odradek.coordinator.groups.group import Group
    from odradek.metadata.image import MetadataImage


def open_group(group: Group | None, group_id: str, may_create: bool, decision: Decision) -> Draft | Refusal:
    """The consumer group of this name, with what must be written first for it to be one."""
    if isinstance(group, ConsumerGroup):
        return Draft(group)
    if may_create and group is None:
        return Draft(ConsumerGroup(group_id))
    if may_create and isinstance(group, ClassicGroup):
        if group.is_empty:
            return Draft(ConsumerGroup(group_id), group.tombstones())
        return _upgrade(group, decision)
    return no_consumer_group(group_id, group)


# From classic to consumer


def _upgrade(classic: ClassicGroup, decision: Decision) -> Draft | Refusal:
    why_not = None
    if not decision.settings.migration_policy.allows_upgrade:
        why_not = "online upgrade is disabled"
    elif not classic.uses_consumer_protocol:
        why_not = "the group does not use the consumer embedded protocol"
    elif len(classic.members) > decision.settings.consumer_max_size:
        why_not = "the group size exceeds the consumer group maximum size"
    else:
        try:
            group = _converted(classic, decision.image)
        except MalformedMessage:
            why_not = "the embedded consumer protocol is malformed"
        else:
            if group is not None:
                draft = Draft(group, [*classic.tombstones(), *records_of(group)])
                draft.afterwards.append(partial(_leave_classic, classic, group))
                return draft
            why_not = (
                "an unsupported custom assignor is in use. Please refer to the documentation or switch to a default "
                "assignor before re-attempting the upgrade"
            )
    message = f"Cannot upgrade classic group {classic.group_id} to consumer group because {why_not}."
    return Refusal(ErrorCode.GROUP_ID_NOT_FOUND, message)


def _converted(classic: ClassicGroup, image: MetadataImage) -> ConsumerGroup | None:
    """All members keep the assignment of the last generation; None when a custom assignor would lose its data. A group
    whose last member left before its first generation has no members and no protocol."""
    group = ConsumerGroup(classic.group_id)
    group.epoch = group.target_epoch = classic.generation
    chosen = classic.protocol_name or (classic.select_protocol() if classic.members else "")
    for member in classic.members.values():
        target: Partitions = {}
        if member.assignment:
            assignment = decode_assignment(member.assignment)
            if assignment.user_data:
                return None
            target = by_id(
                {image.full_name(each.topic): each.partitions for each in assignment.assigned_partitions}, image
            )
        for _, metadata in member.protocols:
            decode_subscription(metadata)  # otherwise the group could not become a classic one again
        subscription = decode_subscription(member.metadata(chosen))
        group.targets[member.member_id] = target
        group.put_member(
            ConsumerMember(
                member_id=member.member_id,
                instance_id=member.instance_id,
                rack_id=subscription.rack_id,
                client_id=member.client_id,
                client_host=member.client_host,
                topic_names=frozenset(map(image.full_name, subscription.topics)),
                rebalance_timeout_ms=member.rebalance_timeout_ms,
                classic=ClassicClient(member.session_timeout_ms, member.protocols),
                epoch=classic.generation,
                previous_epoch=classic.generation,
                assigned={topic_id: dict.fromkeys(some, classic.generation) for topic_id, some in target.items()},
            )
        )
    group.metadata_hash = metadata_hash(group.subscribed_topics, image)
    return group


def by_id(partitions: dict[str, list[int]], image: MetadataImage) -> Partitions:
    return {image.topics[name].topic_id: frozenset(some) for name, some in partitions.items() if name in image.topics}


def _leave_classic(classic: ClassicGroup, group: ConsumerGroup, decision: Decision) -> None:
    """Refuses the requests that wait for a generation, so that their members rejoin, into the consumer group."""
    for kind in (TimerKind.JOIN, TimerKind.SYNC):
        decision.stop_timer(TimerKey(kind, classic.group_id))
    for member in classic.members.values():
        again = JoinGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS, member_id=member.member_id)
        answer_join(classic, member, again, decision)
        answer_sync(classic, member, ErrorCode.REBALANCE_IN_PROGRESS, decision)
    for joined in group.members.values():
        restart_session(group.group_id, joined, decision)


# From consumer to classic


def can_downgrade(staying: Collection[ConsumerMember], size: int, decision: Decision) -> bool:
    """Whether no member of the newer protocol stays, while `size` members do."""
    return (
        all(member.classic is not None for member in staying)
        and decision.settings.migration_policy.allows_downgrade
        and 0 < size <= decision.settings.max_size
    )


def downgrade(
    draft: Draft,
    leaving: Collection[str],
    rebalances: bool,
    decision: Decision,
    then: Callable[[ErrorCode, Decision], None],
) -> None:
    """The members that stay start with their target assignment."""
    group = draft.group
    classic = ClassicGroup(group.group_id, decision.now_ms)
    for member in group.members.values():
        if member.member_id not in leaving:
            classic.add(_classic_member(member), CONSUMER_PROTOCOL_TYPE)
    classic.generation = group.epoch
    classic.protocol_name = classic.select_protocol()
    if rebalances:
        classic.leader_id = None  # stored, so that a coordinator that loads this record rebalances as well
    assignments = {
        member_id: _encoded_target(group, member, classic.protocol_name, decision.image)
        for member_id, member in classic.members.items()
    }

    former_members = list(group.members)  # the tombstones will empty it

    def finish(error: ErrorCode, decision: Decision) -> None:
        if error is ErrorCode.NONE:
            for follow_up in draft.afterwards:
                follow_up(decision)
            for member_id in former_members:
                stop_timers(group.group_id, member_id, decision)
            _begin_classic(classic, rebalances, decision)
        then(error, decision)

    decision.write([*draft.records, *group.tombstones(), classic.record(assignments)], finish)


def _classic_member(member: ConsumerMember) -> ClassicMember:
    assert member.classic is not None
    return ClassicMember(
        member.member_id,
        member.instance_id,
        member.client_id,
        member.client_host,
        member.rebalance_timeout_ms,
        member.classic.session_timeout_ms,
        member.classic.protocols,
    )


def _encoded_target(group: ConsumerGroup, member: ClassicMember, protocol_name: str, image: MetadataImage) -> bytes:
    target = group.targets.get(member.member_id, {})
    topics = {image.topics_by_id[each].name: some for each, some in target.items() if each in image.topics_by_id}
    return encode_assignment(topics, member.metadata(protocol_name))


def _begin_classic(drafted: ClassicGroup, rebalances: bool, decision: Decision) -> None:
    """The replayed record has made the group; of its members' protocols it knows only the chosen one."""
    group = decision.groups[drafted.group_id]
    assert isinstance(group, ClassicGroup)
    for member in group.members.values():
        protocols = drafted.members[member.member_id].protocols
        group.update(member, protocols, member.rebalance_timeout_ms, member.session_timeout_ms, None)
        restart_classic_session(group, member, decision)
    if rebalances:
        prepare_rebalance(group, decision)
