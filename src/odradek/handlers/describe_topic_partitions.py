"""DescribeTopicPartitions, version 0: topics a page at a time, in order of their names (KIP-966)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.handlers.partition_state import partition_state
from odradek.metadata.topic_names import illegal_name_reason
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)
from odradek.security.authorizer import Operation, ResourceType

if TYPE_CHECKING:
    from odradek.handlers.context import RequestContext
    from odradek.metadata.entities import PartitionImage, TopicImage


def handle(request: DescribeTopicPartitionsRequest, context: RequestContext) -> DescribeTopicPartitionsResponse:
    cursor = request.cursor
    if cursor is not None and not _is_valid(cursor, request):
        return DescribeTopicPartitionsResponse(
            topics=[_refused(topic.name, ErrorCode.INVALID_REQUEST) for topic in request.topics]
        )
    response = DescribeTopicPartitionsResponse(topics=[])
    remaining = min(max(request.response_partition_limit, 1), context.services.config.max_request_partition_size_limit)
    for name in _names(request, context):
        first = 0
        if cursor is not None:
            if name < cursor.topic_name:
                continue
            if name == cursor.topic_name:
                first = cursor.partition_index
        if remaining == 0:
            response.next_cursor = Cursor(topic_name=name, partition_index=0)
            break
        if not context.allows_on_topic(Operation.DESCRIBE, name):
            response.topics.append(_refused(name, ErrorCode.TOPIC_AUTHORIZATION_FAILED))
            continue
        topic = context.services.image.topics.get(name)
        if topic is None:
            is_legal = illegal_name_reason(name) is None
            error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if is_legal else ErrorCode.INVALID_TOPIC_EXCEPTION
            unknown = _refused(name, error)
            unknown.topic_authorized_operations = context.authorized_operations(ResourceType.TOPIC, name)
            response.topics.append(unknown)
            continue
        page = topic.partitions[first : first + remaining]
        response.topics.append(_describe(topic, page, context))
        remaining -= len(page)
        if first + len(page) < len(topic.partitions):
            response.next_cursor = Cursor(topic_name=name, partition_index=first + len(page))
            break
    return response


def _names(request: DescribeTopicPartitionsRequest, context: RequestContext) -> list[str]:
    if request.topics:
        return sorted({topic.name for topic in request.topics})
    return sorted(
        name for name in context.services.image.topics if context.allows_on_topic(Operation.DESCRIBE, name, logs=False)
    )


def _is_valid(cursor: Cursor, request: DescribeTopicPartitionsRequest) -> bool:
    """Whether the cursor points to a partition of a requested topic."""
    is_named = not request.topics or any(topic.name == cursor.topic_name for topic in request.topics)
    return is_named and cursor.partition_index >= 0


def _refused(name: str, error: ErrorCode) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(error_code=error, name=name, partitions=[])


def _describe(
    topic: TopicImage, page: tuple[PartitionImage, ...], context: RequestContext
) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.is_internal,
        partitions=[
            DescribeTopicPartitionsResponsePartition(
                error_code=state.error,
                partition_index=partition.index,
                leader_id=state.leader,
                leader_epoch=partition.leader_epoch,
                replica_nodes=list(partition.replicas),
                isr_nodes=list(partition.in_sync_replicas),
                # Empty rather than null: Kafka's `kafka-topics --describe` fails on null.
                eligible_leader_replicas=list(partition.eligible_leader_replicas),
                last_known_elr=list(partition.last_known_eligible_leader_replicas),
                offline_replicas=state.offline_replicas,
            )
            for partition in page
            for state in (partition_state(topic, partition, context),)
        ],
        topic_authorized_operations=context.authorized_operations(ResourceType.TOPIC, topic.name),
    )
