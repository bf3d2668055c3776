"""ListPartitionReassignments, version 0: the replicas of reassignments in progress."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.controller.requests import ListReassignments
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from odradek.protocol.refusal import Refusal
from odradek.security.authorizer import Operation

if TYPE_CHECKING:
    from odradek.handlers.context import RequestContext


async def handle(
    request: ListPartitionReassignmentsRequest, context: RequestContext
) -> ListPartitionReassignmentsResponse:
    if not context.allows_on_cluster(Operation.DESCRIBE):
        return ListPartitionReassignmentsResponse(
            error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED, error_message="Cluster authorization failed."
        )
    named = None
    if request.topics is not None:
        named = {topic.name: topic.partition_indexes for topic in request.topics}
    running = await context.services.controller.ask(ListReassignments(named))
    if isinstance(running, Refusal):
        return ListPartitionReassignmentsResponse(error_code=running.error, error_message=running.message)
    return ListPartitionReassignmentsResponse(
        error_message=None,
        topics=[
            OngoingTopicReassignment(
                name=name,
                partitions=[
                    OngoingPartitionReassignment(
                        partition_index=partition.index,
                        replicas=list(partition.replicas),
                        adding_replicas=list(partition.adding_replicas),
                        removing_replicas=list(partition.removing_replicas),
                    )
                    for partition in partitions
                ],
            )
            for name, partitions in running.items()
        ],
    )
