"""BrokerRegistration, versions 0 to 4: a broker joins the cluster, fenced at first. Sent by brokers only.

Departures from Kafka: features, incarnation ids and ids of log directories are not kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.configuration.listeners import Endpoint
from odradek.controller.metadata_writer import ControllerFenced
from odradek.handlers.controller_access import is_broker
from odradek.metadata.entities import BrokerImage
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse

if TYPE_CHECKING:
    from odradek.handlers.context import RequestContext


async def handle(request: BrokerRegistrationRequest, context: RequestContext) -> BrokerRegistrationResponse:
    services = context.services
    if not is_broker(context):
        return BrokerRegistrationResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    if request.cluster_id != services.image.cluster_id:
        return BrokerRegistrationResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID)
    local = services.controller.local()
    if local is None:
        return BrokerRegistrationResponse(error_code=ErrorCode.NOT_CONTROLLER)
    endpoints = {listener.name: Endpoint(listener.host, listener.port) for listener in request.listeners}
    broker = BrokerImage(request.broker_id, endpoints, request.rack, is_fenced=True)
    try:
        epoch = await local.register_broker(broker, request.previous_broker_epoch)
    except ControllerFenced:
        return BrokerRegistrationResponse(error_code=ErrorCode.NOT_CONTROLLER)
    return BrokerRegistrationResponse(broker_epoch=epoch)
