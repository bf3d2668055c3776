"""JoinGroup, versions 0 to 9: become a member of a classic group's next generation. The answer waits until the other
members have joined.

Departures from Kafka: a member that joins twice at the same time gets an answer to both requests; a subscription that
cannot be read is passed on to the leader like any other, where Kafka answers UNKNOWN_SERVER_ERROR to some of them. In a
consumer group, which has no leading member, the subscription of every protocol must be readable
(INCONSISTENT_GROUP_PROTOCOL). The metadata of a member, of a group and of groups without an assignment has limits
(`coordinator/groups/classic/join_budget`).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from odradek.coordinator.groups.classic.join import Join
from odradek.coordinator.runtime.waiting_response import WaitingResponse
from odradek.handlers.group_access import find_shard
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from odradek.security.authorizer import Operation

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from odradek.handlers.context import RequestContext

# A member id is kept for each client that asks for one; a client id may have 32,767 bytes.
LONGEST_ID_PREFIX = 255
FIRST_VERSION_WITH_REBALANCE_TIMEOUT = 1
FIRST_VERSION_WITH_NULL_PROTOCOL = 7


def handle(request: JoinGroupRequest, context: RequestContext) -> JoinGroupResponse | Awaitable[JoinGroupResponse]:
    groups = context.services.groups
    shard = find_shard(context, Operation.READ, request.group_id)
    if isinstance(shard, ErrorCode):
        return _refuse(shard, request, context)
    settings = groups.settings()
    if not settings.min_session_timeout_ms <= request.session_timeout_ms <= settings.max_session_timeout_ms:
        return _refuse(ErrorCode.INVALID_SESSION_TIMEOUT, request, context)
    if context.api_version < FIRST_VERSION_WITH_REBALANCE_TIMEOUT:
        request.rebalance_timeout_ms = request.session_timeout_ms
    client_id = context.client_id or ""
    response = WaitingResponse(lambda error: _refuse(error, request, context))
    shard.join(
        Join(
            request,
            context.api_version,
            client_id,
            f"/{context.connection.host}",
            f"{(request.group_instance_id or client_id)[:LONGEST_ID_PREFIX]}-{context.services.host.entropy.uuid()}",
            response if context.api_version >= FIRST_VERSION_WITH_NULL_PROTOCOL else _WithoutNull(response),
            partial(context.allows_on_topic, Operation.DESCRIBE),
        )
    )
    answer: JoinGroupResponse | Awaitable[JoinGroupResponse] = response.result()
    return answer


class _WithoutNull:
    """A waiter for old versions, in which the protocol's name cannot be null."""

    __slots__ = ("_response",)

    def __init__(self, response: WaitingResponse) -> None:
        self._response = response

    def __call__(self, response: JoinGroupResponse) -> None:
        if response.protocol_name is None:
            response.protocol_name = ""
        self._response(response)

    def refuse(self, error: ErrorCode) -> None:
        self._response.refuse(error)


def _refuse(error: ErrorCode, request: JoinGroupRequest, context: RequestContext) -> JoinGroupResponse:
    response = JoinGroupResponse(error_code=error, member_id=request.member_id)
    if error is ErrorCode.GROUP_AUTHORIZATION_FAILED and context.api_version >= FIRST_VERSION_WITH_NULL_PROTOCOL:
        response.protocol_name = None
    return response
