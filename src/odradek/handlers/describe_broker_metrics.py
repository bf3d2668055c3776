"""DescribeBrokerMetrics, version 0: the metrics of this broker, as /metrics has them.

An API of Odradek's own, for its console and command line. It needs Describe on the cluster. Topics that the client may
not describe are counted as `other`. ApiVersions lists it for
clients that name themselves `odradek` only, so that other clients see Kafka's APIs alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.metrics.hidden_topics import hide_topics
from odradek.metrics.samples import Kind
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.describe_broker_metrics import (
    DescribeBrokerMetricsRequest,
    DescribeBrokerMetricsResponse,
    MetricFamily,
    MetricLabel,
    MetricPoint,
)
from odradek.security.authorizer import Operation

if TYPE_CHECKING:
    from collections.abc import Awaitable, Sequence

    from odradek.handlers.context import CollectMetrics, RequestContext

MOST_PREFIXES = 100
_KINDS = {Kind.COUNTER: 0, Kind.GAUGE: 1, Kind.HISTOGRAM: 2}


def handle(
    request: DescribeBrokerMetricsRequest, context: RequestContext
) -> DescribeBrokerMetricsResponse | Awaitable[DescribeBrokerMetricsResponse]:
    if not context.allows_on_cluster(Operation.DESCRIBE):
        return _refuse(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    if len(request.name_prefixes) > MOST_PREFIXES:
        return _refuse(ErrorCode.INVALID_REQUEST, f"at most {MOST_PREFIXES} prefixes of names can be given")
    collect = context.services.collect_metrics
    if collect is None:
        return _refuse(ErrorCode.INVALID_REQUEST, "this broker collects no metrics")
    return _describe(collect, request.name_prefixes, context)


async def _describe(
    collect: CollectMetrics, prefixes: Sequence[str], context: RequestContext
) -> DescribeBrokerMetricsResponse:
    families = hide_topics(
        await collect(prefixes), lambda topic: context.allows_on_topic(Operation.DESCRIBE, topic, logs=False)
    )
    return DescribeBrokerMetricsResponse(
        broker_id=context.services.config.node_id,
        time_ms=context.services.host.clock.now_ms(),
        families=[
            MetricFamily(
                name=definition.name,
                kind=_KINDS[definition.kind],
                text=definition.text,
                points=[
                    MetricPoint(
                        suffix=suffix,
                        labels=[MetricLabel(name=name, value=value) for name, value in labels],
                        value=float(value),
                    )
                    for suffix, labels, value in points
                ],
            )
            for definition, points in families
        ],
    )


def _refuse(error: ErrorCode, message: str | None = None) -> DescribeBrokerMetricsResponse:
    return DescribeBrokerMetricsResponse(error_code=error, error_message=message, families=[])
