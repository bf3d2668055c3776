"""LeaveGroup, versions 0 to 5: members leave before their session ends; from version 3 on several at once, also by the
instance id of a static member."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.handlers.group_access import find_shard
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from odradek.security.authorizer import Operation

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from odradek.handlers.context import RequestContext

FIRST_VERSION_WITH_SEVERAL_MEMBERS = 3


def handle(request: LeaveGroupRequest, context: RequestContext) -> LeaveGroupResponse | Awaitable[LeaveGroupResponse]:
    shard = find_shard(context, Operation.READ, request.group_id)
    if isinstance(shard, ErrorCode):
        return _refuse(shard)
    if context.api_version >= FIRST_VERSION_WITH_SEVERAL_MEMBERS:
        response = LeaveGroupResponse(members=shard.leave(request.group_id, request.members))
    else:
        (answer,) = shard.leave(request.group_id, [MemberIdentity(member_id=request.member_id)])
        response = LeaveGroupResponse(error_code=answer.error_code)
    return shard.answer_directly(response, _refuse)


def _refuse(error: ErrorCode) -> LeaveGroupResponse:
    return LeaveGroupResponse(error_code=error)
