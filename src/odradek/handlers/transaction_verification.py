"""Before a batch begins a transaction in a partition, the transaction's coordinator confirms it (KIP-890)."""

from __future__ import annotations

import struct
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from odradek.coordinator.runtime.waiting_response import WaitingResponse, map_answer
from odradek.coordinator.transactions.confirmations import ConfirmationRequest
from odradek.coordinator.transactions.transaction import ProducerIdentity
from odradek.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Awaitable, Collection, Iterable

    from odradek.handlers.context import RequestContext
    from odradek.log.transaction_verification import VerificationGuard
    from odradek.protocol.topic_partition import TopicPartition
    from odradek.replica.partition import Partition

# From these versions of Produce on, partitions join by being written to, and clients know TRANSACTION_ABORTABLE.
FIRST_PRODUCE_THAT_JOINS = 12
FIRST_PRODUCE_WITH_ABORTABLE = 11

_read_producer = struct.Struct(">qhi").unpack_from  # producer id, epoch, base sequence
_PRODUCER_POSITION = 43

# Errors of the coordinator that a producer does not know; it retries on this one.
_RETRIED = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.REQUEST_TIMED_OUT,
    }
)

Verdict: TypeAlias = "VerificationGuard | ErrorCode | None"
"""The guard for the append; None when the transaction has begun in the partition; or why nothing is appended."""


def verify_batches(
    transactional_id: str, batches: Iterable[tuple[Partition, memoryview]], context: RequestContext
) -> dict[TopicPartition, Verdict] | WaitingResponse | Awaitable[dict[TopicPartition, Verdict]]:
    """The verdict on each batch, by partition; a `WaitingResponse` or another awaitable of it."""
    joins = context.api_version >= FIRST_PRODUCE_THAT_JOINS
    now_ms = context.services.host.clock.now_ms()
    verdicts: dict[TopicPartition, Verdict] = {}
    to_confirm: dict[ProducerIdentity, list[TopicPartition]] = {}
    for partition, records in batches:
        producer_id, epoch, sequence = _read_producer(records, _PRODUCER_POSITION)
        guard = partition.transactions.begin_verification(
            producer_id, epoch, sequence, supports_epoch_bump=joins, now_ms=now_ms
        )
        place = partition.topic, partition.index
        verdicts[place] = guard
        if guard is not None and not isinstance(guard, ErrorCode):
            to_confirm.setdefault(ProducerIdentity(producer_id, epoch), []).append(place)
    waiting: list[WaitingResponse] = []
    for producer, places in to_confirm.items():
        errors = confirm_by_coordinator(transactional_id, producer, places, context, joins=joins)
        if isinstance(errors, WaitingResponse):
            waiting.append(errors.map(partial(_merge, verdicts, version=context.api_version)))
        else:
            _merge(verdicts, errors, context.api_version)
    if not waiting:
        return verdicts
    return waiting[0] if len(waiting) == 1 else _wait_for_all(waiting, verdicts)


async def _wait_for_all(
    waiting: Iterable[WaitingResponse], verdicts: dict[TopicPartition, Verdict]
) -> dict[TopicPartition, Verdict]:
    """Waits for the verdicts about a request with batches of several producers."""
    for each in waiting:
        await each
    return verdicts


def _merge(
    verdicts: dict[TopicPartition, Verdict], errors: dict[TopicPartition, ErrorCode], version: int
) -> dict[TopicPartition, Verdict]:
    for place, error in errors.items():
        if error is not ErrorCode.NONE:
            verdicts[place] = _known_to_producer(error, version)
    return verdicts


def _known_to_producer(error: ErrorCode, version: int) -> ErrorCode:
    if error in _RETRIED or (error is ErrorCode.CONCURRENT_TRANSACTIONS and version < FIRST_PRODUCE_THAT_JOINS):
        return ErrorCode.NOT_ENOUGH_REPLICAS
    if error is ErrorCode.TRANSACTION_ABORTABLE and version < FIRST_PRODUCE_WITH_ABORTABLE:
        return ErrorCode.INVALID_TXN_STATE
    return error


def confirm_by_coordinator(
    transactional_id: str,
    producer: ProducerIdentity,
    partitions: Collection[TopicPartition],
    context: RequestContext,
    *,
    joins: bool,
) -> dict[TopicPartition, ErrorCode] | WaitingResponse:
    """The coordinator's answer for each partition: it joins the transaction, or must have joined it."""
    coordinator = context.services.transactions
    if not joins and not coordinator.settings().verifies_partitions:
        return dict.fromkeys(partitions, ErrorCode.NONE)
    wanted = ConfirmationRequest(transactional_id, producer, partitions, joins)
    return map_answer(coordinator.confirmations.confirm(wanted), _for_writers)


def _for_writers(found: dict[TopicPartition, ErrorCode]) -> dict[TopicPartition, ErrorCode]:
    return {each: _for_writer(error) for each, error in found.items()}


def _for_writer(error: ErrorCode) -> ErrorCode:
    """Requests that write know a fenced producer by another error than those of the coordinator."""
    return ErrorCode.INVALID_PRODUCER_EPOCH if error is ErrorCode.PRODUCER_FENCED else error
