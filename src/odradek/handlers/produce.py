"""Produce, versions 3 to 13: append one batch to each partition named, without looking at its records.

Departures from Kafka: transactional batches are refused until transactions are built.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from odradek.handlers.context import CloseConnection
from odradek.handlers.produce_refusals import explain
from odradek.host.logs import get_logger
from odradek.metadata.topic_names import is_internal
from odradek.protocol.batch import (
    ATTRIBUTES_POSITION,
    COMPRESSION_MASK,
    CURRENT_MAGIC,
    HEADER_SIZE_BYTES,
    TRANSACTIONAL_FLAG,
)
from odradek.protocol.compression import Compression
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from odradek.replica.flushing import LogRetired
from odradek.replica.partition import ALL_IN_SYNC
from odradek.security.authorizer import Operation

if TYPE_CHECKING:
    from collections.abc import Awaitable, Sequence

    from odradek.handlers.context import RequestContext
    from odradek.handlers.produce_refusals import Refused
    from odradek.protocol.messages.produce import PartitionProduceData, TopicProduceData
    from odradek.replica.partition import Partition

log = get_logger(__name__)

FIRST_VERSION_WITH_TOPIC_IDS = 13
FIRST_VERSION_WITH_ZSTD = 7
NO_ACKNOWLEDGEMENT = 0
ADMIN_CLIENT_ID = "__admin_client"  # the one client that Kafka lets write to coordinators' topics
LEGAL_ACKS = (ALL_IN_SYNC, NO_ACKNOWLEDGEMENT, 1)

# A partition, the offset up to which it must be on the disk, and the answer that waits for it.
_Unflushed: TypeAlias = "tuple[Partition, int, PartitionProduceResponse]"

_NONE = ErrorCode.NONE  # an attribute of an enum takes long to look up
_MAGIC_POSITION = 16
_FLAGS_POSITION = ATTRIBUTES_POSITION + 1  # the lower byte of the attributes


def handle(
    request: ProduceRequest, context: RequestContext
) -> ProduceResponse | Awaitable[ProduceResponse | None] | None:
    acks = request.acks
    uses_topic_ids = context.api_version >= FIRST_VERSION_WITH_TOPIC_IDS
    refusal = _request_refusal(request)
    takes_zstd = context.api_version >= FIRST_VERSION_WITH_ZSTD
    answers: list[TopicProduceResponse] = []
    unflushed: list[_Unflushed] = []
    refused: list[Refused] = []
    for topic in request.topic_data:
        partitions = _find_topic(topic, uses_topic_ids, context)
        if isinstance(partitions, ErrorCode):
            responses = [_refused(data.index, partitions) for data in topic.partition_data]
        else:
            responses = [
                _append(data, partitions, acks, refusal, takes_zstd, unflushed, refused)
                for data in topic.partition_data
            ]
        answers.append(TopicProduceResponse(name=topic.name, topic_id=topic.topic_id, partition_responses=responses))
    if refused:
        explain(refused)
    if unflushed:
        return _flush_then_answer(acks, answers, unflushed)
    return _answer(acks, answers)


def _answer(acks: int, answers: list[TopicProduceResponse]) -> ProduceResponse | None:
    if acks == NO_ACKNOWLEDGEMENT:
        _hang_up_on_error(answers)
        return None
    return ProduceResponse(responses=answers)


async def _flush_then_answer(
    acks: int, answers: list[TopicProduceResponse], unflushed: list[_Unflushed]
) -> ProduceResponse | None:
    """`flush.messages` is reached: what is acknowledged must be on the disk."""
    for partition, end_offset, response in unflushed:
        try:
            await partition.flusher.flush_to(end_offset)
        except LogRetired:
            response.error_code, response.base_offset = ErrorCode.NOT_LEADER_OR_FOLLOWER, -1
        except OSError as problem:
            log.error("flush failed", topic=partition.topic, partition=partition.index, reason=str(problem))
            response.error_code, response.base_offset = ErrorCode.KAFKA_STORAGE_ERROR, -1
    return _answer(acks, answers)


def _request_refusal(request: ProduceRequest) -> ErrorCode | None:
    """What forbids every append of this request."""
    if request.acks not in LEGAL_ACKS:
        return ErrorCode.INVALID_REQUIRED_ACKS
    return None if request.transactional_id is None else ErrorCode.INVALID_TXN_STATE


def _find_topic(
    topic: TopicProduceData, uses_topic_ids: bool, context: RequestContext
) -> Sequence[Partition] | ErrorCode:
    """The topic's partitions, or why nothing may be appended to it."""
    table = context.services.partitions
    if uses_topic_ids:
        partitions = table.topic_by_id(topic.topic_id)
        if not partitions:
            return ErrorCode.UNKNOWN_TOPIC_ID
        name = partitions[0].topic
    else:
        partitions, name = table.topic(topic.name), topic.name
    # Before existence, which a client without access must not learn.
    if not context.allows_on_topic(Operation.WRITE, name):
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    if not partitions:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if is_internal(name) and context.client_id != ADMIN_CLIENT_ID:
        return ErrorCode.INVALID_TOPIC_EXCEPTION
    return partitions


