"""ListGroups, versions 0 to 5: the groups that this broker coordinates, by state and by kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.handlers.group_access import allows_on_group
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from odradek.security.authorizer import Operation

if TYPE_CHECKING:
    from odradek.handlers.context import RequestContext


def handle(request: ListGroupsRequest, context: RequestContext) -> ListGroupsResponse:
    states = {state.strip().lower() for state in request.states_filter}
    kinds = {kind.lower() for kind in request.types_filter}
    sees_all = context.allows_on_cluster(Operation.DESCRIBE)
    listed: list[ListedGroup] = []
    for shard in context.services.groups.shards():
        if not shard.is_loaded:
            return ListGroupsResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        listed += [
            ListedGroup(
                group_id=group.group_id,
                protocol_type=group.protocol_type or "",
                group_state=group.state_name,
                group_type=group.kind.value,
            )
            for group in reversed(shard.groups.values())  # the newest first; one of Kafka's own tests counts on it
            if (not states or group.state_name.lower() in states)
            and (not kinds or group.kind.value in kinds)
            and (sees_all or allows_on_group(context, Operation.DESCRIBE, group.group_id))
        ]
    return ListGroupsResponse(groups=listed)
