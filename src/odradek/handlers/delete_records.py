"""DeleteRecords, versions 0 to 2: advance the log start offset of partitions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.host.logs import get_logger
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from odradek.replica.retention import remove_old_segments
from odradek.security.authorizer import Operation

if TYPE_CHECKING:
    from odradek.handlers.context import RequestContext
    from odradek.protocol.messages.delete_records import DeleteRecordsPartition

log = get_logger(__name__)

UP_TO_HIGH_WATERMARK = -1


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
            "log start offsets could not be checkpointed: deleted records may return after a crash", reason=str(problem)
        )
        return _refuse_all(response)
    for partition in changed:
        await remove_old_segments(partition)
    return response


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
    elif not partition.log.config.is_deleted:
        result.error_code = ErrorCode.POLICY_VIOLATION  # a topic that is only compacted keeps its keys
    else:
        offset = partition.high_watermark if asked.offset == UP_TO_HIGH_WATERMARK else asked.offset
        result.error_code = partition.delete_records_before(offset)
        if result.error_code == ErrorCode.NONE:
            result.low_watermark = partition.log.log_start_offset
    return result
