"""DescribeClientTelemetry, version 0: the clients that push metrics to this broker, and their latest values.

An API of Odradek's own, for its command line and console. It needs Describe on the cluster. ApiVersions lists it for
clients that name themselves `odradek` only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.describe_client_telemetry import (
    DescribeClientTelemetryRequest,
    DescribeClientTelemetryResponse,
    TelemetryAttribute,
    TelemetryInstance,
    TelemetryValue,
)
from odradek.security.authorizer import Operation

if TYPE_CHECKING:
    from uuid import UUID

    from odradek.handlers.context import RequestContext
    from odradek.telemetry.client_telemetry import ClientTelemetry

MOST_INSTANCES = 5_000
MOST_INSTANCES_WITH_VALUES = 20


def handle(request: DescribeClientTelemetryRequest, context: RequestContext) -> DescribeClientTelemetryResponse:
    if not context.allows_on_cluster(Operation.DESCRIBE):
        return DescribeClientTelemetryResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    telemetry = context.services.telemetry
    if telemetry is None:
        message = "this broker takes no client telemetry (client.telemetry.enable)"
        return DescribeClientTelemetryResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, error_message=message)
    known = telemetry.instance_ids()
    if request.instance_ids is None:
        wanted = known
    else:
        present = set(known)
        wanted = [each for each in request.instance_ids if each in present]
    limit = MOST_INSTANCES_WITH_VALUES if request.include_values else MOST_INSTANCES
    return DescribeClientTelemetryResponse(
        broker_id=context.services.config.node_id,
        instance_count=len(wanted),
        instances=[_instance(telemetry, each, with_values=request.include_values) for each in wanted[:limit]],
    )


def _instance(telemetry: ClientTelemetry, instance_id: UUID, *, with_values: bool) -> TelemetryInstance:
    state, values = telemetry.instance(instance_id), telemetry.values_of(instance_id)
    described = TelemetryInstance(instance_id=instance_id, requested_metrics=[], values=[])
    client = state.client if state is not None else values.client if values is not None else None
    if client is not None:
        described.client_id, described.host, described.port = client.client_id, client.address, client.port
        described.software_name, described.software_version = client.software_name, client.software_version
    if state is not None:
        described.subscription_id = state.requested.subscription_id
        described.push_interval_ms = state.requested.interval_ms
        described.requested_metrics = list(state.requested.metrics)
        described.last_error = state.last_error
    if values is not None:
        described.last_push_ms, described.pushes = values.pushed_ms, values.pushes
        described.received_bytes, described.series = values.received_bytes, len(values.series)
        described.dropped_series = values.dropped
        if with_values:
            described.values = [
                TelemetryValue(
                    name=name,
                    attributes=[TelemetryAttribute(name=key, value=text) for key, text in attributes],
                    kind=value.kind,
                    value=value.value,
                    count=value.count,
                )
                for (name, attributes), value in values.series.items()
            ]
    return described
