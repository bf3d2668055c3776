"""ElectLeaders, versions 0 to 2: preferred leaders (0) and, where no replica is in sync, unclean elections (1)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.controller.decisions.leader_election import ElectionKind
from odradek.controller.requests import ElectLeaders
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)
from odradek.protocol.refusal import Refusal
from odradek.security.authorizer import Operation

if TYPE_CHECKING:
    from odradek.controller.decisions.requested_elections import ElectionResult
    from odradek.handlers.context import RequestContext

_KINDS = {0: ElectionKind.PREFERRED, 1: ElectionKind.UNCLEAN}
_NOT_AUTHORIZED = Refusal(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "Cluster authorization failed.")


async def handle(request: ElectLeadersRequest, context: RequestContext) -> ElectLeadersResponse:
    kind = _KINDS.get(request.election_type)
    if not context.allows_on_cluster(Operation.ALTER):
        return _refuse(request, _NOT_AUTHORIZED)
    if kind is None:
        return _refuse(request, Refusal(ErrorCode.INVALID_REQUEST, f"Unknown election type {request.election_type}"))
    results = await context.services.controller.ask(
        ElectLeaders(kind, _named_partitions(request), timeout_ms=request.timeout_ms)
    )
    if isinstance(results, Refusal):
        return _refuse(request, results)
    by_topic: dict[str, list[PartitionResult]] = {}
    if request.topic_partitions is not None:
        by_topic = {topic.topic: [] for topic in request.topic_partitions}
    for result in results:
        by_topic.setdefault(result.topic, []).append(_describe(result))
    return ElectLeadersResponse(
        replica_election_results=[
            ReplicaElectionResult(topic=topic, partition_result=partitions) for topic, partitions in by_topic.items()
        ]
    )


def _named_partitions(request: ElectLeadersRequest) -> list[tuple[str, int]] | None:
    if request.topic_partitions is None:
        return None
    return [(topic.topic, index) for topic in request.topic_partitions for index in topic.partitions]


def _describe(result: ElectionResult) -> PartitionResult:
    if result.refusal is None:
        return PartitionResult(partition_id=result.partition_index, error_message=None)
    error, message = result.refusal
    return PartitionResult(partition_id=result.partition_index, error_code=error, error_message=message)


def _refuse(request: ElectLeadersRequest, refusal: Refusal) -> ElectLeadersResponse:
    error, message = refusal
    return ElectLeadersResponse(
        error_code=error,
        replica_election_results=[
            ReplicaElectionResult(
                topic=topic.topic,
                partition_result=[
                    PartitionResult(partition_id=index, error_code=error, error_message=message)
                    for index in topic.partitions
                ],
            )
            for topic in request.topic_partitions or ()
        ],
    )
