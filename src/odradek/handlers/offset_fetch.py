"""OffsetFetch, versions 1 to 10: what groups have committed; from version 8 on for several groups at once, from version
10 on with topic ids."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.handlers.group_access import find_shard
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from odradek.protocol.sentinels import NO_OFFSET, NO_TOPIC_ID
from odradek.security.authorizer import Operation

if TYPE_CHECKING:
    from uuid import UUID

    from odradek.coordinator.groups.group_shard import GroupShard
    from odradek.handlers.context import RequestContext

FIRST_VERSION_WITH_GROUP_ERROR = 2
FIRST_VERSION_WITH_SEVERAL_GROUPS = 8
FIRST_VERSION_WITH_TOPIC_IDS = 10


def handle(request: OffsetFetchRequest, context: RequestContext) -> OffsetFetchResponse:
    if context.api_version >= FIRST_VERSION_WITH_SEVERAL_GROUPS:
        return OffsetFetchResponse(
            groups=[_fetch_group(group, request.require_stable, context) for group in request.groups]
        )
    wanted = None
    if request.topics is not None:
        wanted = [
            OffsetFetchRequestTopics(name=topic.name, partition_indexes=topic.partition_indexes)
            for topic in request.topics
        ]
    wish = OffsetFetchRequestGroup(group_id=request.group_id, topics=wanted)
    return _as_single_group(_fetch_group(wish, request.require_stable, context), wish, context)


def _as_single_group(
    group: OffsetFetchResponseGroup, wish: OffsetFetchRequestGroup, context: RequestContext
) -> OffsetFetchResponse:
    topics = group.topics
    if group.error_code and context.api_version < FIRST_VERSION_WITH_GROUP_ERROR:
        # There was no place for an error of the whole group.
        topics = [_refuse_topic(topic, ErrorCode(group.error_code)) for topic in wish.topics or ()]
    return OffsetFetchResponse(
        error_code=group.error_code,
        topics=[
            OffsetFetchResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetFetchResponsePartition(
                        partition_index=each.partition_index,
                        committed_offset=each.committed_offset,
                        committed_leader_epoch=each.committed_leader_epoch,
                        metadata=each.metadata,
                        error_code=each.error_code,
                    )
                    for each in topic.partitions
                ],
            )
            for topic in topics
        ],
    )


def _fetch_group(
    wish: OffsetFetchRequestGroup, require_stable: bool, context: RequestContext
) -> OffsetFetchResponseGroup:
    group_id = wish.group_id
    shard = find_shard(context, Operation.DESCRIBE, group_id, may_be_nameless=True)
    if isinstance(shard, ErrorCode):
        return OffsetFetchResponseGroup(group_id=group_id, error_code=shard)
    group = shard.groups.get(group_id)
    error = ErrorCode.NONE if group is None else group.check_fetch(wish.member_id, wish.member_epoch)
    if error is not ErrorCode.NONE:
        return OffsetFetchResponseGroup(group_id=group_id, error_code=error)
    if wish.topics is None:
        topics = _all_topics(shard, group_id, require_stable, context)
    else:
        topics = [_fetch_topic(shard, group_id, topic, require_stable, context) for topic in wish.topics]
    return OffsetFetchResponseGroup(group_id=group_id, topics=topics)


def _all_topics(
    shard: GroupShard, group_id: str, require_stable: bool, context: RequestContext
) -> list[OffsetFetchResponseTopics]:
    indexes: dict[str, list[int]] = {}
    for topic, partition in shard.offsets.partitions(group_id):
        indexes.setdefault(topic, []).append(partition)
    answers = []
    for name, partitions in indexes.items():
        topic_id = _topic_id(name, context)
        # Whom a topic does not concern must not see it; whom only ids can reach cannot be told of one without.
        if context.allows_on_topic(Operation.DESCRIBE, name) and (
            topic_id != NO_TOPIC_ID or context.api_version < FIRST_VERSION_WITH_TOPIC_IDS
        ):
            offsets = [_offset(shard, group_id, name, NO_TOPIC_ID, each, require_stable) for each in partitions]
            answers.append(OffsetFetchResponseTopics(name=name, topic_id=topic_id, partitions=offsets))
    return answers


def _topic_id(name: str, context: RequestContext) -> UUID:
    topic = context.services.image.topics.get(name)
    return NO_TOPIC_ID if topic is None else topic.topic_id


def _fetch_topic(
    shard: GroupShard, group_id: str, wish: OffsetFetchRequestTopics, require_stable: bool, context: RequestContext
) -> OffsetFetchResponseTopics:
    name = wish.name
    if context.api_version >= FIRST_VERSION_WITH_TOPIC_IDS:
        topic = context.services.image.topic_by_id(wish.topic_id)
        if topic is None:
            return _refuse_topic(wish, ErrorCode.UNKNOWN_TOPIC_ID)
        name = topic.name
    if not context.allows_on_topic(Operation.DESCRIBE, name):
        return _refuse_topic(wish, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    return OffsetFetchResponseTopics(
        name=name,
        topic_id=wish.topic_id,
        partitions=[
            _offset(shard, group_id, name, wish.topic_id, index, require_stable) for index in wish.partition_indexes
        ],
    )


def _offset(
    shard: GroupShard, group_id: str, topic: str, topic_id: UUID, index: int, require_stable: bool
) -> OffsetFetchResponsePartitions:
    if require_stable and shard.offsets.is_unstable(group_id, topic, index):
        return OffsetFetchResponsePartitions(
            partition_index=index, committed_offset=NO_OFFSET, error_code=ErrorCode.UNSTABLE_OFFSET_COMMIT
        )
    committed = shard.offsets.get(group_id, topic, index)
    # An offset that was committed for an earlier topic of the same name means nothing for this one.
    if committed is None or (topic_id.int and committed.topic_id.int and committed.topic_id != topic_id):
        return OffsetFetchResponsePartitions(partition_index=index, committed_offset=NO_OFFSET)
    return OffsetFetchResponsePartitions(
        partition_index=index,
        committed_offset=committed.offset,
        committed_leader_epoch=committed.leader_epoch,
        metadata=committed.metadata,
    )


def _refuse_topic(wish: OffsetFetchRequestTopics, error: ErrorCode) -> OffsetFetchResponseTopics:
    return OffsetFetchResponseTopics(
        name=wish.name,
        topic_id=wish.topic_id,
        partitions=[
            OffsetFetchResponsePartitions(partition_index=index, committed_offset=NO_OFFSET, error_code=error)
            for index in wish.partition_indexes
        ],
    )
