"""AddOffsetsToTxn, versions 0 to 4: the partition of a group's offsets joins a transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.coordinator.runtime.waiting_response import WaitingResponse, map_answer
from odradek.coordinator.transactions.transaction import ProducerIdentity, TransactionVersion
from odradek.handlers.group_access import allows_on_group
from odradek.handlers.transactional_id_access import may_write
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from odradek.security.authorizer import Operation

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from odradek.handlers.context import RequestContext

FIRST_VERSION_WITH_PRODUCER_FENCED = 2


def handle(
    request: AddOffsetsToTxnRequest, context: RequestContext
) -> AddOffsetsToTxnResponse | Awaitable[AddOffsetsToTxnResponse]:
    """The topic of offsets is created if it is missing: a group may commit for the first time in a transaction."""

    def answer(error: ErrorCode) -> AddOffsetsToTxnResponse:
        if error is ErrorCode.PRODUCER_FENCED and context.api_version < FIRST_VERSION_WITH_PRODUCER_FENCED:
            error = ErrorCode.INVALID_PRODUCER_EPOCH
        return AddOffsetsToTxnResponse(error_code=error)

    error = _refusal(request, context)
    if error is not ErrorCode.NONE:
        return answer(error)
    if not context.services.groups.topic.exists:
        return _add_with_topic(request, context, answer)
    return map_answer(_add(request, context), answer)


def _refusal(request: AddOffsetsToTxnRequest, context: RequestContext) -> ErrorCode:
    if not may_write(context, request.transactional_id):
        return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    if not allows_on_group(context, Operation.READ, request.group_id):
        return ErrorCode.GROUP_AUTHORIZATION_FAILED
    if not request.transactional_id:
        return ErrorCode.INVALID_REQUEST
    return ErrorCode.NONE


async def _add_with_topic(
    request: AddOffsetsToTxnRequest, context: RequestContext, answer: Callable[[ErrorCode], AddOffsetsToTxnResponse]
) -> AddOffsetsToTxnResponse:
    topic = context.services.groups.topic
    await topic.ensure()
    if not topic.exists:  # refused: without the number of its partitions, that of the group is not known
        return answer(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    outcome = _add(request, context)
    return answer(await outcome if isinstance(outcome, WaitingResponse) else outcome)


def _add(request: AddOffsetsToTxnRequest, context: RequestContext) -> ErrorCode | WaitingResponse:
    services = context.services
    return services.transactions.add_partitions(
        request.transactional_id,
        ProducerIdentity(request.producer_id, request.producer_epoch),
        [services.groups.partition_of(request.group_id)],
        TransactionVersion.V0,
    )
