"""AlterPartition, versions 2 to 3: the leader of partitions proposes their in-sync sets. Sent by brokers only.

Departure from Kafka: there is no leader recovery state; a proposal that sets it is refused (INVALID_REQUEST).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.controller.decisions.in_sync_sets import InSyncProposal, InSyncResult
from odradek.controller.requests import AlterPartitions
from odradek.handlers.broker_access import is_broker_request
from odradek.metadata.store import StoreError
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.alter_partition import (
    AlteredPartition,
    AlteredTopic,
    AlterPartitionRequest,
    AlterPartitionResponse,
    PartitionData,
)
from odradek.protocol.sentinels import NO_BROKER_EPOCH

if TYPE_CHECKING:
    from odradek.handlers.context import RequestContext
    from odradek.protocol.schema import UUID

# Of the whole request, in Kafka's responses.
_REQUEST_ERRORS = (ErrorCode.STALE_BROKER_EPOCH, ErrorCode.NOT_CONTROLLER)


async def handle(request: AlterPartitionRequest, context: RequestContext) -> AlterPartitionResponse:
    if not is_broker_request(context):
        return AlterPartitionResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    proposals = [
        _proposal(topic.topic_id, partition, context.api_version)
        for topic in request.topics
        for partition in topic.partitions
    ]
    local = context.services.controller.local()
    if local is None:
        return AlterPartitionResponse(error_code=ErrorCode.NOT_CONTROLLER)
    try:
        results = await local.ask(AlterPartitions(request.broker_id, request.broker_epoch, proposals))
    except StoreError:
        return AlterPartitionResponse(error_code=ErrorCode.NOT_CONTROLLER)  # the leader retries
    errors = {result.error for result in results}
    if len(errors) == 1 and (error := next(iter(errors))) in _REQUEST_ERRORS:
        return AlterPartitionResponse(error_code=error)
    remaining = iter(results)
    return AlterPartitionResponse(
        topics=[
            AlteredTopic(
                topic_id=topic.topic_id,
                partitions=[
                    _describe(partition.partition_index, next(remaining), request.broker_id)
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def _proposal(topic_id: UUID, partition: PartitionData, version: int) -> InSyncProposal:
    if version < 3:
        members = tuple((broker_id, NO_BROKER_EPOCH) for broker_id in partition.new_isr)
    else:
        members = tuple((member.broker_id, member.broker_epoch) for member in partition.new_isr_with_epochs)
    return InSyncProposal(
        topic_id,
        partition.partition_index,
        partition.leader_epoch,
        partition.partition_epoch,
        members,
        is_recovering=partition.leader_recovery_state != 0,
    )


def _describe(partition_index: int, result: InSyncResult, leader: int) -> AlteredPartition:
    if result.error is not ErrorCode.NONE:
        return AlteredPartition(partition_index=partition_index, error_code=result.error)
    return AlteredPartition(
        partition_index=partition_index,
        leader_id=leader,
        leader_epoch=result.leader_epoch,
        isr=list(result.in_sync_replicas),
        partition_epoch=result.partition_epoch,
    )
