"""ListOffsets, versions 1 to 11: the offset at the start, at the end, of the largest timestamp, or for a timestamp.

A follower, which has ClusterAction on the listener of brokers, gets the log end as the latest offset. A consumer gets
OFFSET_NOT_AVAILABLE while the high watermark of a new leader has not reached the start of its epoch: the end would be
smaller than it was before (KIP-207).

Departures from Kafka: without tiered storage "latest tiered" is unknown and "earliest local" is the earliest.
A look-up by time finds the start of a batch whose records exceed eight times `max.message.bytes` decompressed, with the
largest timestamp of the batch, where Kafka reads its records. One that waits for others in its log directory gets
REQUEST_TIMED_OUT when 20 s, or two thirds of the timeout of the request, have passed since the request came.
"""

from __future__ import annotations

import asyncio
import functools
from collections import Counter
from typing import TYPE_CHECKING

from odradek.handlers.broker_access import is_broker_request
from odradek.handlers.time_lookups import longest_wait_ms
from odradek.host.logs import get_logger
from odradek.protocol.errors import ErrorCode
from odradek.protocol.malformed import MalformedMessage
from odradek.protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from odradek.replica.fetch_result import FetchIsolation, client_isolation
from odradek.replica.leadership import LogState
from odradek.replica.partition_fetch import end_offset_for
from odradek.security.authorizer import Operation

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from odradek.handlers.context import RequestContext
    from odradek.protocol.messages.list_offsets import ListOffsetsPartition
    from odradek.protocol.topic_partition import TopicPartition
    from odradek.replica.partition import Partition

log = get_logger(__name__)

LATEST = -1
EARLIEST = -2
MAX_TIMESTAMP = -3
EARLIEST_LOCAL = -4
LATEST_TIERED = -5
EARLIEST_PENDING_UPLOAD = -6
FIRST_VERSION_WITH_OFFSET_NOT_AVAILABLE = 5
FIRST_VERSION_OF = {MAX_TIMESTAMP: 7, EARLIEST_LOCAL: 8, LATEST_TIERED: 9, EARLIEST_PENDING_UPLOAD: 11}


def handle(
    request: ListOffsetsRequest, context: RequestContext
) -> ListOffsetsResponse | Awaitable[ListOffsetsResponse]:
    """Special timestamps are answered from memory; a look-up by time reads the disk, on a worker."""
    by_time = any(
        partition.timestamp >= 0 or partition.timestamp == MAX_TIMESTAMP
        for topic in request.topics
        for partition in topic.partitions
    )
    return _look_up(request, context) if by_time else _answer(request, context, {})


async def _look_up(request: ListOffsetsRequest, context: RequestContext) -> ListOffsetsResponse:
    found: dict[TopicPartition, ListOffsetsPartitionResponse] = {}
    counts = _counts(request)
    isolation = _isolation(request, context)
    deadline = asyncio.get_running_loop().time() + longest_wait_ms(request.timeout_ms) / 1000
    for topic in request.topics:
        for asked in topic.partitions:
            is_by_time = asked.timestamp >= 0 or asked.timestamp == MAX_TIMESTAMP
            if is_by_time and counts[topic.name, asked.partition_index] == 1:
                partition = _checked(topic.name, asked, context)
                if not isinstance(partition, ErrorCode):
                    found[topic.name, asked.partition_index] = await _by_time(
                        partition, asked, isolation, context, deadline
                    )
    return _answer(request, context, found)


def _isolation(request: ListOffsetsRequest, context: RequestContext) -> FetchIsolation:
    if request.replica_id >= 0 and is_broker_request(context, logs=False):
        return FetchIsolation.LOG_END
    return client_isolation(request.isolation_level)


