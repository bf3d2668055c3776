"""GetTelemetrySubscriptions, API 71: version 0."""

from odradek.protocol.schema import UUID, Request, Response, array, boolean, int8, int16, int32, string, uuid


class GetTelemetrySubscriptionsRequest(Request, api_key=71, versions=(0, 0), flexible=0):
    client_instance_id: UUID = uuid()


class GetTelemetrySubscriptionsResponse(Response, api_key=71, versions=(0, 0), flexible=0):
    throttle_time_ms: int = int32()
    error_code: int = int16()
    client_instance_id: UUID = uuid()
    subscription_id: int = int32()
    accepted_compression_types: list[int] = array(int8())
    push_interval_ms: int = int32()
    telemetry_max_bytes: int = int32()
    delta_temporality: bool = boolean()
    requested_metrics: list[str] = array(string())
