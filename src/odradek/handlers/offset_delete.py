"""OffsetDelete, version 0: remove a group's committed offsets of topics that it does not subscribe to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.coordinator.groups.offset_operations import delete_offsets
from odradek.handlers.group_access import find_shard
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from odradek.security.authorizer import Operation

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from odradek.handlers.context import RequestContext
    from odradek.protocol.topic_partition import TopicPartition


def handle(
    request: OffsetDeleteRequest, context: RequestContext
) -> OffsetDeleteResponse | Awaitable[OffsetDeleteResponse]:
    shard = find_shard(context, Operation.DELETE, request.group_id)
    if isinstance(shard, ErrorCode):
        return _refuse(shard)
    answers: list[OffsetDeleteResponseTopic] = []
    deletions: list[TopicPartition] = []
    deleted: list[OffsetDeleteResponsePartition] = []
    for topic in request.topics:
        partitions = [OffsetDeleteResponsePartition(partition_index=each.partition_index) for each in topic.partitions]
        answers.append(OffsetDeleteResponseTopic(name=topic.name, partitions=partitions))
        for answer in partitions:
            answer.error_code = _check(topic.name, answer.partition_index, context)
            if answer.error_code == ErrorCode.NONE:
                deleted.append(answer)
                deletions.append((topic.name, answer.partition_index))
    result = delete_offsets(shard, request.group_id, deletions)
    if isinstance(result, ErrorCode):
        return shard.answer_directly(_refuse(result), _refuse)
    for answer, error in zip(deleted, result, strict=True):
        answer.error_code = error
    return shard.answer_directly(OffsetDeleteResponse(topics=answers), _refuse)


def _refuse(error: ErrorCode) -> OffsetDeleteResponse:
    return OffsetDeleteResponse(error_code=error)


def _check(topic: str, partition: int, context: RequestContext) -> ErrorCode:
    if not context.allows_on_topic(Operation.READ, topic):
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    known = context.services.image.topics.get(topic)
    is_known = known is not None and 0 <= partition < len(known.partitions)
    return ErrorCode.NONE if is_known else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