async def _by_time(
    partition: Partition,
    asked: ListOffsetsPartition,
    isolation: FetchIsolation,
    context: RequestContext,
    deadline: float,
) -> ListOffsetsPartitionResponse:
    lookups, partition_log = context.services.time_lookups, partition.log
    try:
        if asked.timestamp == MAX_TIMESTAMP:
            found = await lookups.run(partition, partition_log.max_timestamp_offset, deadline)
        else:
            search = functools.partial(partition_log.offset_for_timestamp, asked.timestamp)
            found = await lookups.run(partition, search, deadline)
    except (OSError, MalformedMessage) as problem:
        if partition.log_state is not LogState.RETIRED:  # else its files were removed during the look-up
            log.warning("look-up failed", topic=partition.topic, partition=partition.index, reason=problem)
            is_malformed = isinstance(problem, MalformedMessage)
            return _error(asked, ErrorCode.CORRUPT_MESSAGE if is_malformed else ErrorCode.KAFKA_STORAGE_ERROR)
        found = None
    if partition.log_state is LogState.RETIRED:
        return _error(asked, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if isinstance(found, ErrorCode):
        return _error(asked, found)
    if found is None or found.offset >= end_offset_for(partition, isolation):
        if _is_end_unknown(partition, isolation):
            return _error(asked, _end_unknown(context))
        return ListOffsetsPartitionResponse(partition_index=asked.partition_index)
    return ListOffsetsPartitionResponse(
        partition_index=asked.partition_index,
        timestamp=found.timestamp_ms,
        offset=found.offset,
        leader_epoch=found.leader_epoch,
    )


def _counts(request: ListOffsetsRequest) -> Counter[TopicPartition]:
    """How often each partition is named: one that is repeated is not looked up."""
    return Counter(
        (topic.name, partition.partition_index) for topic in request.topics for partition in topic.partitions
    )


def _answer(
    request: ListOffsetsRequest,
    context: RequestContext,
    found: dict[TopicPartition, ListOffsetsPartitionResponse],
) -> ListOffsetsResponse:
    counts = _counts(request)
    isolation = _isolation(request, context)
    topics = []
    for topic in request.topics:
        partitions = []
        for asked in topic.partitions:
            key = (topic.name, asked.partition_index)
            if counts[key] > 1:
                partitions.append(_error(asked, ErrorCode.INVALID_REQUEST))
            else:
                partitions.append(found.get(key) or _special_time(topic.name, asked, isolation, context))
        topics.append(ListOffsetsTopicResponse(name=topic.name, partitions=partitions))
    return ListOffsetsResponse(topics=topics)


def _checked(topic: str, asked: ListOffsetsPartition, context: RequestContext) -> Partition | ErrorCode:
    if not context.allows_on_topic(Operation.DESCRIBE, topic):
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    if context.api_version < FIRST_VERSION_OF.get(asked.timestamp, 0):
        return ErrorCode.UNSUPPORTED_VERSION
    partition = context.services.partitions.find(topic, asked.partition_index)
    if partition is None:
        return context.services.partitions.absence(topic, asked.partition_index)
    error = partition.check_epoch(asked.current_leader_epoch)
    return partition if error is ErrorCode.NONE else error


def _special_time(
    topic: str, asked: ListOffsetsPartition, isolation: FetchIsolation, context: RequestContext
) -> ListOffsetsPartitionResponse:
    partition = _checked(topic, asked, context)
    if isinstance(partition, ErrorCode):
        return _error(asked, partition)
    if asked.timestamp == LATEST and _is_end_unknown(partition, isolation):
        return _error(asked, _end_unknown(context))
    if asked.timestamp == LATEST:
        offset, epoch = end_offset_for(partition, isolation), partition.leader_epoch
    elif asked.timestamp in (EARLIEST, EARLIEST_LOCAL):
        offset = partition.log.log_start_offset
        epoch = partition.log.leader_epochs.epoch_at(offset)
    elif asked.timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        offset = epoch = -1
    else:
        return _error(asked, ErrorCode.UNSUPPORTED_VERSION)
    return ListOffsetsPartitionResponse(partition_index=asked.partition_index, offset=offset, leader_epoch=epoch)


def _is_end_unknown(partition: Partition, isolation: FetchIsolation) -> bool:
    return isolation is not FetchIsolation.LOG_END and partition.high_watermark < partition.epoch_start_offset


def _end_unknown(context: RequestContext) -> ErrorCode:
    """Older clients do not know the code; both make them ask again."""
    is_known = context.api_version >= FIRST_VERSION_WITH_OFFSET_NOT_AVAILABLE
    return ErrorCode.OFFSET_NOT_AVAILABLE if is_known else ErrorCode.LEADER_NOT_AVAILABLE


def _error(asked: ListOffsetsPartition, error: ErrorCode) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(partition_index=asked.partition_index, error_code=error)
