"""OffsetForLeaderEpoch, versions 2 to 4: the end offset of a leader epoch, from which a reader sees whether the log was
truncated below its position (KIP-101, KIP-279, KIP-320). A broker may ask for any topic; a client that names itself as
a replica is refused."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from odradek.handlers.broker_access import is_broker, is_broker_request, is_on_broker_listener
from odradek.handlers.cooperative_scheduling import answer_in_turns
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)
from odradek.security.authorizer import Operation

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from odradek.handlers.context import RequestContext
    from odradek.protocol.messages.offset_for_leader_epoch import OffsetForLeaderPartition


def handle(
    request: OffsetForLeaderEpochRequest, context: RequestContext
) -> OffsetForLeaderEpochResponse | Awaitable[OffsetForLeaderEpochResponse]:
    def answer(asked: tuple[str, OffsetForLeaderPartition]) -> EpochEndOffset:
        topic, partition = asked
        return _end_of_epoch(topic, partition, context, _refusal(topic, request, context))

    def combine(answers: list[EpochEndOffset]) -> OffsetForLeaderEpochResponse:
        each = iter(answers)
        return OffsetForLeaderEpochResponse(
            topics=[
                OffsetForLeaderTopicResult(topic=topic.topic, partitions=list(islice(each, len(topic.partitions))))
                for topic in request.topics
            ]
        )

    asked = [(topic.topic, partition) for topic in request.topics for partition in topic.partitions]
    return answer_in_turns(asked, answer, combine)


def _refusal(topic: str, request: OffsetForLeaderEpochRequest, context: RequestContext) -> ErrorCode:
    is_allowed = is_broker_request if request.replica_id >= 0 else is_broker
    if is_allowed(context, logs=False):
        return ErrorCode.NONE
    if request.replica_id >= 0 and not is_on_broker_listener(context):
        return ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    may_describe = context.allows_on_topic(Operation.DESCRIBE, topic)
    return ErrorCode.NONE if may_describe else ErrorCode.TOPIC_AUTHORIZATION_FAILED


def _end_of_epoch(
    topic: str, asked: OffsetForLeaderPartition, context: RequestContext, refusal: ErrorCode
) -> EpochEndOffset:
    if refusal is not ErrorCode.NONE:
        return EpochEndOffset(error_code=refusal, partition=asked.partition)
    partition = context.services.partitions.find(topic, asked.partition)
    if partition is None:
        absence = context.services.partitions.absence(topic, asked.partition)
        return EpochEndOffset(error_code=absence, partition=asked.partition)
    error = partition.check_epoch(asked.current_leader_epoch)
    if error is not ErrorCode.NONE:
        return EpochEndOffset(error_code=error, partition=asked.partition)
    epoch, end_offset = partition.log.epoch_end_offset(asked.leader_epoch)
    return EpochEndOffset(partition=asked.partition, leader_epoch=epoch, end_offset=end_offset)
