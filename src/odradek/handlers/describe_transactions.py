"""DescribeTransactions, version 0: the state of transactions by transactional id."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.coordinator.transactions.transaction_records import by_topic
from odradek.handlers.repeated_names import answer_names
from odradek.handlers.transactional_id_access import may_describe
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TopicData,
    TransactionState,
)
from odradek.security.authorizer import Operation

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from odradek.handlers.context import RequestContext


def handle(
    request: DescribeTransactionsRequest, context: RequestContext
) -> DescribeTransactionsResponse | Awaitable[DescribeTransactionsResponse]:
    return answer_names(
        request.transactional_ids,
        lambda transactional_id: _describe(transactional_id, context),
        _refuse_repetition,
        lambda states: DescribeTransactionsResponse(transaction_states=states),
    )


def _refuse_repetition(transactional_id: str) -> TransactionState:
    return TransactionState(transactional_id=transactional_id, error_code=ErrorCode.INVALID_REQUEST)


def _describe(transactional_id: str, context: RequestContext) -> TransactionState | Awaitable[TransactionState]:
    def refuse(error: ErrorCode) -> TransactionState:
        return TransactionState(transactional_id=transactional_id, error_code=error)

    if not may_describe(context, transactional_id):
        return refuse(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    if not transactional_id:
        return refuse(ErrorCode.INVALID_REQUEST)
    shard = context.services.transactions.find(transactional_id)
    if isinstance(shard, ErrorCode):
        return refuse(shard)
    transaction = shard.get(transactional_id)
    if transaction is None:
        return shard.answer_directly(refuse(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND), refuse)
    described = TransactionState(
        transactional_id=transactional_id,
        transaction_state=transaction.state.label,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_start_time_ms=transaction.start_ms,
        producer_id=transaction.producer_id,
        producer_epoch=transaction.producer_epoch,
        topics=[
            TopicData(topic=topic, partitions=indexes)
            for topic, indexes in by_topic(transaction.partitions).items()
            if context.allows_on_topic(Operation.DESCRIBE, topic, logs=False)
        ],
    )
    return shard.answer_directly(described, refuse)
