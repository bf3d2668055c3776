"""AlterPartitionReassignments, versions 0 to 1: other replicas for partitions, and the cancellation of that.

Departure from Kafka: a reassignment that replaces a running one replaces it completely
(`controller/decisions/reassignment_requests`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.controller.decisions.reassignment_requests import NewReplicas
from odradek.controller.requests import ReassignPartitions
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from odradek.protocol.refusal import Refusal
from odradek.security.authorizer import Operation

if TYPE_CHECKING:
    from odradek.handlers.context import RequestContext

_NOT_AUTHORIZED = Refusal(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "Cluster authorization failed.")


async def handle(
    request: AlterPartitionReassignmentsRequest, context: RequestContext
) -> AlterPartitionReassignmentsResponse:
    if not context.allows_on_cluster(Operation.ALTER):
        return _answer(request, _NOT_AUTHORIZED)
    replicas = [
        NewReplicas(
            topic.name, partition.partition_index, None if partition.replicas is None else tuple(partition.replicas)
        )
        for topic in request.topics
        for partition in topic.partitions
    ]
    results = await context.services.controller.ask(
        ReassignPartitions(replicas, request.allow_replication_factor_change, timeout_ms=request.timeout_ms)
    )
    if isinstance(results, Refusal):
        return _answer(request, results)
    return _answer(request, None, [result.refusal for result in results])


def _answer(
    request: AlterPartitionReassignmentsRequest, refusal: Refusal | None, refusals: list[Refusal | None] | None = None
) -> AlterPartitionReassignmentsResponse:
    """`refusals` are those of the partitions in the order of the request; `refusal` is that of the whole request."""
    count = sum(len(topic.partitions) for topic in request.topics)
    each = iter(refusals if refusals is not None else [refusal] * count)
    error, message = _NO_ERROR if refusal is None else refusal
    return AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change,
        error_code=error,
        error_message=message,
        responses=[
            ReassignableTopicResponse(
                name=topic.name,
                partitions=[_describe(partition.partition_index, next(each)) for partition in topic.partitions],
            )
            for topic in request.topics
        ],
    )


_NO_ERROR = (ErrorCode.NONE, None)


def _describe(partition_index: int, refusal: Refusal | None) -> ReassignablePartitionResponse:
    error, message = _NO_ERROR if refusal is None else refusal
    return ReassignablePartitionResponse(partition_index=partition_index, error_code=error, error_message=message)
