"""InitProducerId, versions 0 to 5: an id for an idempotent producer.

Departures from Kafka: a transactional id is refused until transactions are built.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.handlers.unsupported_features import TRANSACTIONS
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from odradek.protocol.sentinels import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from odradek.security.authorizer import Operation

if TYPE_CHECKING:
    from odradek.handlers.context import RequestContext


async def handle(request: InitProducerIdRequest, context: RequestContext) -> InitProducerIdResponse:
    is_half_an_identity = (request.producer_id == NO_PRODUCER_ID) != (request.producer_epoch == NO_PRODUCER_EPOCH)
    if request.transactional_id is not None:
        context.report_unsupported(TRANSACTIONS)
    if request.transactional_id is not None or is_half_an_identity:
        return InitProducerIdResponse(error_code=ErrorCode.INVALID_REQUEST, producer_epoch=NO_PRODUCER_EPOCH)
    if not _may_write(context):
        return InitProducerIdResponse(
            error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED, producer_epoch=NO_PRODUCER_EPOCH
        )
    producer_id = await context.services.producer_ids.allocate()
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)


def _may_write(context: RequestContext) -> bool:
    """Who may write to any topic may do it idempotently (KIP-679)."""
    return context.allows_on_cluster(Operation.IDEMPOTENT_WRITE) or any(
        context.allows_on_topic(Operation.WRITE, name) for name in context.services.image.topics
    )
