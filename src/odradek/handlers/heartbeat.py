"""Heartbeat, versions 0 to 4: a member of a classic group is alive, and learns whether it must join again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.handlers.group_access import find_shard
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from odradek.security.authorizer import Operation

if TYPE_CHECKING:
    from odradek.handlers.context import RequestContext


def handle(request: HeartbeatRequest, context: RequestContext) -> HeartbeatResponse:
    shard = find_shard(context, Operation.READ, request.group_id)
    if shard is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
        return HeartbeatResponse()  # nobody can tell yet, and its session has not begun
    if isinstance(shard, ErrorCode):
        return HeartbeatResponse(error_code=shard)
    return HeartbeatResponse(error_code=shard.heartbeat(request))
