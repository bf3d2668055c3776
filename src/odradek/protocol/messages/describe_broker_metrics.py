"""DescribeBrokerMetrics, API 10001: version 0. It is Odradek's own; Kafka has no such API."""

from odradek.protocol.schema import Request, Response, Struct, array, float64, int8, int16, int32, int64, string


class DescribeBrokerMetricsRequest(Request, api_key=10001, versions=(0, 0), flexible=0):
    """`name_prefixes` chooses metrics by the beginning of their names; all of them if it is empty."""

    name_prefixes: list[str] = array(string())


class MetricLabel(Struct):
    name: str = string()
    value: str = string()


class MetricPoint(Struct):
    """`suffix` is empty, or _bucket, _sum or _count for the points of a histogram."""

    suffix: str = string()
    labels: list[MetricLabel] = array(MetricLabel)
    value: float = float64()


class MetricFamily(Struct):
    """`kind` is 0 for a counter, 1 for a gauge, 2 for a histogram."""

    name: str = string()
    kind: int = int8()
    text: str = string()
    points: list[MetricPoint] = array(MetricPoint)


class DescribeBrokerMetricsResponse(Response, api_key=10001, versions=(0, 0), flexible=0):
    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    broker_id: int = int32(default=-1)
    time_ms: int = int64()
    families: list[MetricFamily] = array(MetricFamily)