def _append(
    data: PartitionProduceData,
    partitions: Sequence[Partition],
    acks: int,
    refusal: ErrorCode | None,
    takes_zstd: bool,
    unflushed: list[_Unflushed],
    refused: list[Refused],
) -> PartitionProduceResponse:
    """The order of the refusals is Kafka's: where to, then how, then what."""
    index, records = data.index, data.records
    if not 0 <= index < len(partitions):
        return _refused(index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if refusal is not None:
        return _refused(index, refusal)
    if records is None:
        return _refused(index, ErrorCode.INVALID_RECORD)
    if len(records) > HEADER_SIZE_BYTES and records[_FLAGS_POSITION] & TRANSACTIONAL_FLAG and _is_batch(records):
        return _refused(index, ErrorCode.INVALID_TXN_STATE)
    if not takes_zstd and _is_zstd(records):
        return _refused(index, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
    partition = partitions[index]
    try:
        result = partition.append(records, acks)
    except OSError as problem:
        log.error("append failed", topic=partition.topic, partition=index, reason=str(problem))
        return _refused(index, ErrorCode.KAFKA_STORAGE_ERROR)
    error, base_offset, last_offset, log_append_time_ms, _ = result
    if error is not _NONE:
        response = _refused(index, error)
        refused.append((partition, records, response))
        return response
    response = PartitionProduceResponse(
        index=index,
        error_code=0,
        base_offset=base_offset,
        log_append_time_ms=log_append_time_ms,
        log_start_offset=partition.log.log_start_offset,
    )
    if partition.must_flush:
        unflushed.append((partition, last_offset + 1, response))
    return response


def _is_batch(records: memoryview) -> bool:
    """Older formats have other things where the flags are."""
    return records[_MAGIC_POSITION] == CURRENT_MAGIC


def _is_zstd(records: memoryview) -> bool:
    """Who speaks an older version could not read it back (KIP-110)."""
    return (
        len(records) >= HEADER_SIZE_BYTES
        and _is_batch(records)
        and records[_FLAGS_POSITION] & COMPRESSION_MASK == Compression.ZSTD
    )


def _refused(index: int, error: ErrorCode) -> PartitionProduceResponse:
    return PartitionProduceResponse(index=index, error_code=error, base_offset=-1, log_start_offset=-1)


def _hang_up_on_error(answers: list[TopicProduceResponse]) -> None:
    """With acks=0 there is no answer to carry an error: a closed connection makes the client refresh its metadata."""
    for topic in answers:
        for partition in topic.partition_responses:
            if partition.error_code != ErrorCode.NONE:
                raise CloseConnection(f"produce with acks=0 failed: {ErrorCode(partition.error_code).name}")
