"""FindCoordinator, versions 0 to 6: which broker coordinates a group or a transactional id; from version 4 on for
several of them at once.

Departures from Kafka: the internal topic is created within the first request, which Kafka answers with
COORDINATOR_NOT_AVAILABLE; so does Odradek when the creation takes more than 5 s. Requests that arrive while the logs of
the topic are opened wait for them, for at most 5 s, and are then answered with the coordinator. Share groups have no
coordinator.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

from odradek.handlers.broker_endpoints import find_endpoint
from odradek.handlers.cooperative_scheduling import answer_in_turns, each_in_turn
from odradek.handlers.group_access import allows_on_group
from odradek.handlers.transactional_id_access import may_describe
from odradek.handlers.unsupported_features import SHARE_GROUPS
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from odradek.security.authorizer import Operation

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from odradek.coordinator.groups.group_coordinator import GroupCoordinator
    from odradek.coordinator.transactions.transaction_coordinator import TransactionCoordinator
    from odradek.handlers.context import RequestContext

FIRST_VERSION_WITH_SEVERAL_KEYS = 4


class CoordinatorType(enum.IntEnum):
    GROUP = 0
    TRANSACTION = 1
    SHARE = 2


def handle(
    request: FindCoordinatorRequest, context: RequestContext
) -> FindCoordinatorResponse | Awaitable[FindCoordinatorResponse]:
    """The internal topic is created only for a client that may know of one of the keys."""
    coordinator = _coordinator(request.key_type, context)
    if coordinator is not None and not coordinator.topic.is_followed:
        return _create_topic_then_answer(coordinator, request, context)
    return _answer(request, context)


def _coordinator(key_type: int, context: RequestContext) -> GroupCoordinator | TransactionCoordinator | None:
    match key_type:
        case CoordinatorType.GROUP:
            return context.services.groups
        case CoordinatorType.TRANSACTION:
            return context.services.transactions
        case _:
            return None


def _may_know(key: str, key_type: int, context: RequestContext, *, logs: bool = True) -> bool:
    if key_type == CoordinatorType.TRANSACTION:
        return may_describe(context, key, logs=logs)
    return allows_on_group(context, Operation.DESCRIBE, key, logs=logs)


def _keys(request: FindCoordinatorRequest, context: RequestContext) -> list[str]:
    return request.coordinator_keys if context.api_version >= FIRST_VERSION_WITH_SEVERAL_KEYS else [request.key]


async def _create_topic_then_answer(
    coordinator: GroupCoordinator | TransactionCoordinator, request: FindCoordinatorRequest, context: RequestContext
) -> FindCoordinatorResponse:
    async for key in each_in_turn(_keys(request, context)):
        if _may_know(key, request.key_type, context, logs=False):
            await coordinator.topic.ensure()
            break
    response = _answer(request, context)
    return response if isinstance(response, FindCoordinatorResponse) else await response


def _answer(
    request: FindCoordinatorRequest, context: RequestContext
) -> FindCoordinatorResponse | Awaitable[FindCoordinatorResponse]:
    if context.api_version >= FIRST_VERSION_WITH_SEVERAL_KEYS:
        return answer_in_turns(
            request.coordinator_keys,
            lambda key: _find(key, request.key_type, context),
            lambda coordinators: FindCoordinatorResponse(coordinators=coordinators),
        )
    found = _find(request.key, request.key_type, context)
    return FindCoordinatorResponse(
        error_code=found.error_code,
        error_message=found.error_message,
        node_id=found.node_id,
        host=found.host,
        port=found.port,
    )


def _find(key: str, key_type: int, context: RequestContext) -> Coordinator:
    coordinator = _coordinator(key_type, context)
    if coordinator is None:
        if key_type == CoordinatorType.SHARE:
            context.report_unsupported(SHARE_GROUPS)
        return _refuse(key, ErrorCode.INVALID_REQUEST, f"this broker has no coordinator of type {key_type}")
    if not _may_know(key, key_type, context):
        is_group = key_type == CoordinatorType.GROUP
        return _refuse(
            key,
            ErrorCode.GROUP_AUTHORIZATION_FAILED if is_group else ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        )
    leader = coordinator.topic.leader_of(key)
    endpoint = None if leader is None else find_endpoint(leader, context)
    if leader is None or endpoint is None:
        return _refuse(key, ErrorCode.COORDINATOR_NOT_AVAILABLE, "The coordinator is not available.")
    return Coordinator(key=key, node_id=leader, host=endpoint.host, port=endpoint.port, error_message="")


def _refuse(key: str, error: ErrorCode, message: str | None = None) -> Coordinator:
    return Coordinator(key=key, node_id=-1, port=-1, error_code=error, error_message=message)
