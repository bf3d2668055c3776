"""AddPartitionsToTxn, versions 0 to 5: partitions join a transaction. Clients send up to version 3; brokers send later
versions, for several transactions, and may ask only whether partitions have joined."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.coordinator.runtime.waiting_response import join_answers, map_answer
from odradek.coordinator.transactions.transaction import ProducerIdentity, TransactionVersion
from odradek.handlers.broker_access import is_broker_request
from odradek.handlers.transactional_id_access import may_write
from odradek.metadata.topic_names import is_internal
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)
from odradek.security.authorizer import Operation

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from odradek.coordinator.runtime.waiting_response import WaitingResponse
    from odradek.handlers.context import RequestContext
    from odradek.protocol.topic_partition import TopicPartition

FIRST_VERSION_OF_BROKERS = 4
FIRST_VERSION_WITH_PRODUCER_FENCED = 2
FIRST_VERSION_WITH_ABORTABLE = 5

Errors = dict["TopicPartition", ErrorCode]


def handle(
    request: AddPartitionsToTxnRequest, context: RequestContext
) -> AddPartitionsToTxnResponse | Awaitable[AddPartitionsToTxnResponse]:
    if context.api_version < FIRST_VERSION_OF_BROKERS:
        transaction = AddPartitionsToTxnTransaction(
            transactional_id=request.v3_and_below_transactional_id,
            producer_id=request.v3_and_below_producer_id,
            producer_epoch=request.v3_and_below_producer_epoch,
            topics=request.v3_and_below_topics,
        )
        return map_answer(_add(transaction, context), _answer_client)
    if not is_broker_request(context):
        return AddPartitionsToTxnResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    return join_answers(
        [_add_for_broker(each, context) for each in request.transactions],
        lambda results: AddPartitionsToTxnResponse(results_by_transaction=results),
    )


def _answer_client(errors: Errors) -> AddPartitionsToTxnResponse:
    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=_results(errors))


def _add_for_broker(
    transaction: AddPartitionsToTxnTransaction, context: RequestContext
) -> AddPartitionsToTxnResult | Awaitable[AddPartitionsToTxnResult]:
    def answer(errors: Errors) -> AddPartitionsToTxnResult:
        return AddPartitionsToTxnResult(transactional_id=transaction.transactional_id, topic_results=_results(errors))

    return map_answer(_add(transaction, context), answer)


def _add(transaction: AddPartitionsToTxnTransaction, context: RequestContext) -> Errors | WaitingResponse:
    """All partitions join, or none: if one may not, the others are not attempted. Brokers repeat all of them then: the
    producer of a batch that was not attempted would not."""
    transactional_id = transaction.transactional_id
    partitions = [(topic.name, index) for topic in transaction.topics for index in topic.partitions]
    is_of_broker = context.api_version >= FIRST_VERSION_OF_BROKERS
    if not is_of_broker and not may_write(context, transactional_id):
        return dict.fromkeys(partitions, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    refused = {each: error for each in partitions if (error := _check(each, context)) is not ErrorCode.NONE}
    if refused and is_of_broker:
        return dict.fromkeys(partitions, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    if refused:
        return {each: refused.get(each, ErrorCode.OPERATION_NOT_ATTEMPTED) for each in partitions}
    if not transactional_id:
        return dict.fromkeys(partitions, ErrorCode.INVALID_REQUEST)
    producer = ProducerIdentity(transaction.producer_id, transaction.producer_epoch)
    coordinator = context.services.transactions

    def known_to_client(errors: Errors) -> Errors:
        return {each: _known_to_client(error, context.api_version) for each, error in errors.items()}

    if transaction.verify_only:
        return map_answer(coordinator.verify_partitions(transactional_id, producer, partitions), known_to_client)
    version = TransactionVersion.V2 if is_of_broker else TransactionVersion.V0
    outcome = coordinator.add_partitions(transactional_id, producer, partitions, version)
    return map_answer(outcome, lambda error: known_to_client(dict.fromkeys(partitions, error)))


def _check(partition: TopicPartition, context: RequestContext) -> ErrorCode:
    """Brokers have checked what a client may write to. They may know a topic that this broker does not know yet: it
    must not join before, because its absence is taken for its deletion when the markers are written."""
    topic, index = partition
    is_of_broker = context.api_version >= FIRST_VERSION_OF_BROKERS
    if not is_of_broker and (not context.allows_on_topic(Operation.WRITE, topic) or is_internal(topic)):
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    image = context.services.image.topics.get(topic)
    if image is None or not 0 <= index < len(image.partitions):
        return ErrorCode.COORDINATOR_NOT_AVAILABLE if is_of_broker else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return ErrorCode.NONE


def _known_to_client(error: ErrorCode, version: int) -> ErrorCode:
    if error is ErrorCode.PRODUCER_FENCED and version < FIRST_VERSION_WITH_PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if error is ErrorCode.TRANSACTION_ABORTABLE and version < FIRST_VERSION_WITH_ABORTABLE:
        return ErrorCode.INVALID_TXN_STATE
    return error


def _results(errors: Errors) -> list[AddPartitionsToTxnTopicResult]:
    results: dict[str, AddPartitionsToTxnTopicResult] = {}
    for (topic, index), error in errors.items():
        result = results.setdefault(topic, AddPartitionsToTxnTopicResult(name=topic))
        result.results_by_partition.append(
            AddPartitionsToTxnPartitionResult(partition_index=index, partition_error_code=error)
        )
    return list(results.values())
