"""SyncGroup, versions 0 to 5: the leader brings the assignment of its generation, each member gets its share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.coordinator.runtime.waiting_response import WaitingResponse
from odradek.handlers.group_access import find_shard
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from odradek.security.authorizer import Operation

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from odradek.handlers.context import RequestContext

FIRST_VERSION_WITH_PROTOCOL = 5  # KIP-559


def handle(request: SyncGroupRequest, context: RequestContext) -> SyncGroupResponse | Awaitable[SyncGroupResponse]:
    has_protocol = request.protocol_type is not None and request.protocol_name is not None
    if context.api_version >= FIRST_VERSION_WITH_PROTOCOL and not has_protocol:
        return SyncGroupResponse(error_code=ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    shard = find_shard(context, Operation.READ, request.group_id)
    if shard is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
        # The rebalance is lost. Java's consumer joins again after this error; after that of the shard it fails.
        return _refuse(ErrorCode.REBALANCE_IN_PROGRESS)
    if isinstance(shard, ErrorCode):
        return SyncGroupResponse(error_code=shard)
    response = WaitingResponse(_refuse)
    shard.sync(request, response)
    answer: SyncGroupResponse | Awaitable[SyncGroupResponse] = response.result()
    return answer


def _refuse(error: ErrorCode) -> SyncGroupResponse:
    return SyncGroupResponse(error_code=error)
