"""Produce, versions 3 to 13: append one batch to each named partition, without reading its records.

Departures from Kafka: of a request without a transactional id, only the transactional batches are refused, not all. To
write to a coordinator's topic it is not enough to claim the client id of Kafka's admin client: the client must also be
allowed to alter the cluster.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

from odradek.coordinator.runtime.waiting_response import WaitingResponse
from odradek.handlers.context import CloseConnection
from odradek.handlers.leader_hints import add_produce_leader_hints
from odradek.handlers.produce_conversions import DeferredAppend
from odradek.handlers.produce_refusals import explain
from odradek.handlers.produced_batches import FLAGS_POSITION, is_batch, is_zstd, was_decompressed_and_refused
from odradek.handlers.request_record import LOG
from odradek.handlers.transaction_verification import is_transactional, verify_batches
from odradek.handlers.transactional_id_access import may_write
from odradek.host.logs import get_logger
from odradek.log.append_result import CONVERT_FIRST
from odradek.log.batch_conversion import NOT_CONVERTED
from odradek.metadata.topic_names import is_internal
from odradek.protocol.batch import HEADER_SIZE_BYTES, TRANSACTIONAL_FLAG
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from odradek.replica.flushing import LogRetired
from odradek.replica.partition import ALL_IN_SYNC
from odradek.replica.waiting_requests import WaitingProduce
from odradek.security.authorizer import Operation

if TYPE_CHECKING:
    from collections.abc import Awaitable, Mapping
    from uuid import UUID

    from odradek.handlers.context import RequestContext
    from odradek.handlers.produce_refusals import Refused
    from odradek.handlers.transaction_verification import Verdict
    from odradek.log.append_result import AppendResult
    from odradek.log.batch_conversion import Conversion
    from odradek.log.transaction_verification import VerificationGuard
    from odradek.protocol.messages.produce import PartitionProduceData, TopicProduceData
    from odradek.protocol.topic_partition import TopicPartition
    from odradek.replica.partition import Partition

log = get_logger(__name__)

FIRST_VERSION_WITH_TOPIC_IDS = 13
FIRST_VERSION_WITH_ZSTD = 7
NO_ACKNOWLEDGEMENT = 0
ADMIN_CLIENT_ID = "__admin_client"  # the one client that Kafka lets write to coordinators' topics
LEGAL_ACKS = (ALL_IN_SYNC, NO_ACKNOWLEDGEMENT, 1)

REFUSED_RECORDS_THROTTLE_MS = 100
"""How long a client waits whose compressed records were refused, so that the others are served in between."""

_NONE = ErrorCode.NONE  # looking up an attribute of an enum takes long


class _Appends:
    """One request while its batches are appended: their common fields, and the appends that are not acknowledged."""

    __slots__ = (
        "acks",
        "context",
        "deferred",
        "has_errors",
        "refusal",
        "refused",
        "takes_zstd",
        "traffic",
        "unfinished",
        "verdicts",
    )

    def __init__(
        self, request: ProduceRequest, context: RequestContext, verdicts: Mapping[TopicPartition, Verdict] | None
    ) -> None:
        self.context = context
        self.verdicts = verdicts  # on transactional batches; None for a request without a transactional id
        self.traffic = context.services.metrics.traffic
        self.acks = request.acks
        self.has_errors = False  # of which some may need a leader hint
        self.refusal = None if request.acks in LEGAL_ACKS else ErrorCode.INVALID_REQUIRED_ACKS
        self.takes_zstd = context.api_version >= FIRST_VERSION_WITH_ZSTD
        self.deferred: list[DeferredAppend] = []
        self.refused: list[Refused] = []
        # Appended batches that may not be acknowledged: the partition, the end offset of the batch, and the answer.
        self.unfinished: list[tuple[Partition, int, PartitionProduceResponse]] = []


def handle(
    request: ProduceRequest, context: RequestContext
) -> ProduceResponse | Awaitable[ProduceResponse | None] | None:
    """Answers at once if every batch is committed, which is so with one in-sync replica and no flush due."""
    if request.transactional_id is not None and _has_transactional_batch(request):
        return _handle_transactional(request, request.transactional_id, context)
    return _append_all(request, context, None)


def _has_transactional_batch(request: ProduceRequest) -> bool:
    """A request may name a transactional id and carry no batch of a transaction: the id then means nothing."""
    return any(
        data.records is not None and is_transactional(data.records)
        for topic in request.topic_data
        for data in topic.partition_data
    )


def _handle_transactional(
    request: ProduceRequest, transactional_id: str, context: RequestContext
) -> ProduceResponse | Awaitable[ProduceResponse | None] | None:
    if not may_write(context, transactional_id):
        return _refuse_all(request, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    if request.acks not in LEGAL_ACKS:
        return _append_all(request, context, {})
    uses_topic_ids = context.api_version >= FIRST_VERSION_WITH_TOPIC_IDS
    batches: list[tuple[Partition, memoryview]] = []
    for topic in request.topic_data:
        found = _find_topic(topic, uses_topic_ids, context)
        partitions = {} if isinstance(found, ErrorCode) else found[1]
        for data in topic.partition_data:
            partition = partitions.get(data.index)
            if partition is not None and data.records is not None and is_transactional(data.records):
                batches.append((partition, data.records))
    verdicts = verify_batches(transactional_id, batches, context)
    if isinstance(verdicts, dict):
        return _append_all(request, context, verdicts)
    # The memory of the request is used again while it waits.
    for topic in request.topic_data:
        for data in topic.partition_data:
            data.records = None if data.records is None else memoryview(bytearray(data.records))
    if isinstance(verdicts, WaitingResponse):
        return verdicts.map(lambda found: _append_all(request, context, found))
    return _append_when_verified(request, context, verdicts)


async def _append_when_verified(
    request: ProduceRequest, context: RequestContext, verdicts: Awaitable[Mapping[TopicPartition, Verdict]]
) -> ProduceResponse | None:
    response = _append_all(request, context, await verdicts)
    return await response if inspect.isawaitable(response) else response


def _append_all(
    request: ProduceRequest, context: RequestContext, verdicts: Mapping[TopicPartition, Verdict] | None
) -> ProduceResponse | Awaitable[ProduceResponse | None] | None:
    appends = _Appends(request, context, verdicts)
    uses_topic_ids = context.api_version >= FIRST_VERSION_WITH_TOPIC_IDS
    answers: list[TopicProduceResponse] = []
    for topic in request.topic_data:
        found = _find_topic(topic, uses_topic_ids, context)
        if isinstance(found, ErrorCode):
            responses = [_refuse_without_topic(data, found, verdicts) for data in topic.partition_data]
        else:
            key, partitions = found
            responses = [_append(data, key, partitions, appends) for data in topic.partition_data]
        answers.append(TopicProduceResponse(name=topic.name, topic_id=topic.topic_id, partition_responses=responses))
    if appends.deferred:
        return _append_deferred(request, answers, appends)
    return _acknowledge(request, answers, appends)


def _append_deferred(
    request: ProduceRequest, answers: list[TopicProduceResponse], appends: _Appends
) -> Awaitable[ProduceResponse | None]:
    appending = appends.context.services.produce_conversions.append(
        appends.deferred,
        lambda each, conversion: _try_append(each.partition, each.records, appends.acks, each.guard, conversion),
        lambda each, result: _finish_append(each.partition, each.records, result, each.response, appends),
    )
    return _acknowledge_when_appended(request, answers, appends, appending)


async def _acknowledge_when_appended(
    request: ProduceRequest, answers: list[TopicProduceResponse], appends: _Appends, appending: Awaitable[None]
) -> ProduceResponse | None:
    began_ms = appends.context.services.host.clock.monotonic_ms()
    await appending
    appends.context.add_wait(LOG, began_ms)
    response = _acknowledge(request, answers, appends)
    return await response if inspect.isawaitable(response) else response


def _acknowledge(
    request: ProduceRequest, answers: list[TopicProduceResponse], appends: _Appends
) -> ProduceResponse | Awaitable[ProduceResponse | None] | None:
    if appends.refused:
        explain(appends.refused)
    if not appends.unfinished:
        return _answer(answers, appends)
    if appends.acks == ALL_IN_SYNC:
        waiting = WaitingProduce(
            [(partition, end_offset) for partition, end_offset, _ in appends.unfinished],
            request.timeout_ms,
            appends.context.services.host.clock,
        )
        return _answer_when_committed(answers, appends, waiting)
    return _answer_when_flushed(answers, appends)


def _refuse_without_topic(
    data: PartitionProduceData, error: ErrorCode, verdicts: Mapping[TopicPartition, Verdict] | None
) -> PartitionProduceResponse:
    """The transactional id, which a batch of a transaction needs, is checked before the topic."""
    if verdicts is None and data.records is not None and is_transactional(data.records):
        error = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    return _refused(data.index, error)


def _answer(answers: list[TopicProduceResponse], appends: _Appends) -> ProduceResponse | None:
    if appends.acks == NO_ACKNOWLEDGEMENT:
        _close_on_error(answers)
        return None
    response = ProduceResponse(responses=answers)
    if any(was_decompressed_and_refused(batch, refusal) for _, batch, refusal in appends.refused):
        appends.context.connection.throttle_ms = response.throttle_time_ms = REFUSED_RECORDS_THROTTLE_MS
    if appends.has_errors:
        add_produce_leader_hints(response, appends.context)
    return response


async def _answer_when_committed(
    answers: list[TopicProduceResponse], appends: _Appends, waiting: WaitingProduce
) -> ProduceResponse | None:
    """acks=all: the high watermark must have reached every batch."""
    for (_, _, response), error in zip(appends.unfinished, await waiting.wait(), strict=True):
        if error is not _NONE:
            appends.has_errors = True
            response.error_code, response.base_offset = error, -1
    return _answer(answers, appends)


async def _answer_when_flushed(answers: list[TopicProduceResponse], appends: _Appends) -> ProduceResponse | None:
    """`flush.messages` is reached: an acknowledged batch must be durable."""
    began_ms = appends.context.services.host.clock.monotonic_ms()
    for partition, end_offset, response in appends.unfinished:
        try:
            await partition.flusher.flush_to(end_offset)
        except LogRetired:
            appends.has_errors = True
            response.error_code, response.base_offset = ErrorCode.NOT_LEADER_OR_FOLLOWER, -1
        except OSError as problem:
            log.error("flush failed", topic=partition.topic, partition=partition.index, reason=str(problem))
            response.error_code, response.base_offset = ErrorCode.KAFKA_STORAGE_ERROR, -1
    appends.context.add_wait(LOG, began_ms)
    return _answer(answers, appends)


def _refuse_all(request: ProduceRequest, error: ErrorCode) -> ProduceResponse | None:
    answers = [
        TopicProduceResponse(
            name=topic.name,
            topic_id=topic.topic_id,
            partition_responses=[_refused(data.index, error) for data in topic.partition_data],
        )
        for topic in request.topic_data
    ]
    if request.acks == NO_ACKNOWLEDGEMENT:
        _close_on_error(answers)
        return None
    return ProduceResponse(responses=answers)


def _find_topic(
    topic: TopicProduceData, uses_topic_ids: bool, context: RequestContext
) -> tuple[str | UUID, Mapping[int, Partition]] | ErrorCode:
    """The topic's name or id, as the client uses it, and its partitions on this broker; or the error if nothing may be
    appended to it."""
    table = context.services.partitions
    key: str | UUID
    if uses_topic_ids:
        key = topic.topic_id
        partitions = table.topic_by_id(key)
        known = partitions or context.services.image.topic_by_id(key)
        if known is None:
            return ErrorCode.UNKNOWN_TOPIC_ID
        name = known.name
    else:
        key = name = topic.name
        partitions = table.topic(name)
    if not context.allows_on_topic(Operation.WRITE, name):
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    if partitions is None:
        return key, {}
    if is_internal(name) and not (context.client_id == ADMIN_CLIENT_ID and context.allows_on_cluster(Operation.ALTER)):
        return ErrorCode.INVALID_TOPIC_EXCEPTION
    return key, partitions


def _append(
    data: PartitionProduceData, topic: str | UUID, partitions: Mapping[int, Partition], appends: _Appends
) -> PartitionProduceResponse:
    """The order of the checks is Kafka's: the partition, the request, the batch."""
    index, records = data.index, data.records
    partition = partitions.get(index)
    if partition is None:
        appends.has_errors = True
        return _refused(index, appends.context.services.partitions.absence(topic, index))
    if appends.refusal is not None:
        return _refused(index, appends.refusal)
    if records is None:
        return _refused(index, ErrorCode.INVALID_RECORD)
    guard: VerificationGuard | None = None
    if len(records) > HEADER_SIZE_BYTES and records[FLAGS_POSITION] & TRANSACTIONAL_FLAG and is_batch(records):
        if appends.verdicts is None:
            return _refused(index, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        verdict = appends.verdicts.get((partition.topic, index))
        if isinstance(verdict, ErrorCode):
            appends.has_errors = True
            return _refused(index, verdict)
        guard = verdict
    if not appends.takes_zstd and is_zstd(records):
        return _refused(index, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
    response = PartitionProduceResponse(index=index, error_code=0)
    if appends.deferred and any(each.partition is partition for each in appends.deferred):
        result: AppendResult | None = CONVERT_FIRST
    else:
        result = _try_append(partition, records, appends.acks, guard, NOT_CONVERTED)
        if result is CONVERT_FIRST and appends.context.services.produce_conversions.are_full:
            result = _try_append(partition, records, appends.acks, guard, None)
    if result is CONVERT_FIRST:
        appends.deferred.append(DeferredAppend(partition, memoryview(bytearray(records)), guard, response))
    else:
        _finish_append(partition, records, result, response, appends)
    return response


def _try_append(
    partition: Partition,
    records: memoryview,
    acks: int,
    guard: VerificationGuard | None,
    conversion: Conversion | None,
) -> AppendResult | None:
    """None if the disk failed."""
    try:
        return partition.append(records, acks, verification=guard, conversion=conversion)
    except OSError as problem:
        log.error("append failed", topic=partition.topic, partition=partition.index, reason=str(problem))
        return None


def _finish_append(
    partition: Partition,
    records: memoryview,
    result: AppendResult | None,
    response: PartitionProduceResponse,
    appends: _Appends,
) -> None:
    """Fills in the response, and notes what the request waits for."""
    if result is None:
        response.error_code, response.base_offset, response.log_start_offset = ErrorCode.KAFKA_STORAGE_ERROR, -1, -1
        return
    error, base_offset, last_offset, log_append_time_ms, is_duplicate = result
    if error is not _NONE:
        response.error_code, response.base_offset, response.log_start_offset = error, -1, -1
        appends.has_errors = True
        appends.refused.append((partition, records, response))
        return
    if not is_duplicate:
        appends.traffic.produced(partition.topic, len(records), last_offset - base_offset + 1)
    response.base_offset = base_offset
    response.log_append_time_ms = log_append_time_ms
    response.log_start_offset = partition.log.log_start_offset
    if last_offset >= partition.high_watermark and (appends.acks == ALL_IN_SYNC or partition.must_flush):
        appends.unfinished.append((partition, last_offset + 1, response))


def _refused(index: int, error: ErrorCode) -> PartitionProduceResponse:
    return PartitionProduceResponse(index=index, error_code=error, base_offset=-1, log_start_offset=-1)


def _close_on_error(answers: list[TopicProduceResponse]) -> None:
    """With acks=0 no answer carries an error: closing the connection makes the client refresh its metadata."""
    for topic in answers:
        for partition in topic.partition_responses:
            if partition.error_code != ErrorCode.NONE:
                raise CloseConnection(f"produce with acks=0 failed: {ErrorCode(partition.error_code).name}")
