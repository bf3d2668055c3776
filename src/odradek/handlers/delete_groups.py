"""DeleteGroups, versions 0 to 2: groups without members, with their committed offsets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.coordinator.groups.offset_operations import delete_group, deletion_size
from odradek.handlers.cooperative_scheduling import answer_in_turns
from odradek.handlers.group_access import find_shard
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.delete_groups import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse
from odradek.security.authorizer import Operation

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from odradek.handlers.context import RequestContext


def handle(
    request: DeleteGroupsRequest, context: RequestContext
) -> DeleteGroupsResponse | Awaitable[DeleteGroupsResponse]:
    return answer_in_turns(
        dict.fromkeys(request.groups_names),
        lambda group_id: _delete(group_id, context),
        lambda results: DeleteGroupsResponse(results=results),
        count=lambda group_id: _count_elements(group_id, context),
    )


def _count_elements(group_id: str, context: RequestContext) -> int:
    """The group and the offsets that are removed with it."""
    shard = context.services.groups.find(group_id)
    return 1 if isinstance(shard, ErrorCode) else 1 + deletion_size(shard, group_id)


def _delete(group_id: str, context: RequestContext) -> DeletableGroupResult | Awaitable[DeletableGroupResult]:
    def respond(error: ErrorCode) -> DeletableGroupResult:
        return DeletableGroupResult(group_id=group_id, error_code=error)

    shard = find_shard(context, Operation.DELETE, group_id, may_be_nameless=True)
    if isinstance(shard, ErrorCode):
        return respond(shard)
    return shard.answer_directly(respond(delete_group(shard, group_id)), respond)
