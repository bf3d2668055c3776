"""DescribeProducers, version 0: the producers of partitions that this broker has a replica of, and their open
transactions. A follower answers from its own log, as in Kafka."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from odradek.handlers.repeated_names import TOO_OFTEN, answer_names
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)
from odradek.security.authorizer import Operation

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from odradek.handlers.context import RequestContext


def handle(
    request: DescribeProducersRequest, context: RequestContext
) -> DescribeProducersResponse | Awaitable[DescribeProducersResponse]:
    names = [(topic.name, index) for topic in request.topics for index in topic.partition_indexes]

    def combine(described: list[PartitionResponse]) -> DescribeProducersResponse:
        each = iter(described)
        return DescribeProducersResponse(
            topics=[
                TopicResponse(name=topic.name, partitions=list(islice(each, len(topic.partition_indexes))))
                for topic in request.topics
            ]
        )

    return answer_names(names, lambda name: _describe(*name, context), _refuse_repetition, combine)


def _refuse_repetition(name: tuple[str, int]) -> PartitionResponse:
    return PartitionResponse(partition_index=name[1], error_code=ErrorCode.INVALID_REQUEST, error_message=TOO_OFTEN)


def _describe(topic: str, index: int, context: RequestContext) -> PartitionResponse:
    if not topic:
        return PartitionResponse(partition_index=index, error_code=ErrorCode.INVALID_TOPIC_EXCEPTION)
    if not context.allows_on_topic(Operation.READ, topic):
        return PartitionResponse(partition_index=index, error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    partition = context.services.partitions.find(topic, index)
    if partition is None or not partition.is_online:
        error = context.services.partitions.absence(topic, index) if partition is None else partition.absence
        return PartitionResponse(partition_index=index, error_code=error)
    return PartitionResponse(
        partition_index=index,
        active_producers=[
            ProducerState(
                producer_id=each.producer_id,
                producer_epoch=each.producer_epoch,
                last_sequence=each.last_sequence,
                last_timestamp=each.last_timestamp,
                coordinator_epoch=each.coordinator_epoch,
                current_txn_start_offset=each.transaction_first_offset,
            )
            for each in partition.transactions.describe_producers()
        ],
    )
