"""ListGroups, versions 0 to 5: the groups that this broker coordinates, by state and by kind."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from odradek.coordinator.runtime.waiting_response import join_answers
from odradek.handlers.group_access import allows_on_group
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from odradek.security.authorizer import Operation

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from odradek.handlers.context import RequestContext


def handle(request: ListGroupsRequest, context: RequestContext) -> ListGroupsResponse | Awaitable[ListGroupsResponse]:
    states = {state.strip().lower() for state in request.states_filter}
    kinds = {kind.lower() for kind in request.types_filter}
    sees_all = context.allows_on_cluster(Operation.DESCRIBE, logs=False)
    parts: list[list[ListedGroup] | Awaitable[list[ListedGroup]]] = []
    for shard in context.services.groups.shards():
        if not shard.is_active:
            return ListGroupsResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        listed = [
            ListedGroup(
                group_id=group.group_id,
                protocol_type=group.protocol_type or "",
                group_state=group.state_name,
                group_type=group.kind.value,
            )
            for group in reversed(shard.machine.groups.values())  # the newest first, as a test of Apache Kafka expects
            if (not states or group.state_name.lower() in states)
            and (not kinds or group.kind.value in kinds)
            and (sees_all or allows_on_group(context, Operation.DESCRIBE, group.group_id, logs=False))
        ]
        parts.append(shard.answer_directly(listed, lambda _: []))  # another broker lists the groups of a lost shard
    return join_answers(parts, lambda lists: ListGroupsResponse(groups=list(chain.from_iterable(lists))))
