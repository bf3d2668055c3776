"""OffsetCommit, versions 2 to 10: how far a group has read; topics by name, from version 10 on by id."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.coordinator.groups.group import Committer
from odradek.coordinator.groups.offsets.offset_operations import NewOffset, commit_offsets
from odradek.handlers.group_access import find_shard
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from odradek.security.authorizer import Operation

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from odradek.handlers.context import RequestContext
    from odradek.metadata.image import TopicImage
    from odradek.protocol.messages.offset_commit import OffsetCommitRequestTopic

FIRST_VERSION_WITH_TOPIC_IDS = 10


def handle(
    request: OffsetCommitRequest, context: RequestContext
) -> OffsetCommitResponse | Awaitable[OffsetCommitResponse]:
    shard = find_shard(context, Operation.READ, request.group_id, may_be_nameless=True)
    answers: list[OffsetCommitResponseTopic] = []
    offsets: list[NewOffset] = []
    committed: list[OffsetCommitResponsePartition] = []
    for wish in request.topics:
        partitions = [OffsetCommitResponsePartition(partition_index=each.partition_index) for each in wish.partitions]
        answers.append(OffsetCommitResponseTopic(name=wish.name, topic_id=wish.topic_id, partitions=partitions))
        topic = _find_topic(wish, context) if not isinstance(shard, ErrorCode) else shard
        for offset, answer in zip(wish.partitions, partitions, strict=True):
            if isinstance(topic, ErrorCode):
                answer.error_code = topic
            elif not 0 <= offset.partition_index < len(topic.partitions):
                answer.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            else:
                committed.append(answer)
                offsets.append(
                    NewOffset(
                        topic.name,
                        topic.topic_id,
                        offset.partition_index,
                        offset.committed_offset,
                        offset.committed_leader_epoch,
                        offset.committed_metadata,
                    )
                )
    response = OffsetCommitResponse(topics=answers)
    if isinstance(shard, ErrorCode) or not offsets:
        return response
    committer = Committer(
        request.group_id,
        request.member_id,
        request.group_instance_id,
        request.generation_id_or_member_epoch,
        context.api_version,
    )
    errors = commit_offsets(shard, committer, offsets, request.retention_time_ms)
    for answer, error in zip(committed, errors, strict=True):
        answer.error_code = error
    return context.services.groups.answer(request.group_id, response)


def _find_topic(wish: OffsetCommitRequestTopic, context: RequestContext) -> TopicImage | ErrorCode:
    image = context.services.image
    if context.api_version >= FIRST_VERSION_WITH_TOPIC_IDS:
        topic = image.topic_by_id(wish.topic_id)
        if topic is None:
            return ErrorCode.UNKNOWN_TOPIC_ID
    else:
        topic = image.topics.get(wish.name)
    if not context.allows_on_topic(Operation.READ, wish.name if topic is None else topic.name):
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if topic is None else topic
