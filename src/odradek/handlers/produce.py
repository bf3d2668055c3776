"""Produce, versions 3 to 13: append one batch to each named partition, without reading its records.

Departures from Kafka: of a request without a transactional id, only the transactional batches are refused, not all. To
write to a coordinator's topic it is not enough to claim the client id of Kafka's admin client: the client must also be
allowed to alter the cluster. A batch that must be converted is refused with NOT_ENOUGH_REPLICAS if too many wait for
that, and with REQUEST_TIMED_OUT if its turn does not come within the request's timeout.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

from odradek.coordinator.runtime.waiting_response import WaitingResponse
from odradek.handlers.context import CloseConnection
from odradek.handlers.leader_hints import add_produce_leader_hints
from odradek.handlers.produce_appends import LEGAL_ACKS, NO_ACKNOWLEDGEMENT, RequestAppends, refused
from odradek.handlers.produced_batches import is_transactional
from odradek.handlers.request_record import LOG
from odradek.handlers.transaction_verification import verify_batches
from odradek.handlers.transactional_id_access import may_write
from odradek.host.logs import get_logger
from odradek.metadata.topic_names import is_internal
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
    from contextlib import AbstractContextManager
    from uuid import UUID

    from odradek.handlers.context import RequestContext
    from odradek.handlers.transaction_verification import Verdict
    from odradek.protocol.messages.produce import PartitionProduceData, TopicProduceData
    from odradek.protocol.topic_partition import TopicPartition
    from odradek.replica.partition import Partition

log = get_logger(__name__)

_WRITE = Operation.WRITE  # looking up an attribute of an enum is slow

FIRST_VERSION_WITH_TOPIC_IDS = 13
ADMIN_CLIENT_ID = "__admin_client"  # the one client that Kafka lets write to coordinators' topics

CONVERSION_THROTTLE_MS = 100
"""How long a client waits whose compressed records were refused, so that the others are served in between; or whose
batches found no room to wait for their conversion."""


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
    copies, size_bytes = context.services.verified_copies, _records_bytes(request)
    coordinator_id = context.services.transactions.topic.leader_of(transactional_id)
    if not copies.has_room(size_bytes, coordinator_id):
        _discard(verdicts)
        return _refuse_all(request, ErrorCode.NOT_ENOUGH_REPLICAS)
    # The memory of the request is used again while it waits.
    for topic in request.topic_data:
        for data in topic.partition_data:
            data.records = None if data.records is None else memoryview(bytearray(data.records))
    if isinstance(verdicts, WaitingResponse):
        copies.hold(size_bytes, coordinator_id)
        verdicts.at_end(lambda: copies.release(size_bytes, coordinator_id))
        return verdicts.map(lambda found: _append_all(request, context, found))
    return _append_when_verified(request, context, verdicts, copies.holding(size_bytes, coordinator_id))


def _records_bytes(request: ProduceRequest) -> int:
    return sum(len(data.records or b"") for topic in request.topic_data for data in topic.partition_data)


def _discard(verdicts: WaitingResponse | Awaitable[Mapping[TopicPartition, Verdict]]) -> None:
    """The coordinator's answer is not awaited; the client sends the batches again."""
    if isinstance(verdicts, WaitingResponse):
        verdicts.cancel()
    elif inspect.iscoroutine(verdicts):
        verdicts.close()


async def _append_when_verified(
    request: ProduceRequest,
    context: RequestContext,
    verdicts: Awaitable[Mapping[TopicPartition, Verdict]],
    holding: AbstractContextManager[None],
) -> ProduceResponse | None:
    with holding:
        found = await verdicts
    response = _append_all(request, context, found)
    return await response if inspect.isawaitable(response) else response


def _append_all(
    request: ProduceRequest, context: RequestContext, verdicts: Mapping[TopicPartition, Verdict] | None
) -> ProduceResponse | Awaitable[ProduceResponse | None] | None:
    appends = RequestAppends(request, context, verdicts)
    uses_topic_ids = context.api_version >= FIRST_VERSION_WITH_TOPIC_IDS
    answers: list[TopicProduceResponse] = []
    for topic in request.topic_data:
        found = _find_topic(topic, uses_topic_ids, context)
        if isinstance(found, ErrorCode):
            responses = [_refuse_without_topic(data, found, verdicts) for data in topic.partition_data]
        else:
            key, partitions = found
            responses = [appends.append(data, key, partitions) for data in topic.partition_data]
        answers.append(TopicProduceResponse(name=topic.name, topic_id=topic.topic_id, partition_responses=responses))
    if appends.are_deferred:
        appending = appends.append_deferred(request.timeout_ms)
        return _acknowledge_when_appended(request.timeout_ms, answers, appends, appending)
    return _acknowledge(request.timeout_ms, answers, appends)


