"""The rules of transactions: from the state of a transactional id and a request to its next state or an error. Pure.

They are those of Kafka's TransactionCoordinator with `transaction.version` 2 (KIP-890). The version of a request shows
that of its client: before version 2 the epoch stays the same from one transaction to the next.

EndTxn is answered when the end is decided, so a client that goes on at once, with its next epoch or producer id, finds
the markers unwritten. Until they are written, every request that would change the transaction is answered with
CONCURRENT_TRANSACTIONS, before its identity is compared: only the completed transaction can tell a fenced producer from
the one that goes on. A client of version 1 keeps its epoch, so the identity in its EndTxn, and in the verification of a
batch, is compared first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from odradek.coordinator.transactions.transaction import (
    LARGEST_EPOCH,
    LAST_PRODUCER_EPOCH,
    ProducerIdentity,
    Transaction,
    TransactionState,
    TransactionVersion,
)
from odradek.protocol.errors import ErrorCode
from odradek.protocol.sentinels import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_TIMESTAMP

if TYPE_CHECKING:
    from collections.abc import Iterable

    from odradek.protocol.topic_partition import TopicPartition

_EMPTY, _ONGOING = TransactionState.EMPTY, TransactionState.ONGOING
_PREPARE_COMMIT, _PREPARE_ABORT = TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT
_COMPLETE_COMMIT, _COMPLETE_ABORT = TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT


class Outcome(NamedTuple):
    """`transaction` is the state to write, None when nothing changes; `error` is what the client gets once the write is
    committed. `needs_producer_id`: decide again with a new producer id."""

    error: ErrorCode = ErrorCode.NONE
    transaction: Transaction | None = None
    needs_producer_id: bool = False


NEEDS_PRODUCER_ID = Outcome(needs_producer_id=True)


def init_producer(
    current: Transaction | None,
    timeout_ms: int,
    expected: ProducerIdentity | None,
    now_ms: int,
    new_producer_id: int | None = None,
) -> Outcome:
    """A producer starts, or continues after an error (`expected`, KIP-360): it gets an epoch that fences all others."""
    if current is None:
        if new_producer_id is None:
            return NEEDS_PRODUCER_ID
        current = Transaction(producer_id=new_producer_id, timeout_ms=timeout_ms, last_update_ms=now_ms)
    if current.state.is_ending:
        return Outcome(ErrorCode.CONCURRENT_TRANSACTIONS)
    if expected is not None and not _may_continue(current, expected):
        return Outcome(ErrorCode.PRODUCER_FENCED)
    if current.state is _ONGOING:
        # The client asks again, and finds the transaction aborted.
        return Outcome(ErrorCode.CONCURRENT_TRANSACTIONS, abort_by_coordinator(current, now_ms))
    begun = current._replace(
        state=_EMPTY,
        timeout_ms=timeout_ms,
        partitions=frozenset(),
        start_ms=NO_TIMESTAMP,
        last_update_ms=now_ms,
        previous_producer_id=current.producer_id,
        next_producer_id=NO_PRODUCER_ID,
        client_version=TransactionVersion.V0,
    )
    if current.is_epoch_exhausted and (expected is None or expected.epoch in _last_epochs(current)):
        if new_producer_id is None:
            return NEEDS_PRODUCER_ID
        last_epoch = NO_PRODUCER_EPOCH if expected is None else expected.epoch
        return Outcome(transaction=begun._replace(producer_id=new_producer_id, producer_epoch=0, last_epoch=last_epoch))
    next_epoch = current.producer_epoch + 1
    if expected is None:
        return Outcome(transaction=begun._replace(producer_epoch=next_epoch, last_epoch=NO_PRODUCER_EPOCH))
    if current.producer_epoch in (NO_PRODUCER_EPOCH, expected.epoch):
        return Outcome(transaction=begun._replace(producer_epoch=next_epoch, last_epoch=current.producer_epoch))
    if expected.epoch == current.last_epoch:
        return Outcome(transaction=begun)  # a retry: the epoch was raised, and the answer was lost
    return Outcome(ErrorCode.PRODUCER_FENCED)


def _last_epochs(current: Transaction) -> tuple[int, ...]:
    """The epochs of a client whose producer id is used up. The largest epoch is the coordinator's, which has ended the
    client's transaction by it; a client never gets it."""
    if current.producer_epoch < LARGEST_EPOCH:
        return (current.producer_epoch,)
    return current.producer_epoch, current.last_epoch


