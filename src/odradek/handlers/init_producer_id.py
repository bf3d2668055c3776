"""InitProducerId, versions 0 to 5: an id for an idempotent producer.

Departures from Kafka: transactions are not supported, so a transactional id is refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.controller.metadata_writer import ControllerFenced
from odradek.handlers.unsupported_features import TRANSACTIONS
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from odradek.protocol.sentinels import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from odradek.security.authorizer import Operation

if TYPE_CHECKING:
    from odradek.handlers.context import RequestContext


async def handle(request: InitProducerIdRequest, context: RequestContext) -> InitProducerIdResponse:
    has_incomplete_producer_identity = (request.producer_id == NO_PRODUCER_ID) != (
        request.producer_epoch == NO_PRODUCER_EPOCH
    )
    if request.transactional_id is not None:
        context.report_unsupported(TRANSACTIONS)
    if request.transactional_id is not None or has_incomplete_producer_identity:
        return _refuse(ErrorCode.INVALID_REQUEST)
    if not _may_write(context):
        return _refuse(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    try:
        producer_id = await context.services.producer_ids.allocate()
    except ControllerFenced:
        return _refuse(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)  # as in Kafka without a block of ids: clients retry
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)


def _refuse(error: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=error, producer_epoch=NO_PRODUCER_EPOCH)


def _may_write(context: RequestContext) -> bool:
    """A principal that may write to any topic may write idempotently (KIP-679)."""
    return context.allows_on_cluster(Operation.IDEMPOTENT_WRITE) or any(
        context.allows_on_topic(Operation.WRITE, name) for name in context.services.image.topics
    )
