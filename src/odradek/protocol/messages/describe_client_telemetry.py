"""DescribeClientTelemetry, API 10002: version 0. It is Odradek's own; Kafka has no such API."""

from odradek.protocol.schema import (
    UUID,
    Request,
    Response,
    Struct,
    array,
    boolean,
    float64,
    int8,
    int16,
    int32,
    int64,
    string,
    uuid,
)


class DescribeClientTelemetryRequest(Request, api_key=10002, versions=(0, 0), flexible=0):
    """All client instances, or those that are named; with the values of their metrics if these are asked for."""

    instance_ids: list[UUID] | None = array(uuid(), nullable="0+")
    include_values: bool = boolean()


class TelemetryAttribute(Struct):
    name: str = string()
    value: str = string()


class TelemetryValue(Struct):
    """`kind` is 0 for a gauge, 1 for a sum, 2 for a histogram, whose `count` is the number of its values."""

    name: str = string()
    attributes: list[TelemetryAttribute] = array(TelemetryAttribute)
    kind: int = int8()
    value: float = float64()
    count: int = int64()


class TelemetryInstance(Struct):
    """`last_push_ms` is -1 if the client has pushed nothing; `subscription_id` and `push_interval_ms` are 0 if its
    connection has closed."""

    instance_id: UUID = uuid()
    client_id: str | None = string(nullable="0+", default=None)
    software_name: str = string()
    software_version: str = string()
    host: str = string()
    port: int = int32()
    subscription_id: int = int32()
    push_interval_ms: int = int32()
    requested_metrics: list[str] = array(string())
    last_error: int = int16()
    last_push_ms: int = int64(default=-1)
    pushes: int = int64()
    received_bytes: int = int64()
    series: int = int32()
    dropped_series: int = int64()
    values: list[TelemetryValue] = array(TelemetryValue)


class DescribeClientTelemetryResponse(Response, api_key=10002, versions=(0, 0), flexible=0):
    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    broker_id: int = int32(default=-1)
    instance_count: int = int32()
    instances: list[TelemetryInstance] = array(TelemetryInstance)