async def _acknowledge_when_appended(
    timeout_ms: int, answers: list[TopicProduceResponse], appends: RequestAppends, appending: Awaitable[None]
) -> ProduceResponse | None:
    clock = appends.context.services.host.clock
    began_ms = clock.monotonic_ms()
    await appending
    appends.context.add_wait(LOG, began_ms)
    _fail_appends_of_earlier_epochs(appends)
    remaining_ms = max(timeout_ms - (clock.monotonic_ms() - began_ms), 0.0)
    response = _acknowledge(remaining_ms, answers, appends)
    return await response if inspect.isawaitable(response) else response


def _fail_appends_of_earlier_epochs(appends: RequestAppends) -> None:
    """A batch that was appended while others of its request waited is lost if its partition has had another leader:
    another batch may have its offsets."""
    for each in appends.unfinished:
        if each.partition.leader_epoch != each.leader_epoch:
            appends.has_errors = True
            each.response.error_code, each.response.base_offset = ErrorCode.NOT_LEADER_OR_FOLLOWER, -1
    appends.unfinished = [each for each in appends.unfinished if each.partition.leader_epoch == each.leader_epoch]


def _acknowledge(
    timeout_ms: float, answers: list[TopicProduceResponse], appends: RequestAppends
) -> ProduceResponse | Awaitable[ProduceResponse | None] | None:
    if not appends.unfinished:
        return _answer(answers, appends)
    if appends.acks == ALL_IN_SYNC:
        waiting = WaitingProduce(
            [(each.partition, each.end_offset) for each in appends.unfinished],
            timeout_ms,
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
    return refused(data.index, error)


def _answer(answers: list[TopicProduceResponse], appends: RequestAppends) -> ProduceResponse | None:
    if appends.acks == NO_ACKNOWLEDGEMENT:
        _close_on_error(answers)
        return None
    response = ProduceResponse(responses=answers)
    if appends.is_throttled:
        appends.context.connection.throttle_ms = response.throttle_time_ms = CONVERSION_THROTTLE_MS
    if appends.has_errors:
        add_produce_leader_hints(response, appends.context)
    return response


async def _answer_when_committed(
    answers: list[TopicProduceResponse], appends: RequestAppends, waiting: WaitingProduce
) -> ProduceResponse | None:
    """acks=all: the high watermark must have reached every batch."""
    for each, error in zip(appends.unfinished, await waiting.wait(), strict=True):
        if error is not ErrorCode.NONE:
            appends.has_errors = True
            each.response.error_code, each.response.base_offset = error, -1
    return _answer(answers, appends)


async def _answer_when_flushed(answers: list[TopicProduceResponse], appends: RequestAppends) -> ProduceResponse | None:
    """`flush.messages` is reached: an acknowledged batch must be durable."""
    began_ms = appends.context.services.host.clock.monotonic_ms()
    for partition, end_offset, _, response in appends.unfinished:
        try:
            await partition.flusher.flush_to(end_offset)
        except LogRetired:
            appends.has_errors = True
            response.error_code, response.base_offset = ErrorCode.NOT_LEADER_OR_FOLLOWER, -1
        except OSError as problem:
            log.error("flush failed", topic=partition.topic, partition=partition.index, reason=problem)
            response.error_code, response.base_offset = ErrorCode.KAFKA_STORAGE_ERROR, -1
    appends.context.add_wait(LOG, began_ms)
    return _answer(answers, appends)


def _refuse_all(request: ProduceRequest, error: ErrorCode) -> ProduceResponse | None:
    answers = [
        TopicProduceResponse(
            name=topic.name,
            topic_id=topic.topic_id,
            partition_responses=[refused(data.index, error) for data in topic.partition_data],
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
    if not context.allows_on_topic(_WRITE, name):
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    if partitions is None:
        return key, {}
    if is_internal(name) and not (context.client_id == ADMIN_CLIENT_ID and context.allows_on_cluster(Operation.ALTER)):
        return ErrorCode.INVALID_TOPIC_EXCEPTION
    return key, partitions


def _close_on_error(answers: list[TopicProduceResponse]) -> None:
    """With acks=0 no answer carries an error: closing the connection makes the client refresh its metadata."""
    for topic in answers:
        for partition in topic.partition_responses:
            if partition.error_code != ErrorCode.NONE:
                raise CloseConnection(f"produce with acks=0 failed: {ErrorCode(partition.error_code).name}")
