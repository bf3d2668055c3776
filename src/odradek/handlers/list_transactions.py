"""ListTransactions, versions 0 to 2: the transactions that this broker coordinates, filtered.

A pattern is compiled and matched on a worker, with ids of transactions that the client may describe: a pattern may
take milliseconds for each id, and must not reveal ids by the time that it takes.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from odradek.coordinator.groups.consumer.topic_patterns import InvalidPattern, matching_names
from odradek.coordinator.pattern_matching import PatternsStopped
from odradek.coordinator.runtime.waiting_response import join_answers
from odradek.coordinator.transactions.transaction import STATES_BY_LABEL
from odradek.handlers.transactional_id_access import may_describe
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
    TransactionState,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from odradek.coordinator.transactions.transaction import Transaction
    from odradek.handlers.context import RequestContext

    Filter = Callable[[str, Transaction], bool]


def handle(
    request: ListTransactionsRequest, context: RequestContext
) -> ListTransactionsResponse | Awaitable[ListTransactionsResponse]:
    is_listed = _filter(request, context)
    if request.transactional_id_pattern:
        return _match_first(request, request.transactional_id_pattern, is_listed, context)
    return _list(request, is_listed, context)


async def _match_first(
    request: ListTransactionsRequest, pattern: str, is_listed: Filter, context: RequestContext
) -> ListTransactionsResponse:
    # Kafka's admin client tries again after this error.
    later = ListTransactionsResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    turns = context.services.groups.pattern_matching
    if turns.are_full:
        return later
    listed = [
        transactional_id
        for shard in context.services.transactions.shards()
        if shard.is_active
        for transactional_id, transaction in shard.machine.transactions.items()
        if is_listed(transactional_id, transaction)
    ]
    try:
        matching = await turns.run(matching_names, pattern, listed)
    except InvalidPattern:
        return ListTransactionsResponse(error_code=ErrorCode.INVALID_REGULAR_EXPRESSION)
    except PatternsStopped:
        return later
    answer = _list(request, lambda name, transaction: name in matching and is_listed(name, transaction), context)
    return answer if isinstance(answer, ListTransactionsResponse) else await answer


def _list(
    request: ListTransactionsRequest, is_listed: Filter, context: RequestContext
) -> ListTransactionsResponse | Awaitable[ListTransactionsResponse]:
    unknown = [state for state in request.state_filters if state not in STATES_BY_LABEL]
    parts: list[list[TransactionState] | Awaitable[list[TransactionState]]] = []
    for shard in context.services.transactions.shards():
        if not shard.is_active:
            return ListTransactionsResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        listed = [
            TransactionState(
                transactional_id=transactional_id,
                producer_id=transaction.producer_id,
                transaction_state=transaction.state.label,
            )
            for transactional_id, transaction in shard.machine.transactions.items()
            if is_listed(transactional_id, transaction)
        ]
        parts.append(shard.answer_directly(listed, lambda _: []))  # another broker lists those of a lost shard
    return join_answers(
        parts,
        lambda lists: ListTransactionsResponse(
            unknown_state_filters=unknown, transaction_states=list(chain.from_iterable(lists))
        ),
    )


def _filter(request: ListTransactionsRequest, context: RequestContext) -> Filter:
    """All conditions of the request but the pattern, and that the client may describe the transaction."""
    states = {STATES_BY_LABEL.get(state) for state in request.state_filters}
    producer_ids = set(request.producer_id_filters)
    now_ms = context.services.host.clock.now_ms()

    def is_listed(transactional_id: str, transaction: Transaction) -> bool:
        # By the last start alone, as in Kafka: transactions that have ended, or never began, are listed as well.
        is_long = request.duration_filter < 0 or now_ms - transaction.start_ms > request.duration_filter
        return (
            (not states or transaction.state in states)
            and (not producer_ids or transaction.producer_id in producer_ids)
            and is_long
            and may_describe(context, transactional_id, logs=False)
        )

    return is_listed
