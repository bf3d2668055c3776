"""OffsetFetch, versions 1 to 10: the committed offsets of groups; from version 8 on of several groups at once, from
version 10 on with topic ids. Topics are answered in the order in which they were requested.

Departure from Kafka: the offsets of partitions, and of whole groups, that a request names repeatedly are bounded
(`repeated_names`)."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from odradek.handlers.cooperative_scheduling import answer_in_turns
from odradek.handlers.group_access import find_shard
from odradek.handlers.offset_fetch_parts import count_elements, cut_group, join_group
from odradek.handlers.repeated_names import Repetitions
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
    from collections.abc import Awaitable, Callable, Sequence
    from uuid import UUID

    from odradek.coordinator.groups.group_shard import GroupShard
    from odradek.handlers.context import RequestContext

FIRST_VERSION_WITH_GROUP_ERROR = 2
FIRST_VERSION_WITH_SEVERAL_GROUPS = 8
FIRST_VERSION_WITH_TOPIC_IDS = 10


def handle(
    request: OffsetFetchRequest, context: RequestContext
) -> OffsetFetchResponse | Awaitable[OffsetFetchResponse]:
    if context.api_version >= FIRST_VERSION_WITH_SEVERAL_GROUPS:
        return _fetch_groups(request, request.groups, context, lambda groups: OffsetFetchResponse(groups=groups))
    topics = None
    if request.topics is not None:
        topics = [
            OffsetFetchRequestTopics(name=topic.name, partition_indexes=topic.partition_indexes)
            for topic in request.topics
        ]
    requested = OffsetFetchRequestGroup(group_id=request.group_id, topics=topics)
    return _fetch_groups(request, [requested], context, lambda groups: _as_single_group(groups[0], requested, context))


def _as_single_group(
    group: OffsetFetchResponseGroup, requested: OffsetFetchRequestGroup, context: RequestContext
) -> OffsetFetchResponse:
    topics = group.topics
    if group.error_code and context.api_version < FIRST_VERSION_WITH_GROUP_ERROR:
        # This version has no field for an error of the whole group.
        topics = [_refuse_topic(topic, ErrorCode(group.error_code)) for topic in requested.topics or ()]
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


def _fetch_groups(
    request: OffsetFetchRequest,
    groups: Sequence[OffsetFetchRequestGroup],
    context: RequestContext,
    respond: Callable[[list[OffsetFetchResponseGroup]], OffsetFetchResponse],
) -> OffsetFetchResponse | Awaitable[OffsetFetchResponse]:
    offsets = _Offsets(request.require_stable, context)
    parts = [cut_group(group) for group in groups]

    def combine(answers: list[OffsetFetchResponseGroup]) -> OffsetFetchResponse:
        each = iter(answers)
        return respond(
            [join_group(group, list(islice(each, len(cut)))) for group, cut in zip(groups, parts, strict=True)]
        )

    flat = [part for cut in parts for part in cut]
    return answer_in_turns(flat, lambda part: _fetch_group(part, offsets), combine, count_elements)


def _fetch_group(
    requested: OffsetFetchRequestGroup, offsets: _Offsets
) -> OffsetFetchResponseGroup | Awaitable[OffsetFetchResponseGroup]:
    group_id = requested.group_id

    def refuse(error: ErrorCode) -> OffsetFetchResponseGroup:
        return OffsetFetchResponseGroup(group_id=group_id, error_code=error)

    shard = find_shard(offsets.context, Operation.DESCRIBE, group_id, may_be_nameless=True)
    if isinstance(shard, ErrorCode):
        return refuse(shard)
    group = shard.groups.get(group_id)
    error = ErrorCode.NONE if group is None else group.check_fetch(requested.member_id, requested.member_epoch)
    if error is not ErrorCode.NONE:
        return shard.answer_directly(refuse(error), refuse)
    if requested.topics is None:
        topics = offsets.of_all_topics(shard, group_id)
    else:
        topics = [offsets.of_topic(shard, group_id, topic) for topic in requested.topics]
    if topics is None:
        return refuse(ErrorCode.INVALID_REQUEST)
    return shard.answer_directly(OffsetFetchResponseGroup(group_id=group_id, topics=topics), refuse)


class _Offsets:
    """The offsets that one request asks for, of which those that it names repeatedly are bounded."""

    def __init__(self, require_stable: bool, context: RequestContext) -> None:
        self.context = context
        self._require_stable = require_stable
        self._repetitions = Repetitions()
        self._whole_groups: dict[str, list[OffsetFetchResponseTopics]] = {}
        self._named: set[tuple[str, str, int]] = set()

    def of_all_topics(self, shard: GroupShard, group_id: str) -> list[OffsetFetchResponseTopics] | None:
        """None if the request has named the group too often."""
        known = self._whole_groups.get(group_id)
        if known is None:
            known = self._whole_groups[group_id] = _all_topics(shard, group_id, self._require_stable, self.context)
            return known
        return known if self._repetitions.allow(group_id, known) else None

    def of_topic(
        self, shard: GroupShard, group_id: str, requested: OffsetFetchRequestTopics
    ) -> OffsetFetchResponseTopics:
        name, topic_id = requested.name, requested.topic_id
        if self.context.api_version < FIRST_VERSION_WITH_TOPIC_IDS:
            topic_id = _topic_id(name, self.context)
        else:
            topic = self.context.services.image.topic_by_id(topic_id)
            if topic is None:
                return _refuse_topic(requested, ErrorCode.UNKNOWN_TOPIC_ID)
            name = topic.name
        if not self.context.allows_on_topic(Operation.DESCRIBE, name):
            return _refuse_topic(requested, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        return OffsetFetchResponseTopics(
            name=name,
            topic_id=requested.topic_id,
            partitions=[
                self._of_partition(shard, group_id, name, topic_id, index) for index in requested.partition_indexes
            ],
        )

    def _of_partition(
        self, shard: GroupShard, group_id: str, topic: str, topic_id: UUID, index: int
    ) -> OffsetFetchResponsePartitions:
        answer = _offset(shard, group_id, topic, topic_id, index, self._require_stable)
        name = group_id, topic, index
        if name in self._named and not self._repetitions.allow(name, answer):
            return _refuse_partition(index, ErrorCode.INVALID_REQUEST)
        self._named.add(name)
        return answer


def _all_topics(
    shard: GroupShard, group_id: str, require_stable: bool, context: RequestContext
) -> list[OffsetFetchResponseTopics]:
    indexes: dict[str, list[int]] = {}
    for topic, partition in shard.offsets.partitions(group_id):
        indexes.setdefault(topic, []).append(partition)
    answers = []
    for name, partitions in indexes.items():
        topic_id = _topic_id(name, context)
        # Only topics that the client may describe, and for a client that knows topics by id only those with an id.
        if context.allows_on_topic(Operation.DESCRIBE, name, logs=False) and (
            topic_id != NO_TOPIC_ID or context.api_version < FIRST_VERSION_WITH_TOPIC_IDS
        ):
            offsets = [_offset(shard, group_id, name, topic_id, each, require_stable) for each in partitions]
            known = [each for each in offsets if each.error_code or each.committed_offset != NO_OFFSET]
            if known:
                answers.append(OffsetFetchResponseTopics(name=name, topic_id=topic_id, partitions=known))
    return answers


def _topic_id(name: str, context: RequestContext) -> UUID:
    topic = context.services.image.topics.get(name)
    return NO_TOPIC_ID if topic is None else topic.topic_id


def _offset(
    shard: GroupShard, group_id: str, topic: str, topic_id: UUID, index: int, require_stable: bool
) -> OffsetFetchResponsePartitions:
    if require_stable and shard.is_unstable(group_id, topic, index):
        return _refuse_partition(index, ErrorCode.UNSTABLE_OFFSET_COMMIT)
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


def _refuse_topic(requested: OffsetFetchRequestTopics, error: ErrorCode) -> OffsetFetchResponseTopics:
    return OffsetFetchResponseTopics(
        name=requested.name,
        topic_id=requested.topic_id,
        partitions=[_refuse_partition(index, error) for index in requested.partition_indexes],
    )


def _refuse_partition(index: int, error: ErrorCode) -> OffsetFetchResponsePartitions:
    return OffsetFetchResponsePartitions(partition_index=index, committed_offset=NO_OFFSET, error_code=error)
