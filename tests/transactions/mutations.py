"""Bugs that a broker could have in its transactions, planted one at a time: the checker must find each."""

from collections.abc import Callable
from typing import Any

from odradek.coordinator.runtime.shard import Shard
from odradek.coordinator.transactions import transaction_rules
from odradek.coordinator.transactions.markers import MarkerWriter
from odradek.coordinator.transactions.transaction import ProducerIdentity, TransactionState, TransactionVersion
from odradek.coordinator.transactions.transaction_coordinator import TransactionCoordinator
from odradek.coordinator.transactions.transaction_shard import TransactionShard
from odradek.handlers import produce
from odradek.log import aborted_transactions
from odradek.log.producer_state import ProducerState
from odradek.log.transaction_verification import Verifications
from odradek.protocol.errors import ErrorCode
from odradek.replica.partition_transactions import PartitionTransactions
from tests.planting import Planting

_end_transaction = transaction_rules.end_transaction


def markers_before_prepare_is_committed(patch: Planting) -> None:
    def write(self: TransactionShard, transactional_id: str, transaction: Any) -> None:
        self.write_markers(transactional_id, transaction)

    patch.setattr(TransactionShard, "_write_markers_when_committed", write)


def answers_before_commit(patch: Planting) -> None:
    def answer(_: Shard[Any], waiter: Any, response: Any) -> None:
        waiter(response)

    patch.setattr(Shard, "answer", answer)


def complete_before_markers(patch: Planting) -> None:
    original = MarkerWriter.write

    def write(self: MarkerWriter, *args: Any, done: Callable[[], None], is_wanted: Any, failed: Any) -> None:
        done()
        original(self, *args, is_wanted=lambda: True, done=lambda: None, failed=failed)

    patch.setattr(MarkerWriter, "write", write)


def epoch_not_raised_at_the_end(patch: Planting) -> None:
    """A transaction of version 2 ends as one of version 1."""
    original = transaction_rules.end_transaction

    def end(current: Any, producer: ProducerIdentity, _: TransactionVersion, now_ms: int, **how: Any) -> Any:
        return original(current, producer, TransactionVersion.V1, now_ms, **how)

    patch.setattr(transaction_rules, "end_transaction", end)


def end_or_fence(current: Any, producer: ProducerIdentity, *rest: Any, **how: Any) -> Any:
    """A client that goes on with its next epoch while markers are written is taken for a fenced one."""
    is_next = current is not None and current.state.is_ending and producer.epoch == current.producer_epoch
    fenced = transaction_rules.Outcome(ErrorCode.PRODUCER_FENCED)
    return fenced if is_next else _end_transaction(current, producer, *rest, **how)


def next_transaction_fenced_before_the_markers(patch: Planting) -> None:
    patch.setattr(transaction_rules, "end_transaction", end_or_fence)


def epochs_not_compared(patch: Planting) -> None:
    """The coordinator takes requests of a producer that was fenced."""
    check = transaction_rules.check_producer
    end = transaction_rules.end_transaction

    def current_identity(current: Any, producer: ProducerIdentity) -> ProducerIdentity:
        return producer if current is None else ProducerIdentity(producer.producer_id, current.producer_epoch)

    patch.setattr(
        transaction_rules,
        "check_producer",
        lambda current, producer: check(current, current_identity(current, producer)),
    )
    patch.setattr(
        transaction_rules,
        "end_transaction",
        lambda current, producer, *rest, **how: end(current, current_identity(current, producer), *rest, **how),
    )


def partitions_not_verified(patch: Planting) -> None:
    def verify(_: TransactionCoordinator, __: str, ___: Any, partitions: Any) -> Any:
        return dict.fromkeys(partitions, ErrorCode.NONE)

    patch.setattr(TransactionCoordinator, "verify_partitions", verify)


def guard_ignored(patch: Planting) -> None:
    """A batch is appended although a marker was, since its transaction was verified."""
    patch.setattr(Verifications, "is_valid", lambda *_: True)


def last_stable_offset_is_high_watermark(patch: Planting) -> None:
    patch.setattr(PartitionTransactions, "last_stable_offset_at", lambda _, high_watermark: high_watermark)


def first_aborted_transaction_missing(patch: Planting) -> None:
    original = aborted_transactions.collect_aborted  # the function to break
    patch.setattr(aborted_transactions, "collect_aborted", lambda *args: original(*args)[1:])


def offsets_applied_before_the_end(patch: Planting) -> None:
    original = Shard.write_in_transaction

    def write(self: Shard[Any], records: Any, transaction: Any) -> ErrorCode:
        error = original(self, records, transaction)
        for record in records if error is ErrorCode.NONE else ():
            self.machine.replay(record.key, record.value)
        return error

    patch.setattr(Shard, "write_in_transaction", write)


def timers_not_started_after_load(patch: Planting) -> None:
    _load_only(patch, lambda transaction: transaction.state is not TransactionState.ONGOING)


def markers_not_resumed_after_load(patch: Planting) -> None:
    _load_only(patch, lambda transaction: not transaction.state.is_ending)


def _load_only(patch: Planting, is_kept: Callable[[Any], bool]) -> None:
    original = TransactionShard.on_load

    def on_load(self: TransactionShard) -> None:
        everything = self.transactions
        self.transactions = {name: each for name, each in everything.items() if is_kept(each)}
        original(self)
        self.transactions = everything | self.transactions

    patch.setattr(TransactionShard, "on_load", on_load)


def open_transactions_forgotten_at_a_start(patch: Planting) -> None:
    original = ProducerState.replace

    def forget(self: ProducerState, entries: Any, end_offset: int) -> None:
        entries = list(entries)
        for _, entry in entries:
            entry.current_txn_first_offset = -1
        original(self, entries, end_offset)

    patch.setattr(ProducerState, "replace", forget)


def receive_buffer_not_copied(patch: Planting) -> None:
    """The batch of a request that waits for its verification lies in memory that is used again."""
    patch.setattr(produce, "bytearray", lambda view: view, raising=False)


def partitions_forgotten_by_prepare(patch: Planting) -> None:
    """The last partition of a transaction of several gets no marker."""
    original = transaction_rules._prepare  # the function to break

    def prepare(current: Any, *args: Any, **how: Any) -> Any:
        prepared = original(current, *args, **how)
        kept = sorted(prepared.partitions)[:-1] or prepared.partitions
        return prepared._replace(partitions=frozenset(kept))

    patch.setattr(transaction_rules, "_prepare", prepare)


MUTATIONS: list[Callable[[Planting], None]] = [
    markers_before_prepare_is_committed,
    answers_before_commit,
    complete_before_markers,
    epoch_not_raised_at_the_end,
    next_transaction_fenced_before_the_markers,
    epochs_not_compared,
    partitions_not_verified,
    guard_ignored,
    last_stable_offset_is_high_watermark,
    first_aborted_transaction_missing,
    offsets_applied_before_the_end,
    timers_not_started_after_load,
    markers_not_resumed_after_load,
    open_transactions_forgotten_at_a_start,
    receive_buffer_not_copied,
    partitions_forgotten_by_prepare,
]
