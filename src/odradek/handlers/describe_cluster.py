"""DescribeCluster, versions 0 to 2: the brokers, the controller and the cluster's id."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.handlers.broker_endpoints import reachable_brokers
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)

if TYPE_CHECKING:
    from odradek.handlers.context import RequestContext

BROKER_ENDPOINTS = 1
CONTROLLER_ENDPOINTS = 2


def handle(request: DescribeClusterRequest, context: RequestContext) -> DescribeClusterResponse:
    services = context.services
    if request.endpoint_type != BROKER_ENDPOINTS:
        is_known = request.endpoint_type == CONTROLLER_ENDPOINTS
        return DescribeClusterResponse(
            error_code=ErrorCode.MISMATCHED_ENDPOINT_TYPE if is_known else ErrorCode.UNSUPPORTED_ENDPOINT_TYPE,
            error_message="This is a broker's listener: ask for broker endpoints.",
            cluster_id=services.image.cluster_id,
        )
    response = DescribeClusterResponse(
        cluster_id=services.image.cluster_id, controller_id=services.image.controller_id, brokers=[]
    )
    reachable = reachable_brokers(context, include_fenced=request.include_fenced_brokers)
    response.brokers = [
        DescribeClusterBroker(
            broker_id=broker.node_id, host=host, port=port, rack=broker.rack, is_fenced=broker.is_fenced
        )
        for broker, (host, port) in reachable.values()
    ]
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = context.authorized_cluster_operations()
    return response
