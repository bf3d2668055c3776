"""Heartbeat, versions 0 to 4: a member of a classic group is alive, and learns whether it must rejoin."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.handlers.group_access import find_shard
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from odradek.security.authorizer import Operation

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from odradek.handlers.context import RequestContext


def handle(request: HeartbeatRequest, context: RequestContext) -> HeartbeatResponse | Awaitable[HeartbeatResponse]:
    shard = find_shard(context, Operation.READ, request.group_id)
    if shard is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
        return HeartbeatResponse()  # sessions begin when the shard is loaded
    if isinstance(shard, ErrorCode):
        return _respond(shard)
    return shard.answer_directly(_respond(shard.heartbeat(request)), _respond)


def _respond(error: ErrorCode) -> HeartbeatResponse:
    return HeartbeatResponse(error_code=error)
