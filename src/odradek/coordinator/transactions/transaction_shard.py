"""The transactions of one partition of `__transaction_state`: requests run rules, and records are their outcome.

A transaction whose end is decided and committed gets its markers written, and is complete when all of them are. They
are written at the end of the turn of the event loop: after the client has its answer, and before it can send a request
that follows from it. The timeout of a transaction is a timer of the shard. After a load both start again from the
records.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from odradek.coordinator.runtime.pending_writes import PendingWrite
from odradek.coordinator.runtime.waiting_response import WaitingResponse
from odradek.coordinator.transactions import transaction_rules as rules
from odradek.coordinator.transactions.transaction import TransactionState
from odradek.coordinator.transactions.transaction_records import (
    read_transaction,
    read_transactional_id,
    transaction_record,
    transaction_tombstone,
)
from odradek.host.logs import get_logger
from odradek.protocol.control_records import ControlRecordType, EndTransactionMarker
from odradek.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from odradek.coordinator.runtime.shard import Shard
    from odradek.coordinator.transactions.markers import MarkerWriter
    from odradek.coordinator.transactions.transaction import Transaction
    from odradek.coordinator.transactions.transaction_rules import Outcome

log = get_logger(__name__)

T = TypeVar("T")

RETRY_AFTER_MS = 1000.0  # an abort by timeout, or the end of a transaction, could not be written

_NONE = ErrorCode.NONE


class TransactionShard:
    """The state machine of transactions."""

    def __init__(self, shard: Shard[TransactionShard], now_ms: Callable[[], int], markers: MarkerWriter) -> None:
        self._shard = shard
        self._markers = markers
        self.answer_directly = shard.answer_directly
        self._unwritten: set[str] = set()  # transactional ids with a write that waits to share a batch
        self._unmarked: dict[str, Transaction] = {}  # their end is committed, and their markers are due in this turn
        self._is_writing_markers = False
        self._to_mark_again: set[str] = set()  # writing their markers failed; a timer of the shard runs
        self.transactions: dict[str, Transaction] = {}
        self.now_ms = now_ms

    @property
    def is_active(self) -> bool:
        return self._shard.is_active

    def get(self, transactional_id: str) -> Transaction | None:
        """With all earlier requests applied."""
        if transactional_id in self._unmarked:
            self._write_due_markers()
        if transactional_id in self._unwritten:
            self._shard.append_pending()
        return self.transactions.get(transactional_id)

    # Decide, append, replay

    def carry_out(
        self,
        transactional_id: str,
        outcome: Outcome,
        response: Callable[[ErrorCode, Transaction | None], T],
    ) -> T | WaitingResponse:
        """Write what a rule decided; the response goes out when everything that it rests on is committed."""
        waiting = WaitingResponse(lambda error: response(error, None))
        transaction = outcome.transaction or self.transactions.get(transactional_id)

        def answer(error: ErrorCode) -> None:
            if error is _NONE:
                self._shard.answer(waiting, response(outcome.error, transaction))
            else:
                waiting.refuse(error)

        if outcome.transaction is None:
            answer(_NONE)
        else:
            self._write(transactional_id, outcome.transaction, answer)
        result: T | WaitingResponse = waiting.result()
        return result

    def _write(self, transactional_id: str, transaction: Transaction, done: Callable[[ErrorCode], None]) -> None:
        """Writes of different transactional ids commute, so those that arrive together share a batch."""

        def finish(error: ErrorCode) -> None:
            self._unwritten.discard(transactional_id)
            done(error)
            if error is _NONE and transaction.state.is_ending:
                self._write_markers_when_committed(transactional_id, transaction)

        def put() -> None:
            self._put(transactional_id, transaction)

        self._unwritten.add(transactional_id)
        records = [transaction_record(transactional_id, transaction)]
        if self._is_writing_markers:
            self._shard.collect_write(PendingWrite(records, put, finish))
            return
        outcome = self._shard.write_shared(records, put, finish)
        if outcome is not None:
            finish(outcome)

    def replay(self, key: bytes, value: bytes | None) -> None:
        """Take over one record. MalformedMessage when it is not a record of transactions."""
        transactional_id = read_transactional_id(key)
        if transactional_id is None:
            return
        if value is None:
            self.transactions.pop(transactional_id, None)
        else:
            self._put(transactional_id, read_transaction(value))

    def _put(self, transactional_id: str, transaction: Transaction) -> None:
        before = self.transactions.get(transactional_id)
        self.transactions[transactional_id] = transaction
        if not self.is_active:
            return  # timers start with the requests
        if transaction.state is not TransactionState.ONGOING:
            if before is not None and before.state is TransactionState.ONGOING:
                self._shard.timers.stop(transactional_id)
        elif before is None or before.state is not TransactionState.ONGOING:
            self._shard.timers.start(transactional_id, transaction.timeout_ms)

    def on_load(self) -> None:
        now_ms = self.now_ms()
        for transactional_id, transaction in list(self.transactions.items()):
            if transaction.state is TransactionState.ONGOING:
                # A clock that was set back must not keep the transaction open for longer than its timeout.
                delay_ms = min(max(transaction.deadline_ms - now_ms, 0), transaction.timeout_ms)
                self._shard.timers.start(transactional_id, delay_ms)
            elif transaction.state.is_ending:
                self._write_markers_when_committed(transactional_id, transaction)

    def on_unload(self) -> None:
        """No request waits inside: answers that wait for their records belong to the runtime. The next coordinator
        writes the markers that are due."""
        self._unmarked.clear()
        self._to_mark_again.clear()

    def on_timer(self, key: Hashable) -> None:
        """The transaction has reached its timeout, or its end could not be marked or recorded and is tried again."""
        assert isinstance(key, str)
        transaction = self.get(key)
        must_mark = key in self._to_mark_again
        self._to_mark_again.discard(key)
        if transaction is not None and transaction.state.is_ending:
            if must_mark:
                self.write_markers_soon(key, transaction)
            else:
                self._complete(key, transaction)
        if transaction is None or transaction.state is not TransactionState.ONGOING:
            return
        log.info("transaction timed out", transactional_id=key, producer_id=transaction.producer_id)
        self._write(key, rules.abort_by_coordinator(transaction, self.now_ms()), lambda error: self._retry(key, error))

    def _retry(self, transactional_id: str, error: ErrorCode) -> None:
        """A full disk can have room again."""
        if error is not _NONE and self.is_active:
            log.error("the state of a transaction could not be written", id=transactional_id, error=error.name)
            self._shard.timers.start(transactional_id, RETRY_AFTER_MS)

    def expire(self, transactional_id: str, expiration_ms: int) -> None:
        """Forget a transactional id that is not used."""
        transaction = self.get(transactional_id)
        if transaction is not None and rules.is_expired(transaction, self.now_ms(), expiration_ms):
            self._shard.write([transaction_tombstone(transactional_id)])

    # Markers

    def _write_markers_when_committed(self, transactional_id: str, transaction: Transaction) -> None:
        """Writes markers after the commit only: otherwise a new coordinator that does not know the decision could
        decide differently."""
        self._shard.answer(_WhenCommitted(self, transactional_id, transaction), None)

    def write_markers_soon(self, transactional_id: str, transaction: Transaction) -> None:
        self._unmarked[transactional_id] = transaction
        if len(self._unmarked) == 1:
            self._shard.defer(self._write_due_markers)

    def _write_due_markers(self) -> None:
        """The records of the transactions that are complete by this share a batch. An exception of one transaction is
        logged: the others must be completed."""
        due, self._unmarked = self._unmarked, {}
        self._is_writing_markers = True
        for transactional_id, transaction in due.items():
            try:
                self.write_markers(transactional_id, transaction)
            except Exception as problem:
                log.error("the markers of a transaction could not be written", id=transactional_id, exc_info=problem)
                self._mark_again(transactional_id)
        self._is_writing_markers = False
        self._shard.append_pending()

    def _mark_again(self, transactional_id: str) -> None:
        """After a pause: otherwise the transaction would stay open until the next load."""
        if self.is_active:
            self._to_mark_again.add(transactional_id)
            self._shard.timers.start(transactional_id, RETRY_AFTER_MS)

    def write_markers(self, transactional_id: str, transaction: Transaction) -> None:
        commits = transaction.state is TransactionState.PREPARE_COMMIT
        marker = EndTransactionMarker(
            transaction.producer_id,
            transaction.producer_epoch,
            ControlRecordType.COMMIT if commits else ControlRecordType.ABORT,
            self._shard.leader_epoch,
        )
        self._markers.write(
            marker,
            transaction.client_version,
            transaction.partitions,
            is_wanted=lambda: self.is_active and self.transactions.get(transactional_id) is transaction,
            done=lambda: self._complete(transactional_id, transaction),
            failed=lambda: self._mark_again(transactional_id),
        )

    def _complete(self, transactional_id: str, transaction: Transaction) -> None:
        if self.is_active and self.get(transactional_id) is transaction:
            completed = rules.complete(transaction, self.now_ms())
            self._write(transactional_id, completed, lambda error: self._retry(transactional_id, error))

    def wait_again(self, transactional_id: str, transaction: Transaction) -> None:
        """The record is not committed in time: it may be later."""
        if self.is_active and self.transactions.get(transactional_id) is transaction:
            self._write_markers_when_committed(transactional_id, transaction)


class _WhenCommitted:
    """A `Waiter` that writes the markers of a transaction."""

    __slots__ = ("_shard", "_transaction", "_transactional_id")

    def __init__(self, shard: TransactionShard, transactional_id: str, transaction: Transaction) -> None:
        self._shard = shard
        self._transactional_id = transactional_id
        self._transaction = transaction

    def __call__(self, _response: Any) -> None:
        self._shard.write_markers_soon(self._transactional_id, self._transaction)

    def refuse(self, error: ErrorCode) -> None:
        if error is not ErrorCode.NOT_COORDINATOR:
            self._shard.wait_again(self._transactional_id, self._transaction)
