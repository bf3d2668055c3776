"""ConsumerGroupDescribe, versions 0 and 1: state, epochs and members of consumer groups, from version 1 on with the
protocol that each member speaks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.coordinator.groups.consumer.group import ConsumerGroup, no_consumer_group
from odradek.handlers.group_access import find_shard, offers_consumer_protocol
from odradek.handlers.repeated_names import TOO_OFTEN, answer_names
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.consumer_group_describe import (
    Assignment,
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
    Member,
    TopicPartitions,
)
from odradek.security.authorizer import Operation, ResourceType

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterable, Mapping
    from uuid import UUID

    from odradek.coordinator.groups.consumer.members import ConsumerMember
    from odradek.coordinator.groups.group import Group
    from odradek.handlers.context import RequestContext
    from odradek.metadata.image import MetadataImage

CLASSIC_MEMBER, CONSUMER_MEMBER = 0, 1
HIDDEN_TOPICS = "The group has described topic(s) that the client is not authorized to describe."


def handle(
    request: ConsumerGroupDescribeRequest, context: RequestContext
) -> ConsumerGroupDescribeResponse | Awaitable[ConsumerGroupDescribeResponse]:
    if not offers_consumer_protocol(context):
        error = ErrorCode.UNSUPPORTED_VERSION
        refused = [DescribedGroup(group_id=group_id, error_code=error) for group_id in request.group_ids]
        return ConsumerGroupDescribeResponse(groups=refused)
    return answer_names(
        request.group_ids,
        lambda group_id: _describe(group_id, request.include_authorized_operations, context),
        _refuse_repetition,
        lambda described: ConsumerGroupDescribeResponse(groups=described),
    )


def _refuse_repetition(group_id: str) -> DescribedGroup:
    return DescribedGroup(group_id=group_id, error_code=ErrorCode.INVALID_REQUEST, error_message=TOO_OFTEN)


def _describe(
    group_id: str, with_operations: bool, context: RequestContext
) -> DescribedGroup | Awaitable[DescribedGroup]:
    shard = find_shard(context, Operation.DESCRIBE, group_id)
    if isinstance(shard, ErrorCode):
        return DescribedGroup(group_id=group_id, error_code=shard)
    described = _describe_group(group_id, shard.groups.get(group_id), context)
    if with_operations and described.error_code == ErrorCode.NONE:
        described.authorized_operations = context.authorized_operations(ResourceType.GROUP, group_id)
    return shard.answer_directly(described, lambda error: DescribedGroup(group_id=group_id, error_code=error))


def _describe_group(group_id: str, group: Group | None, context: RequestContext) -> DescribedGroup:
    if not isinstance(group, ConsumerGroup):
        error, message = no_consumer_group(group_id, group)
        return DescribedGroup(group_id=group_id, error_code=error, error_message=message)
    members = [_member(group, member, context.services.image) for member in group.members.values()]
    shown = {
        topic.topic_name
        for member in members
        for assignment in (member.assignment, member.target_assignment)
        for topic in assignment.topic_partitions
    }
    if not all(context.allows_on_topic(Operation.DESCRIBE, topic) for topic in shown):
        error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        return DescribedGroup(group_id=group_id, error_code=error, error_message=HIDDEN_TOPICS)
    default_assignor = context.services.groups.settings().consumer_assignors[0]
    return DescribedGroup(
        group_id=group_id,
        group_state=group.state_name,
        group_epoch=group.epoch,
        assignment_epoch=group.target_epoch,
        assignor_name=group.preferred_assignor(default_assignor),
        members=members,
    )


def _member(group: ConsumerGroup, member: ConsumerMember, image: MetadataImage) -> Member:
    """A partition that the member must revoke belongs to it until the member confirms."""
    owned: dict[UUID, set[int]] = {}
    for part in (member.assigned, member.pending_revocation):
        for topic_id, partitions in part.items():
            owned.setdefault(topic_id, set()).update(partitions)
    return Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.topic_names),
        subscribed_topic_regex=member.topic_pattern,
        assignment=_assignment(owned, image),
        target_assignment=_assignment(group.targets.get(member.member_id, {}), image),
        member_type=CONSUMER_MEMBER if member.classic is None else CLASSIC_MEMBER,
    )


def _assignment(partitions: Mapping[UUID, Iterable[int]], image: MetadataImage) -> Assignment:
    topics = [
        TopicPartitions(topic_id=topic_id, topic_name=topic.name, partitions=sorted(some))
        for topic_id, some in partitions.items()
        if (topic := image.topic_by_id(topic_id)) is not None
    ]
    return Assignment(topic_partitions=topics)