def _may_continue(current: Transaction, expected: ProducerIdentity) -> bool:
    is_retry_of_new_id = expected.producer_id == current.previous_producer_id and expected.epoch >= LAST_PRODUCER_EPOCH
    return (
        current.producer_epoch == NO_PRODUCER_EPOCH or expected.producer_id == current.producer_id or is_retry_of_new_id
    )


def check_producer(current: Transaction | None, producer: ProducerIdentity) -> ErrorCode:
    """Whether this is the producer of the transaction, and its end is not being written."""
    if current is None or current.producer_id != producer.producer_id:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    if current.producer_epoch != producer.epoch:
        return ErrorCode.PRODUCER_FENCED
    return ErrorCode.CONCURRENT_TRANSACTIONS if current.state.is_ending else ErrorCode.NONE


def add_partitions(
    current: Transaction | None,
    producer: ProducerIdentity,
    partitions: frozenset[TopicPartition],
    version: TransactionVersion,
    now_ms: int,
) -> Outcome:
    """The first partition begins the transaction."""
    if current is not None and current.state.is_ending:
        return Outcome(ErrorCode.CONCURRENT_TRANSACTIONS)
    error = check_producer(current, producer)
    if error is not ErrorCode.NONE or current is None:
        return Outcome(error)
    is_begun = current.state is _ONGOING
    if is_begun and partitions <= current.partitions:
        return Outcome()
    return Outcome(
        transaction=current._replace(
            state=_ONGOING,
            partitions=current.partitions | partitions,
            start_ms=current.start_ms if is_begun else now_ms,
            last_update_ms=now_ms,
            client_version=version,
        )
    )


def verify_partitions(
    current: Transaction | None, producer: ProducerIdentity, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, ErrorCode]:
    """Whether the client has added these partitions to its transaction."""
    error = check_producer(current, producer)
    added = current.partitions if current is not None and current.state is _ONGOING else frozenset()
    return {
        each: error
        if error is not ErrorCode.NONE
        else ErrorCode.NONE
        if each in added
        else ErrorCode.TRANSACTION_ABORTABLE
        for each in partitions
    }


