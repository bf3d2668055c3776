"""DescribeGroups, versions 0 to 6: state, protocol and members of classic groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.coordinator.groups.classic.group import ClassicGroup, ClassicState
from odradek.handlers.group_access import find_shard
from odradek.handlers.repeated_names import TOO_OFTEN, answer_names
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from odradek.security.authorizer import Operation, ResourceType

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from odradek.coordinator.groups.group import Group
    from odradek.handlers.context import RequestContext

FIRST_VERSION_WITH_UNKNOWN_GROUP = 6


def handle(
    request: DescribeGroupsRequest, context: RequestContext
) -> DescribeGroupsResponse | Awaitable[DescribeGroupsResponse]:
    return answer_names(
        request.groups,
        lambda group_id: _describe(group_id, request.include_authorized_operations, context),
        _refuse_repetition,
        lambda described: DescribeGroupsResponse(groups=described),
    )


def _refuse_repetition(group_id: str) -> DescribedGroup:
    return DescribedGroup(group_id=group_id, error_code=ErrorCode.INVALID_REQUEST, error_message=TOO_OFTEN)


def _describe(
    group_id: str, with_operations: bool, context: RequestContext
) -> DescribedGroup | Awaitable[DescribedGroup]:
    shard = find_shard(context, Operation.DESCRIBE, group_id, may_be_nameless=True)
    if isinstance(shard, ErrorCode):
        return DescribedGroup(group_id=group_id, error_code=shard)
    described = _describe_group(group_id, shard.groups.get(group_id), context)
    if with_operations and described.error_code == ErrorCode.NONE:
        described.authorized_operations = context.authorized_operations(ResourceType.GROUP, group_id)
    return shard.answer_directly(described, lambda error: DescribedGroup(group_id=group_id, error_code=error))


def _describe_group(group_id: str, group: Group | None, context: RequestContext) -> DescribedGroup:
    if not isinstance(group, ClassicGroup):
        unknown = DescribedGroup(group_id=group_id, group_state=ClassicState.DEAD.value)
        if context.api_version >= FIRST_VERSION_WITH_UNKNOWN_GROUP:
            unknown.error_code = ErrorCode.GROUP_ID_NOT_FOUND
            unknown.error_message = f"Group {group_id} {'not found' if group is None else 'is not a classic group'}."
        return unknown
    is_stable = group.state is ClassicState.STABLE
    return DescribedGroup(
        group_id=group_id,
        group_state=group.state_name,
        protocol_type=group.protocol_type or "",
        protocol_data=(group.protocol_name or "") if is_stable else "",
        members=[
            DescribedGroupMember(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                member_metadata=member.metadata(group.protocol_name) if is_stable else b"",
                member_assignment=member.assignment,
            )
            for member in group.members.values()
        ],
    )
