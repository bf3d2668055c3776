"""AllocateProducerIds, version 0: a block of producer ids for a broker. Sent by brokers only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.controller.requests import AllocateProducerIds
from odradek.coordinator.producer_ids import BLOCK_SIZE
from odradek.handlers.broker_access import is_broker_request
from odradek.metadata.store import StoreError
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse

if TYPE_CHECKING:
    from odradek.handlers.context import RequestContext


async def handle(request: AllocateProducerIdsRequest, context: RequestContext) -> AllocateProducerIdsResponse:
    if not is_broker_request(context):
        return AllocateProducerIdsResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    broker = context.services.image.brokers.get(request.broker_id)
    if broker is None or broker.broker_epoch != request.broker_epoch:
        return AllocateProducerIdsResponse(error_code=ErrorCode.STALE_BROKER_EPOCH)
    local = context.services.controller.local()
    if local is None:
        return AllocateProducerIdsResponse(error_code=ErrorCode.NOT_CONTROLLER)
    try:
        first_id = await local.ask(AllocateProducerIds(BLOCK_SIZE))
    except StoreError:
        return AllocateProducerIdsResponse(error_code=ErrorCode.NOT_CONTROLLER)  # the broker retries
    return AllocateProducerIdsResponse(producer_id_start=first_id, producer_id_len=BLOCK_SIZE)
