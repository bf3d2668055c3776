"""FindCoordinator, versions 0 to 6: which broker coordinates a group; from version 4 on for several groups at once.

Departures from Kafka: the internal topic of groups is created within the first request, which Kafka answers with
COORDINATOR_NOT_AVAILABLE. Transactions and share groups have no coordinator.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

from odradek.handlers.broker_endpoints import find_endpoint
from odradek.handlers.group_access import allows_on_group
from odradek.handlers.unsupported_features import SHARE_GROUPS, TRANSACTIONS
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from odradek.security.authorizer import Operation

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from odradek.handlers.context import RequestContext

FIRST_VERSION_WITH_SEVERAL_KEYS = 4


class CoordinatorType(enum.IntEnum):
    GROUP = 0
    TRANSACTION = 1
    SHARE = 2


FEATURES: dict[int, str] = {CoordinatorType.TRANSACTION: TRANSACTIONS, CoordinatorType.SHARE: SHARE_GROUPS}


def handle(
    request: FindCoordinatorRequest, context: RequestContext
) -> FindCoordinatorResponse | Awaitable[FindCoordinatorResponse]:
    """The internal topic is created only for a client that may know of one of the groups."""
    is_missing = request.key_type == CoordinatorType.GROUP and not context.services.groups.has_topic
    if is_missing and any(allows_on_group(context, Operation.DESCRIBE, key) for key in _keys(request, context)):
        return _create_topic_then_answer(request, context)
    return _answer(request, context)


def _keys(request: FindCoordinatorRequest, context: RequestContext) -> list[str]:
    return request.coordinator_keys if context.api_version >= FIRST_VERSION_WITH_SEVERAL_KEYS else [request.key]


async def _create_topic_then_answer(
    request: FindCoordinatorRequest, context: RequestContext
) -> FindCoordinatorResponse:
    await context.services.groups.ensure_topic()
    return _answer(request, context)


def _answer(request: FindCoordinatorRequest, context: RequestContext) -> FindCoordinatorResponse:
    if context.api_version >= FIRST_VERSION_WITH_SEVERAL_KEYS:
        return FindCoordinatorResponse(
            coordinators=[_find(key, request.key_type, context) for key in request.coordinator_keys]
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
    if key_type != CoordinatorType.GROUP:
        if key_type in FEATURES:
            context.report_unsupported(FEATURES[key_type])
        return _refuse(key, ErrorCode.INVALID_REQUEST, f"this broker has no coordinator of type {key_type}")
    if not allows_on_group(context, Operation.DESCRIBE, key):
        return _refuse(key, ErrorCode.GROUP_AUTHORIZATION_FAILED)
    leader = context.services.groups.leader_of(key)
    endpoint = None if leader is None else find_endpoint(leader, context)
    if leader is None or endpoint is None:
        return _refuse(key, ErrorCode.COORDINATOR_NOT_AVAILABLE, "The coordinator is not available.")
    return Coordinator(key=key, node_id=leader, host=endpoint.host, port=endpoint.port, error_message="")


def _refuse(key: str, error: ErrorCode, message: str | None = None) -> Coordinator:
    return Coordinator(key=key, node_id=-1, port=-1, error_code=error, error_message=message)
