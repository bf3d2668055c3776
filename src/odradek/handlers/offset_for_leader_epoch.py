"""OffsetForLeaderEpoch, versions 2 to 4: the end offset of a leader epoch, from which a reader sees whether the log was
truncated below its position (KIP-101, KIP-279, KIP-320). A broker with ClusterAction may ask for any topic."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)
from odradek.security.authorizer import Operation

if TYPE_CHECKING:
    from odradek.handlers.context import RequestContext
    from odradek.protocol.messages.offset_for_leader_epoch import OffsetForLeaderPartition


def handle(request: OffsetForLeaderEpochRequest, context: RequestContext) -> OffsetForLeaderEpochResponse:
    is_broker = context.allows_on_cluster(Operation.CLUSTER_ACTION)
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=[_end_of_epoch(topic.topic, each, context, is_broker) for each in topic.partitions],
            )
            for topic in request.topics
        ]
    )


def _end_of_epoch(
    topic: str, asked: OffsetForLeaderPartition, context: RequestContext, is_broker: bool
) -> EpochEndOffset:
    if not is_broker and not context.allows_on_topic(Operation.DESCRIBE, topic):
        return EpochEndOffset(error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED, partition=asked.partition)
    partition = context.services.partitions.find(topic, asked.partition)
    if partition is None:
        absence = context.services.partitions.absence(topic, asked.partition)
        return EpochEndOffset(error_code=absence, partition=asked.partition)
    error = partition.check_epoch(asked.current_leader_epoch)
    if error is not ErrorCode.NONE:
        return EpochEndOffset(error_code=error, partition=asked.partition)
    epoch, end_offset = partition.log.epoch_end_offset(asked.leader_epoch)
    return EpochEndOffset(partition=asked.partition, leader_epoch=epoch, end_offset=end_offset)
