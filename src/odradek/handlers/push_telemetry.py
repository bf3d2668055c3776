"""PushTelemetry, version 0: the metrics of a client (KIP-714), in Kafka's order of checks.

Departures from Kafka: the broker reads the metrics itself, so that a push that cannot be decompressed or parsed, or
that exceeds a limit of the parser, is answered with INVALID_RECORD; while many pushes wait to be read, further ones are
answered with THROTTLING_QUOTA_EXCEEDED.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.handlers.telemetry_clients import client_facts
from odradek.host.workers import yield_to_event_loop
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.push_telemetry import PushTelemetryRequest, PushTelemetryResponse
from odradek.telemetry.client_telemetry import Push, read_push

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from odradek.handlers.context import RequestContext
    from odradek.telemetry.client_telemetry import ClientTelemetry
    from odradek.telemetry.instances import ClientInstance

READ_AT_ONCE_BYTES = 2048  # larger and compressed pushes are read on a worker, because they may take milliseconds


def handle(
    request: PushTelemetryRequest, context: RequestContext
) -> PushTelemetryResponse | Awaitable[PushTelemetryResponse]:
    telemetry = context.services.telemetry
    if telemetry is None:
        return PushTelemetryResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    most_bytes = context.services.config.telemetry_max_bytes
    push = Push(
        request.client_instance_id,
        request.subscription_id,
        request.terminating,
        request.compression_type,
        bytes(request.metrics),
    )
    begun = telemetry.begin_push(push, client_facts(context), most_bytes)
    if isinstance(begun, ErrorCode):
        return PushTelemetryResponse(error_code=begun)
    context.connection.telemetry_instance = push.instance_id
    if push.compression or len(push.metrics) > READ_AT_ONCE_BYTES:
        if telemetry.read_turns.are_full:
            begun.last_error = ErrorCode.THROTTLING_QUOTA_EXCEEDED
            return PushTelemetryResponse(error_code=ErrorCode.THROTTLING_QUOTA_EXCEEDED)
        return _read_on_worker(telemetry, begun, push, context, most_bytes)
    return PushTelemetryResponse(error_code=telemetry.finish_push(begun, push, read_push(push, most_bytes)))


def _read_on_worker(
    telemetry: ClientTelemetry, instance: ClientInstance, push: Push, context: RequestContext, most_bytes: int
) -> Awaitable[PushTelemetryResponse]:
    async def read() -> PushTelemetryResponse:
        points = await context.services.host.workers.run(read_push, push, most_bytes, yield_to_event_loop)
        return PushTelemetryResponse(error_code=telemetry.finish_push(instance, push, points))

    return telemetry.read_turns.run(read)
