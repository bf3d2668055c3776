"""InitProducerId, versions 0 to 5: an id for an idempotent producer, or id and epoch for a transactional one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.coordinator.transactions.transaction import ProducerIdentity
from odradek.coordinator.transactions.transaction_coordinator import InitResult
from odradek.handlers.transactional_id_access import may_write
from odradek.metadata.store import StoreError
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from odradek.protocol.sentinels import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from odradek.security.authorizer import Operation, ResourceType

if TYPE_CHECKING:
    from odradek.handlers.context import RequestContext

FIRST_VERSION_WITH_PRODUCER_FENCED = 4


async def handle(request: InitProducerIdRequest, context: RequestContext) -> InitProducerIdResponse:
    has_incomplete_producer_identity = (request.producer_id == NO_PRODUCER_ID) != (
        request.producer_epoch == NO_PRODUCER_EPOCH
    )
    if request.transactional_id is not None:
        if not may_write(context, request.transactional_id):
            return _refuse(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    elif not _may_write(context):
        return _refuse(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    if has_incomplete_producer_identity:
        return _refuse(ErrorCode.INVALID_REQUEST)
    if request.transactional_id is not None:
        return await _init_transactional(request, request.transactional_id, context)
    try:
        producer_id = await context.services.producer_ids.allocate()
    except StoreError:
        return _refuse(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)  # as in Kafka without a block of ids: clients retry
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)


async def _init_transactional(
    request: InitProducerIdRequest, transactional_id: str, context: RequestContext
) -> InitProducerIdResponse:
    if not transactional_id:
        return _refuse(ErrorCode.INVALID_REQUEST)
    has_identity = request.producer_id != NO_PRODUCER_ID
    expected = ProducerIdentity(request.producer_id, request.producer_epoch) if has_identity else None
    result = context.services.transactions.init_producer(transactional_id, request.transaction_timeout_ms, expected)
    error, identity = result if isinstance(result, InitResult) else await result
    if error is ErrorCode.PRODUCER_FENCED and context.api_version < FIRST_VERSION_WITH_PRODUCER_FENCED:
        error = ErrorCode.INVALID_PRODUCER_EPOCH
    return InitProducerIdResponse(error_code=error, producer_id=identity.producer_id, producer_epoch=identity.epoch)


def _refuse(error: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=error, producer_epoch=NO_PRODUCER_EPOCH)


def _may_write(context: RequestContext) -> bool:
    """A principal that may write to any topic may write idempotently (KIP-679)."""
    return context.allows_on_cluster(Operation.IDEMPOTENT_WRITE, logs=False) or context.allows_on_any(
        Operation.WRITE, ResourceType.TOPIC
    )
