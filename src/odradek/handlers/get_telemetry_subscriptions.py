"""GetTelemetrySubscriptions, version 0: which metrics this client shall push, and how often (KIP-714).

As in Kafka every authenticated client may ask. Kafka serves it with a receiver plugin only; here the broker itself
keeps the values (decision 38).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.handlers.telemetry_clients import client_facts
from odradek.protocol.compression import Compression
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)

if TYPE_CHECKING:
    from odradek.handlers.context import RequestContext

ACCEPTED = [Compression.ZSTD, Compression.LZ4, Compression.GZIP, Compression.SNAPPY]  # Kafka's order


def handle(request: GetTelemetrySubscriptionsRequest, context: RequestContext) -> GetTelemetrySubscriptionsResponse:
    telemetry = context.services.telemetry
    if telemetry is None:
        return GetTelemetrySubscriptionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    answer = telemetry.subscribe(request.client_instance_id, client_facts(context))
    if isinstance(answer, ErrorCode):
        return GetTelemetrySubscriptionsResponse(error_code=answer)
    instance_id, requested = answer
    context.connection.telemetry_instance = instance_id
    return GetTelemetrySubscriptionsResponse(
        client_instance_id=instance_id,
        subscription_id=requested.subscription_id,
        accepted_compression_types=[int(each) for each in ACCEPTED],
        push_interval_ms=requested.interval_ms,
        telemetry_max_bytes=context.services.config.telemetry_max_bytes,
        delta_temporality=True,
        requested_metrics=list(requested.metrics),
    )
