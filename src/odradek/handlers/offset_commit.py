"""OffsetCommit, versions 2 to 10: how far a group has read, for topics by name, from version 10 on by id."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.coordinator.groups.group import Committer
from odradek.coordinator.groups.offset_operations import NewOffset, commit_offsets
from odradek.coordinator.runtime.waiting_response import WaitingResponse
from odradek.handlers.group_access import allows_on_group
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
    from odradek.metadata.entities import TopicImage
    from odradek.protocol.messages.offset_commit import OffsetCommitRequestTopic

FIRST_VERSION_WITH_TOPIC_IDS = 10

_READ = Operation.READ  # looking up an attribute of an enum is slow
_new_tuple = tuple.__new__  # half the time of a NamedTuple's constructor


def handle(
    request: OffsetCommitRequest, context: RequestContext
) -> OffsetCommitResponse | Awaitable[OffsetCommitResponse]:
    group_id = request.group_id
    if not allows_on_group(context, _READ, group_id):
        return _refuse(request, ErrorCode.GROUP_AUTHORIZATION_FAILED)
    shard = context.services.groups.find_for_commit(group_id)
    if isinstance(shard, ErrorCode):
        return _refuse(request, shard)
    answers: list[OffsetCommitResponseTopic] = []
    offsets: list[NewOffset] = []
    committed: list[OffsetCommitResponsePartition] = []
    for requested in request.topics:
        topic = _find_topic(requested, context)
        answers.append(_prepare(requested, topic, offsets, committed))
    response = OffsetCommitResponse(topics=answers)
    if not offsets:
        return response
    committer = _new_tuple(
        Committer,
        (
            group_id,
            request.member_id,
            request.group_instance_id,
            request.generation_id_or_member_epoch,
            context.api_version,
            False,
        ),
    )
    waiting: WaitingResponse | None = None

    def finish(errors: list[ErrorCode]) -> None:
        """The commit has shared a batch, which is written, or has failed."""
        assert waiting is not None
        if any(errors):
            _fill_in(committed, errors)
        shard.answer(waiting, response)

    errors = commit_offsets(shard, committer, offsets, request.retention_time_ms, finish)
    if errors is not None:
        if any(errors):
            _fill_in(committed, errors)
        return shard.answer_directly(response, lambda error: _refuse(request, error))
    waiting = WaitingResponse(lambda error: _refuse(request, error))
    return waiting


def _prepare(
    requested: OffsetCommitRequestTopic,
    topic: TopicImage | ErrorCode,
    offsets: list[NewOffset],
    committed: list[OffsetCommitResponsePartition],
) -> OffsetCommitResponseTopic:
    """The topic's part of the response; offsets that may be committed are added to `offsets`, and their parts of
    the response to `committed`."""
    answers: list[OffsetCommitResponsePartition] = []
    for partition in requested.partitions:
        index = partition.partition_index
        answer = OffsetCommitResponsePartition(partition_index=index)
        answers.append(answer)
        if isinstance(topic, ErrorCode):
            answer.error_code = topic
        elif not 0 <= index < len(topic.partitions):
            answer.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        else:
            committed.append(answer)
            offset, leader_epoch = partition.committed_offset, partition.committed_leader_epoch
            new = (topic.name, topic.topic_id, index, offset, leader_epoch, partition.committed_metadata)
            offsets.append(_new_tuple(NewOffset, new))
    return OffsetCommitResponseTopic(name=requested.name, topic_id=requested.topic_id, partitions=answers)


def _fill_in(partitions: list[OffsetCommitResponsePartition], errors: list[ErrorCode]) -> None:
    for partition, error in zip(partitions, errors, strict=True):
        partition.error_code = error


def _refuse(request: OffsetCommitRequest, error: ErrorCode) -> OffsetCommitResponse:
    return OffsetCommitResponse(
        topics=[
            OffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    OffsetCommitResponsePartition(partition_index=each.partition_index, error_code=error)
                    for each in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def _find_topic(requested: OffsetCommitRequestTopic, context: RequestContext) -> TopicImage | ErrorCode:
    image = context.services.metadata.image
    if context.api_version >= FIRST_VERSION_WITH_TOPIC_IDS:
        topic = image.topic_by_id(requested.topic_id)
        if topic is None:
            return ErrorCode.UNKNOWN_TOPIC_ID
    else:
        topic = image.topics.get(requested.name)
    if not context.allows_on_topic(_READ, requested.name if topic is None else topic.name):
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if topic is None else topic
