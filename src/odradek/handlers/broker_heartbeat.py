"""BrokerHeartbeat, versions 0 to 2: a broker asks to be unfenced, or to shut down, or reports replicas on log
directories that failed. Sent by brokers only.

Departure from Kafka: a broker sends it when its state is to change. It is not a sign of life, because brokers register
in ZooKeeper. The metadata does not know on which directory a replica is, so that a broker reports replicas and not
directories. Offsets of the metadata, `want_fence` and the states of log directories are ignored.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.controller.broker_requests import offline_replicas_of
from odradek.controller.requests import ReportOfflineReplicas, ShutDownBroker, UnfenceBroker
from odradek.handlers.broker_access import is_broker_request
from odradek.metadata.store import StoreError
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse

if TYPE_CHECKING:
    from odradek.handlers.context import RequestContext


async def handle(request: BrokerHeartbeatRequest, context: RequestContext) -> BrokerHeartbeatResponse:
    if not is_broker_request(context):
        return BrokerHeartbeatResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    local = context.services.controller.local()
    if local is None:
        return BrokerHeartbeatResponse(error_code=ErrorCode.NOT_CONTROLLER)
    node_id, broker_epoch = request.broker_id, request.broker_epoch
    try:
        if request.offline_replicas:
            error = await local.ask(ReportOfflineReplicas(node_id, broker_epoch, offline_replicas_of(request)))
            return BrokerHeartbeatResponse(error_code=error, is_caught_up=True, is_fenced=False)
        change = ShutDownBroker if request.want_shut_down else UnfenceBroker
        status = await local.ask(change(node_id, broker_epoch))
    except StoreError:
        return BrokerHeartbeatResponse(error_code=ErrorCode.NOT_CONTROLLER)  # the broker retries
    return BrokerHeartbeatResponse(
        error_code=status.error,
        is_caught_up=True,
        is_fenced=status.is_fenced,
        should_shut_down=request.want_shut_down and status.may_stop,
    )
