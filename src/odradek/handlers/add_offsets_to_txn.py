"""AddOffsetsToTxn, versions 0 to 4: the partition of a group's offsets joins a transaction."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

from odradek.coordinator.transactions.transaction import ProducerIdentity, TransactionVersion
from odradek.handlers.group_access import allows_on_group
from odradek.handlers.transactional_id_access import may_write
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from odradek.security.authorizer import Operation

if TYPE_CHECKING:
    from odradek.handlers.context import RequestContext

FIRST_VERSION_WITH_PRODUCER_FENCED = 2


async def handle(request: AddOffsetsToTxnRequest, context: RequestContext) -> AddOffsetsToTxnResponse:
    """The topic of offsets is created if it is missing: a group may commit for the first time in a transaction."""
    error = await _add(request, context)
    if error is ErrorCode.PRODUCER_FENCED and context.api_version < FIRST_VERSION_WITH_PRODUCER_FENCED:
        error = ErrorCode.INVALID_PRODUCER_EPOCH
    return AddOffsetsToTxnResponse(error_code=error)


async def _add(request: AddOffsetsToTxnRequest, context: RequestContext) -> ErrorCode:
    services = context.services
    if not may_write(context, request.transactional_id):
        return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    if not allows_on_group(context, Operation.READ, request.group_id):
        return ErrorCode.GROUP_AUTHORIZATION_FAILED
    if not request.transactional_id:
        return ErrorCode.INVALID_REQUEST
    await services.groups.topic.ensure()
    outcome = services.transactions.add_partitions(
        request.transactional_id,
        ProducerIdentity(request.producer_id, request.producer_epoch),
        [services.groups.partition_of(request.group_id)],
        TransactionVersion.V0,
    )
    return await outcome if inspect.isawaitable(outcome) else outcome
