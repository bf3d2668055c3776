"""UnregisterBroker, version 0. Departure from Kafka: a broker that is running is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.controller.requests import UnregisterBroker
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse
from odradek.security.authorizer import Operation

if TYPE_CHECKING:
    from odradek.handlers.context import RequestContext


async def handle(request: UnregisterBrokerRequest, context: RequestContext) -> UnregisterBrokerResponse:
    if not context.allows_on_cluster(Operation.ALTER):
        return UnregisterBrokerResponse(
            error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED, error_message="Cluster authorization failed."
        )
    refusal = await context.services.controller.ask(UnregisterBroker(request.broker_id))
    if refusal is None:
        return UnregisterBrokerResponse(error_message=None)
    return UnregisterBrokerResponse(error_code=refusal.error, error_message=refusal.message)