def end_transaction(
    current: Transaction | None,
    producer: ProducerIdentity,
    version: TransactionVersion,
    now_ms: int,
    *,
    commits: bool,
    new_producer_id: int | None = None,
) -> Outcome:
    """The version of the request chooses the rules, whatever the version of the requests before was."""
    if current is None:
        return Outcome(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    error = (
        _check_end(current, producer, commits) if version.raises_epoch else _check_end_v1(current, producer, commits)
    )
    if error is not None:
        return Outcome(error)
    if current.state is not _ONGOING:
        current = current._replace(start_ms=now_ms)
    if version.raises_epoch and current.is_epoch_exhausted and new_producer_id is None:
        return NEEDS_PRODUCER_ID
    # An id that was allocated is not needed if the producer has changed since.
    next_producer_id = new_producer_id if version.raises_epoch and current.is_epoch_exhausted else None
    return Outcome(transaction=_prepare(current, version, now_ms, next_producer_id, commits=commits))


def _check_end(current: Transaction, producer: ProducerIdentity, commits: bool) -> ErrorCode | None:
    """None when the end is to be written. The epoch rises at every end, so it tells a retry, whose answer was lost,
    from the next end. It is a retry only if the last end raised the epoch: a client of version 1 that took over the
    transactional id ends its transactions at the epoch that fenced the caller."""
    if current.state.is_ending:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    has_new_id = (
        producer.producer_id == current.previous_producer_id
        and producer.epoch == LAST_PRODUCER_EPOCH
        and current.producer_epoch == 0
    )
    if current.producer_id != producer.producer_id and not has_new_id:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    # A retry is answered with the raised epoch or a new producer id, never with the epoch of the coordinator.
    has_answer = current.producer_epoch < LARGEST_EPOCH
    is_raised = current.client_version.raises_epoch and current.producer_epoch == producer.epoch + 1 and has_answer
    if current.state.is_complete and (is_raised or has_new_id):
        return _answer_to_complete(current, commits)
    if current.producer_epoch != producer.epoch:
        return ErrorCode.PRODUCER_FENCED
    # A producer that sent nothing may abort nevertheless, to get its next epoch.
    return ErrorCode.INVALID_TXN_STATE if commits and current.state is not _ONGOING else None


def _check_end_v1(current: Transaction, producer: ProducerIdentity, commits: bool) -> ErrorCode | None:
    """None when the end is to be written. A retry has the epoch of the transaction."""
    error = check_producer(current, producer)
    if error is not ErrorCode.NONE:
        return error
    if current.state is _EMPTY:
        return ErrorCode.INVALID_TXN_STATE
    return None if current.state is _ONGOING else _answer_to_complete(current, commits)


def _answer_to_complete(current: Transaction, commits: bool) -> ErrorCode:
    """The answer to a repeated request to end a transaction."""
    return ErrorCode.NONE if commits == (current.state is _COMPLETE_COMMIT) else ErrorCode.INVALID_TXN_STATE


def _prepare(
    current: Transaction, version: TransactionVersion, now_ms: int, next_producer_id: int | None, *, commits: bool
) -> Transaction:
    """No client has the largest epoch, but a log of an earlier version may: it cannot rise, so the markers have it."""
    if current.producer_epoch >= LARGEST_EPOCH:
        version = TransactionVersion.V0
    prepared = current._replace(
        state=_PREPARE_COMMIT if commits else _PREPARE_ABORT,
        last_update_ms=now_ms,
        client_version=version,
        next_producer_id=NO_PRODUCER_ID if next_producer_id is None else next_producer_id,
    )
    if not version.raises_epoch:
        return prepared
    return prepared._replace(producer_epoch=current.producer_epoch + 1, last_epoch=current.producer_epoch)


def abort_by_coordinator(current: Transaction, now_ms: int) -> Transaction:
    """A transaction that takes too long, or that another producer fences. The epoch rises, whatever the client's
    version is; when the last one is used up, the next producer gets a new id."""
    return _prepare(current, TransactionVersion.V2, now_ms, None, commits=False)


def complete(current: Transaction, now_ms: int) -> Transaction:
    """All markers are written."""
    completed = current._replace(
        state=_COMPLETE_COMMIT if current.state is _PREPARE_COMMIT else _COMPLETE_ABORT,
        partitions=frozenset(),
        last_update_ms=now_ms,
        next_producer_id=NO_PRODUCER_ID,
    )
    if current.next_producer_id == NO_PRODUCER_ID:
        return completed
    return completed._replace(
        producer_id=current.next_producer_id,
        producer_epoch=0,
        previous_producer_id=current.producer_id,
    )


def answer_identity(transaction: Transaction) -> ProducerIdentity:
    """The producer id and epoch of the next transaction, which EndTxn returns."""
    if transaction.next_producer_id != NO_PRODUCER_ID:
        return ProducerIdentity(transaction.next_producer_id, 0)
    return ProducerIdentity(transaction.producer_id, transaction.producer_epoch)


def is_expired(transaction: Transaction, now_ms: int, expiration_ms: int) -> bool:
    """Whether the transactional id is forgotten: it is in no transaction, and was not used for that long."""
    is_idle = transaction.state is _EMPTY or transaction.state.is_complete
    return is_idle and now_ms - transaction.last_update_ms >= expiration_ms
