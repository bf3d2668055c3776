"""DeleteRecords, versions 0 to 2: advance the log start offset of partitions. Answered when all registered replicas
have moved their starts."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from odradek.host.logs import get_logger
from odradek.metadata.topic_names import is_internal
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from odradek.protocol.sentinels import NO_EPOCH
from odradek.replica.retention import remove_old_segments
from odradek.security.authorizer import Operation

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.handlers.context import RequestContext
    from odradek.host.clock import Clock
    from odradek.protocol.messages.delete_records import DeleteRecordsPartition
    from odradek.protocol.topic_partition import TopicPartition
    from odradek.replica.partition import Partition

log = get_logger(__name__)

UP_TO_HIGH_WATERMARK = -1
RECHECK_MS = 1_000.0


async def handle(request: DeleteRecordsRequest, context: RequestContext) -> DeleteRecordsResponse:
    response = DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(
                name=topic.name,
                partitions=[_delete(topic.name, partition, context) for partition in topic.partitions],
            )
            for topic in request.topics
        ]
    )
    # An acknowledged deletion must survive a crash: log start offsets are checkpointed before files are removed.
    table = context.services.partitions
    changed = [
        partition
        for topic in response.topics
        for result in topic.partitions
        if result.error_code == ErrorCode.NONE
        and (partition := table.find(topic.name, result.partition_index)) is not None
    ]
    try:
        await table.checkpoint_log_start_offsets({partition.directory for partition in changed})
    except OSError as problem:
        log.error(
            "log start offsets could not be checkpointed: deleted records may return after a crash", reason=problem
        )
        return _refuse_all(response)
    for partition in changed:
        await remove_old_segments(partition)
    replicated = {(each.topic, each.index): each for each in changed if each.followers is not None}
    if replicated:
        await _wait_for_followers(response, replicated, request.timeout_ms, context)
    return response


async def _wait_for_followers(
    response: DeleteRecordsResponse,
    partitions: Mapping[TopicPartition, Partition],
    timeout_ms: int,
    context: RequestContext,
) -> None:
    clock = context.services.host.clock
    deadline_ms = clock.monotonic_ms() + timeout_ms
    for topic in response.topics:
        for result in topic.partitions:
            partition = partitions.get((topic.name, result.partition_index))
            if partition is not None and result.error_code == ErrorCode.NONE:
                result.error_code = await _wait_for_starts(partition, result.low_watermark, deadline_ms, clock)
                if result.error_code != ErrorCode.NONE:
                    result.low_watermark = -1


async def _wait_for_starts(partition: Partition, offset: int, deadline_ms: float, clock: Clock) -> ErrorCode:
    while True:
        followers = partition.followers
        if not partition.is_leader or followers is None:
            return partition.check_epoch(NO_EPOCH)
        if followers.lowest_log_start_offset >= offset:
            return ErrorCode.NONE
        remaining_ms = deadline_ms - clock.monotonic_ms()
        if remaining_ms <= 0:
            return ErrorCode.REQUEST_TIMED_OUT
        has_moved = asyncio.Event()
        unsubscribe = followers.on_log_start(has_moved.set)
        stop_watching = partition.on_leadership(has_moved.set)
        timer = clock.call_after(min(remaining_ms, RECHECK_MS), has_moved.set)  # a follower may be fenced
        try:
            await has_moved.wait()
        finally:
            timer.cancel()
            unsubscribe()
            stop_watching()


def _refuse_all(response: DeleteRecordsResponse) -> DeleteRecordsResponse:
    for topic in response.topics:
        for result in topic.partitions:
            if result.error_code == ErrorCode.NONE:
                result.error_code, result.low_watermark = ErrorCode.KAFKA_STORAGE_ERROR, -1
    return response


def _delete(topic: str, asked: DeleteRecordsPartition, context: RequestContext) -> DeleteRecordsPartitionResult:
    result = DeleteRecordsPartitionResult(partition_index=asked.partition_index, low_watermark=-1)
    partition = context.services.partitions.find(topic, asked.partition_index)
    if not context.allows_on_topic(Operation.DELETE, topic):
        result.error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    elif partition is None:
        result.error_code = context.services.partitions.absence(topic, asked.partition_index)
    elif is_internal(topic):
        result.error_code = ErrorCode.INVALID_TOPIC_EXCEPTION  # whatever its policy is: coordinators remove records
    elif not partition.log.config.is_deleted:
        result.error_code = ErrorCode.POLICY_VIOLATION  # a topic that is only compacted keeps its keys
    else:
        offset = partition.high_watermark if asked.offset == UP_TO_HIGH_WATERMARK else asked.offset
        result.error_code = partition.delete_records_before(offset)
        if result.error_code == ErrorCode.NONE:
            result.low_watermark = partition.log.log_start_offset
    return result
