"""TxnOffsetCommit, versions 0 to 5: offsets of a group that count when the transaction is committed.

The client is fenced by its generation (KIP-447). From version 5 on the partition of the group joins the transaction by
this request; before, it must have joined by AddOffsetsToTxn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.coordinator.groups.group import Committer
from odradek.coordinator.groups.offset_operations import NewOffset, commit_in_transaction
from odradek.coordinator.runtime.record_batches import BatchProducer
from odradek.coordinator.runtime.shard_log import TransactionalWrite, coordinator_error
from odradek.coordinator.runtime.waiting_response import WaitingResponse, map_answer
from odradek.coordinator.transactions.transaction import ProducerIdentity
from odradek.handlers.group_access import allows_on_group
from odradek.handlers.transaction_verification import confirm_by_coordinator
from odradek.handlers.transactional_id_access import may_write
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from odradek.protocol.sentinels import NO_SEQUENCE
from odradek.security.authorizer import Operation

if TYPE_CHECKING:
    from collections.abc import Awaitable
    from uuid import UUID

    from odradek.handlers.context import RequestContext
    from odradek.protocol.topic_partition import TopicPartition

FIRST_VERSION_THAT_JOINS = 5
FIRST_VERSION_WITH_ABORTABLE = 4  # earlier clients do not know TRANSACTION_ABORTABLE


def handle(
    request: TxnOffsetCommitRequest, context: RequestContext
) -> TxnOffsetCommitResponse | Awaitable[TxnOffsetCommitResponse]:
    error = _authorize(request, context)
    if error is not ErrorCode.NONE:
        return _refuse(request, error)
    offsets: list[NewOffset] = []
    committed: list[TxnOffsetCommitResponsePartition] = []
    response = TxnOffsetCommitResponse(
        topics=[_prepare(topic, context, offsets, committed) for topic in request.topics]
    )
    if not offsets:
        return response

    def fill_in(errors: list[ErrorCode]) -> TxnOffsetCommitResponse:
        for answer, each in zip(committed, errors, strict=True):
            answer.error_code = each
        return response

    def commit(
        transaction: TransactionalWrite | ErrorCode,
    ) -> TxnOffsetCommitResponse | Awaitable[TxnOffsetCommitResponse]:
        if isinstance(transaction, ErrorCode):
            return fill_in([transaction] * len(offsets))
        return map_answer(_commit(request, context, offsets, transaction), fill_in)

    transaction = _join(request, context)
    return transaction.map(commit) if isinstance(transaction, WaitingResponse) else commit(transaction)


def _authorize(request: TxnOffsetCommitRequest, context: RequestContext) -> ErrorCode:
    if not may_write(context, request.transactional_id):
        return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    if not allows_on_group(context, Operation.READ, request.group_id):
        return ErrorCode.GROUP_AUTHORIZATION_FAILED
    return ErrorCode.NONE


def _prepare(
    requested: TxnOffsetCommitRequestTopic,
    context: RequestContext,
    offsets: list[NewOffset],
    committed: list[TxnOffsetCommitResponsePartition],
) -> TxnOffsetCommitResponseTopic:
    """The topic's part of the response; offsets that may be committed are added to `offsets`, and their parts of the
    response to `committed`."""
    topic = context.services.image.topics.get(requested.name)
    is_allowed = context.allows_on_topic(Operation.READ, requested.name)
    answers = []
    for each in requested.partitions:
        answer = TxnOffsetCommitResponsePartition(partition_index=each.partition_index)
        answers.append(answer)
        if not is_allowed:
            answer.error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        elif topic is None or not 0 <= each.partition_index < len(topic.partitions):
            answer.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        else:
            committed.append(answer)
            offsets.append(_offset(requested.name, topic.topic_id, each))
    return TxnOffsetCommitResponseTopic(name=requested.name, partitions=answers)


def _offset(topic: str, topic_id: UUID, requested: TxnOffsetCommitRequestPartition) -> NewOffset:
    return NewOffset(
        topic,
        topic_id,
        requested.partition_index,
        requested.committed_offset,
        requested.committed_leader_epoch,
        requested.committed_metadata,
    )


def _join(request: TxnOffsetCommitRequest, context: RequestContext) -> TransactionalWrite | ErrorCode | WaitingResponse:
    """How to write in the transaction, once its coordinator has confirmed it. A broker that does not coordinate the
    group says so first: the client looks for the group's coordinator only after an error that names it."""
    services = context.services
    shard = services.groups.find(request.group_id)
    if isinstance(shard, ErrorCode):
        return shard
    topic, index = services.groups.partition_of(request.group_id)
    partition = services.partitions.find(topic, index)
    if partition is None:
        return ErrorCode.NOT_COORDINATOR
    joins = context.api_version >= FIRST_VERSION_THAT_JOINS
    producer = ProducerIdentity(request.producer_id, request.producer_epoch)
    guard = partition.transactions.begin_verification(
        *producer, NO_SEQUENCE, supports_epoch_bump=joins, now_ms=services.host.clock.now_ms()
    )
    if isinstance(guard, ErrorCode):
        return coordinator_error(guard)
    write = TransactionalWrite(BatchProducer(*producer), guard)
    if guard is None:
        return write

    def confirm(verdicts: dict[TopicPartition, ErrorCode]) -> TransactionalWrite | ErrorCode:
        error = verdicts[topic, index]
        if error is ErrorCode.TRANSACTION_ABORTABLE and context.api_version < FIRST_VERSION_WITH_ABORTABLE:
            return ErrorCode.INVALID_TXN_STATE
        return write if error is ErrorCode.NONE else error

    verdicts = confirm_by_coordinator(request.transactional_id, producer, [(topic, index)], context, joins=joins)
    return map_answer(verdicts, confirm)


def _commit(
    request: TxnOffsetCommitRequest,
    context: RequestContext,
    offsets: list[NewOffset],
    transaction: TransactionalWrite,
) -> list[ErrorCode] | WaitingResponse:
    shard = context.services.groups.find(request.group_id)
    if isinstance(shard, ErrorCode):
        return [shard] * len(offsets)
    committer = Committer(
        request.group_id,
        request.member_id,
        request.group_instance_id,
        request.generation_id,
        context.api_version,
        is_transactional=True,
    )
    errors = commit_in_transaction(shard, committer, offsets, transaction)
    return shard.answer_directly(errors, lambda error: [error] * len(offsets))


def _refuse(request: TxnOffsetCommitRequest, error: ErrorCode) -> TxnOffsetCommitResponse:
    return TxnOffsetCommitResponse(
        topics=[
            TxnOffsetCommitResponseTopic(
                name=topic.name,
                partitions=[
                    TxnOffsetCommitResponsePartition(partition_index=each.partition_index, error_code=error)
                    for each in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )
