"""One shard of a coordinator: a state machine on one partition of an internal topic. Decide, append, replay, answer.

A rule decides by the state, the records of its decision are appended and replayed, and answers go out when everything
that they may rest on is committed: when the high watermark has reached what was the log end as the rule ran. The same
holds for answers that only read the state. The state is therefore never rolled back: a shard that loses its partition
refuses all answers that wait, and is discarded.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from odradek.coordinator.runtime.commit_waits import CommitWait, CommitWaits
from odradek.coordinator.runtime.pending_transactions import PendingTransactions
from odradek.coordinator.runtime.pending_writes import PendingWrite, PendingWrites
from odradek.coordinator.runtime.shard_log import MOST_COMPRESSION, record_bytes
from odradek.coordinator.runtime.state_machine import StateMachine
from odradek.coordinator.runtime.waiting_response import WaitingResponse
from odradek.host.logs import get_logger
from odradek.protocol.control_records import ControlRecordType
from odradek.protocol.errors import ErrorCode
from odradek.protocol.malformed import MalformedMessage

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Sequence

    from odradek.coordinator.runtime.coordinator_record import CoordinatorRecord
    from odradek.coordinator.runtime.decision import Decision, Waiter
    from odradek.coordinator.runtime.pending_writes import TurnOfWrites
    from odradek.coordinator.runtime.shard_log import ShardLog, TransactionalWrite
    from odradek.host.clock import Clock, Timer
    from odradek.protocol.control_records import EndTransactionMarker

logger = get_logger(__name__)

M = TypeVar("M", bound=StateMachine)
T = TypeVar("T")

_NONE = ErrorCode.NONE


class ShardState(enum.Enum):
    LOADING = "loading"
    ACTIVE = "active"
    UNLOADED = "unloaded"  # for good: the next leadership of the partition gets a shard of its own


_ACTIVE = ShardState.ACTIVE


class Timers(Protocol):
    def start(self, key: Hashable, delay_ms: float) -> None: ...

    def stop(self, key: Hashable) -> None: ...

    def is_running(self, key: Hashable) -> bool: ...

    def stop_all(self) -> None: ...


class Shard(Generic[M]):
    """`machine` and `timers` call back into the shard, so they are set once it exists."""

    machine: M
    timers: Timers

    def __init__(self, log: ShardLog, clock: Clock, turn: TurnOfWrites, answer_timeout_ms: Callable[[], float]) -> None:
        self.log = log
        self.leader_epoch = log.leader_epoch
        self.state = ShardState.LOADING
        self._clock = clock
        self._turn = turn
        self._answer_timeout_ms = answer_timeout_ms
        self._waits = CommitWaits()
        self._pending = PendingWrites()
        self.pending_transactions = PendingTransactions()
        self._overdue_timer: Timer | None = None

    # Life

    @property
    def is_active(self) -> bool:
        return self.state is _ACTIVE

    @property
    def is_leader(self) -> bool:
        """Whether the leadership that this shard was made for lasts."""
        return self.log.leads_in(self.leader_epoch)

    def activate(self) -> None:
        """The state machine has replayed the log to its end."""
        assert self.state is ShardState.LOADING
        self.state = _ACTIVE
        self.log.watch(self._on_high_watermark, self.on_log_moved)
        self.machine.on_load()

    def unload(self) -> None:
        """Another broker coordinates, or none: every request that waits gets NOT_COORDINATOR, once."""
        was_active, self.state = self.is_active, ShardState.UNLOADED
        self.log.unwatch()
        self._finish(self._pending.take(), ErrorCode.NOT_COORDINATOR)
        if was_active:
            self.machine.on_unload()
        self._waits.refuse_all(ErrorCode.NOT_COORDINATOR)
        self.timers.stop_all()
        if self._overdue_timer is not None:
            self._overdue_timer.cancel()
            self._overdue_timer = None

    def _on_high_watermark(self, _offset: int) -> None:
        if self._waits:
            self.on_log_moved()

    def on_log_moved(self) -> None:
        """The high watermark has moved, or the leadership is lost."""
        if self.is_leader:
            self._waits.release(self.log.high_watermark)
        elif self.state is not ShardState.UNLOADED:
            self.unload()

    def on_timer(self, key: Hashable) -> None:
        if self.is_active:
            self.append_pending()
            self.machine.on_timer(key)

    # Writing

    def settle(self, decision: Decision) -> None:
        """Carry a decision out: writes first, and whatever follows from them; then timers; answers last."""
        while decision.writes:
            write = decision.writes.pop(0)
            write.then(self.write(write.records), decision)
        if self.is_active:
            self._set_timers(decision)
        for waiter, response in decision.answers:
            self.answer(waiter, response)

    def _set_timers(self, decision: Decision) -> None:
        for key, delay_ms in decision.timers.items():
            if delay_ms is None:
                self.timers.stop(key)
            else:
                self.timers.start(key, delay_ms)
        for key, delay_ms in decision.ensured_timers.items():
            if not self.timers.is_running(key):
                self.timers.start(key, delay_ms)

    def write(self, records: Sequence[CoordinatorRecord]) -> ErrorCode:
        """Append records as one batch and replay them, or neither."""
        if sum(map(record_bytes, records)) > self.write_limit_bytes():
            return ErrorCode.UNKNOWN_SERVER_ERROR
        return self._write(records)

    def _write(self, records: Sequence[CoordinatorRecord]) -> ErrorCode:
        if self._pending:
            self.append_pending()
        if not records:
            return _NONE
        error = self._append(records)
        if error is _NONE:
            for record in records:
                self.machine.replay(record.key, record.value)
        return error

    def write_in_transaction(self, records: Sequence[CoordinatorRecord], transaction: TransactionalWrite) -> ErrorCode:
        """Append records that are replayed when their transaction is committed."""
        self.append_pending()
        if not self.may_append:
            return ErrorCode.NOT_COORDINATOR
        error = self.log.append(records, transaction)
        if error is _NONE:
            self.pending_transactions.add(transaction.producer.producer_id, records)
        return error

    def end_transaction(self, marker: EndTransactionMarker, transaction_version: int) -> ErrorCode:
        """Append a marker; the records of a committed transaction are replayed."""
        self.append_pending()
        if not self.may_append:
            return ErrorCode.NOT_COORDINATOR
        error = self.log.append_marker(marker, transaction_version)
        if error is not _NONE:
            return error
        if marker.type is not ControlRecordType.COMMIT:
            self.pending_transactions.abort(marker.producer_id)
        for record in self.pending_transactions.commit(marker.producer_id):
            try:
                self.machine.replay(record.key, record.value)
            except MalformedMessage as problem:  # loaded from the log of another version: as when it is loaded
                logger.error("a coordinator record cannot be read", partition=self.log.name, reason=problem)
        return error

    def write_each(self, records: Sequence[CoordinatorRecord]) -> ErrorCode:
        """Append any number of records that are independent of each other, in as many batches as it takes. After an
        error some of them may have been written."""
        for part in self._split(records):
            error = self._write(part)
            if error is not _NONE:
                return error
        return _NONE

    def write_shared(
        self, records: Sequence[CoordinatorRecord], replay: Callable[[], None], done: Callable[[ErrorCode], None]
    ) -> ErrorCode | None:
        """Append records that commute with the other shared writes of this turn (see `pending_writes`): the outcome, or
        None when they are to share a batch, whose outcome `done` gets. `replay` changes the state as they do."""
        if self._turn.is_first(self):
            if self._pending:
                self.append_pending()
            error = self._append(records)
            if error is _NONE:
                replay()
            return error
        self.collect_write(PendingWrite(records, replay, done))
        return None

    def collect_write(self, write: PendingWrite) -> None:
        """Add a write to those that are appended together, by the next operation on this shard or the caller."""
        size_bytes = sum(map(record_bytes, write.records))
        if not self._pending.has_room(size_bytes, self.log.batch_limit_bytes):
            self.append_pending()
        self._pending.add(write, size_bytes)

    def defer(self, work: Callable[[], None]) -> None:
        """See `TurnOfWrites.defer`."""
        self._turn.defer(work)

    def fits_in_batch(self, records: Sequence[CoordinatorRecord]) -> bool:
        return len(records) == 1 or sum(map(record_bytes, records)) <= self.log.batch_limit_bytes

    def write_limit_bytes(self) -> int:
        """Records of more than this are refused before a batch is built: they would hardly ever fit, compressed."""
        return MOST_COMPRESSION * self.log.batch_limit_bytes

    def append_pending(self) -> None:
        """Append the shared writes that were collected. Every other operation on the shard does this first, so that
        the log has the decisions in the order in which they were made."""
        writes = self._pending.take()
        if not writes:
            return
        try:
            error = self._append([record for write in writes for record in write.records])
        except Exception as problem:
            logger.error("coordinator records could not be appended", partition=self.log.name, exc_info=problem)
            error = ErrorCode.UNKNOWN_SERVER_ERROR
        self._finish(writes, error)

    def _finish(self, writes: Sequence[PendingWrite], error: ErrorCode) -> None:
        """An exception of one write is logged: the requests of the others must be answered."""
        for write in writes:
            outcome = error
            if error is _NONE:
                try:
                    write.replay()
                except Exception as problem:
                    logger.error("a coordinator write could not be replayed", partition=self.log.name, exc_info=problem)
                    outcome = ErrorCode.UNKNOWN_SERVER_ERROR
            try:
                write.done(outcome)
            except Exception as problem:
                logger.error("a coordinator write could not be answered", partition=self.log.name, exc_info=problem)

    def _append(self, records: Sequence[CoordinatorRecord]) -> ErrorCode:
        if not self.may_append:
            return ErrorCode.NOT_COORDINATOR
        error = self.log.append(records)
        if self.pending_transactions and error is _NONE:
            self.pending_transactions.overwrite(record.key for record in records)
        return error

    @property
    def may_append(self) -> bool:
        """Whether the shard is loaded and its leadership lasts: it never appends under a later one than its own."""
        return self.state is _ACTIVE and self.log.leads_in(self.leader_epoch)

    def _split(self, records: Sequence[CoordinatorRecord]) -> Iterator[Sequence[CoordinatorRecord]]:
        limit_bytes = self.log.batch_limit_bytes
        first = size_bytes = 0
        for index, record in enumerate(records):
            next_bytes = record_bytes(record)
            if size_bytes + next_bytes > limit_bytes and index > first:
                yield records[first:index]
                first, size_bytes = index, 0
            size_bytes += next_bytes
        if records:
            yield records[first:]

    # Answering

    def answer(self, waiter: Waiter, response: Any) -> None:
        """Answer when all that has been appended is committed: at once, or when the high watermark gets there."""
        log = self.log
        if self.state is not _ACTIVE:
            waiter.refuse(ErrorCode.NOT_COORDINATOR)
        elif log.high_watermark >= (end_offset := log.log_end_offset):
            waiter(response)
        else:
            deadline_ms = self._clock.monotonic_ms() + self._answer_timeout_ms()
            self._waits.add(CommitWait(end_offset, deadline_ms, waiter, response))
            self._watch_deadlines()

    def answer_directly(self, response: T, refusal: Callable[[ErrorCode], T]) -> T | WaitingResponse:
        """For a handler that has its response: the response if all that it may rest on is committed, otherwise one
        that waits for it, or for its refusal."""
        if self.state is _ACTIVE and self.log.high_watermark >= self.log.log_end_offset:
            return response
        waiting = WaitingResponse(refusal)
        self.answer(waiting, response)
        result: T | WaitingResponse = waiting.result()
        return result

    def _watch_deadlines(self) -> None:
        deadline_ms = self._waits.next_deadline_ms
        if self._overdue_timer is None and deadline_ms is not None:
            delay_ms = max(deadline_ms - self._clock.monotonic_ms(), 0)
            self._overdue_timer = self._clock.call_after(delay_ms, self._refuse_overdue)

    def _refuse_overdue(self) -> None:
        """The records may be committed later: the client must ask again, as after any lost answer."""
        self._overdue_timer = None
        self._waits.refuse_overdue(self._clock.monotonic_ms(), ErrorCode.COORDINATOR_NOT_AVAILABLE)
        self._watch_deadlines()
