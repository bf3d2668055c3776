"""One shard of transactions on a log whose appends fail and whose high watermark lags when a test says so."""

from collections.abc import Callable

import pytest

from odradek.coordinator.runtime.pending_writes import TurnOfWrites
from odradek.coordinator.runtime.shard import Shard
from odradek.coordinator.transactions import transaction_rules as rules
from odradek.coordinator.transactions.transaction import (
    ProducerIdentity,
    Transaction,
    TransactionState,
    TransactionVersion,
)
from odradek.coordinator.transactions.transaction_records import read_transaction, transaction_record
from odradek.coordinator.transactions.transaction_shard import TransactionShard
from odradek.protocol.errors import ErrorCode
from tests.coordinator.groups.shard_bench import ManualClock, ManualTimers
from tests.coordinator.runtime.fake_shard_log import FakeShardLog

NAME, PRODUCER = "id", ProducerIdentity(7, 0)
TIMEOUT_MS, START_MS = 10_000, 1_000_000
ANSWER_TIMEOUT_MS = 5000.0
V2 = TransactionVersion.V2


class FakeMarkers:
    """Markers are written when a test calls `done`."""

    def __init__(self) -> None:
        self.done: list[Callable[[], None]] = []
        self.failed: list[Callable[[], None]] = []
        self.problems: list[Exception] = []  # of the next writes
        self.is_immediate = False

    def write(self, *_: object, done: Callable[[], None], failed: Callable[[], None], **__: object) -> None:
        if self.problems:
            raise self.problems.pop()
        self.failed.append(failed)
        if self.is_immediate:
            done()
        else:
            self.done.append(done)


class ShardOfTransactions:
    def __init__(self, log: FakeShardLog, now_ms: int = START_MS) -> None:
        self.log = log
        self.timers = ManualTimers()
        self.clock = ManualClock(self.timers)
        self.markers = FakeMarkers()
        self.ends: list[Callable[[], None]] = []
        self.now_ms = now_ms
        self.shard: Shard[TransactionShard] = Shard(
            log, self.clock, TurnOfWrites(self.ends.append), lambda: ANSWER_TIMEOUT_MS
        )
        self.shard.timers = self.timers
        self.machine = TransactionShard(self.shard, lambda: self.now_ms, self.markers)  # type: ignore[arg-type]  # a stand-in
        self.shard.machine = self.machine

    def load(self, transaction: Transaction) -> None:
        record = transaction_record(NAME, transaction)
        self.log.append([record])
        self.machine.replay(*record)
        self.shard.activate()
        self.end_turn()

    def fire(self) -> None:
        """The timeout of the transaction, or the pause before a retry, has passed."""
        self.timers.deadlines.pop(NAME)
        self.shard.on_timer(NAME)
        self.end_turn()

    def end_turn(self) -> None:
        while self.ends:
            self.ends.pop()()

    def state(self) -> TransactionState:
        return self.machine.transactions[NAME].state


@pytest.fixture(autouse=True)
def nothing_fails_unseen() -> None:
    """Appends fail here."""


@pytest.fixture
def shard() -> ShardOfTransactions:
    return ShardOfTransactions(FakeShardLog())


def ongoing() -> Transaction:
    return Transaction(
        producer_id=7,
        producer_epoch=0,
        timeout_ms=TIMEOUT_MS,
        last_update_ms=START_MS,
        start_ms=START_MS,
        state=TransactionState.ONGOING,
        partitions=frozenset({("t", 0)}),
        client_version=V2,
    )


def prepared() -> Transaction:
    outcome = rules.end_transaction(ongoing(), PRODUCER, V2, START_MS, commits=True)
    assert outcome.transaction is not None
    return outcome.transaction


@pytest.mark.parametrize("error", [ErrorCode.NOT_COORDINATOR, ErrorCode.UNKNOWN_SERVER_ERROR])
def test_the_end_is_recorded_when_the_disk_has_room_again(shard: ShardOfTransactions, error: ErrorCode) -> None:
    shard.load(prepared())
    shard.log.error = error  # a full disk: the leadership lasts
    shard.markers.done.pop()()
    shard.end_turn()
    shard.fire()
    assert shard.state() is TransactionState.PREPARE_COMMIT
    shard.log.error = ErrorCode.NONE
    shard.fire()
    assert shard.state() is TransactionState.COMPLETE_COMMIT
    assert not shard.timers.is_running(NAME)


@pytest.mark.parametrize(("jump_ms", "delay_ms"), [(-3_600_000, TIMEOUT_MS), (4_000, 6_000), (3_600_000, 0)])
def test_a_clock_that_was_set_back_does_not_keep_a_transaction_open(
    shard: ShardOfTransactions, jump_ms: int, delay_ms: int
) -> None:
    shard.now_ms += jump_ms
    shard.load(ongoing())
    assert shard.timers.deadlines[NAME] - shard.timers.now_ms == delay_ms


def test_markers_are_written_once_the_decision_is_committed() -> None:
    log = FakeShardLog(commits_at_once=False)
    shard = ShardOfTransactions(log)
    shard.load(prepared())
    assert not shard.markers.done
    shard.timers.now_ms += ANSWER_TIMEOUT_MS
    shard.clock.run_due()  # a client would get COORDINATOR_NOT_AVAILABLE; the markers wait on
    assert not shard.markers.done
    log.advance_high_watermark(1)
    shard.end_turn()
    assert len(shard.markers.done) == 1


def end(shard: ShardOfTransactions) -> object:
    outcome = rules.end_transaction(shard.machine.get(NAME), PRODUCER, V2, START_MS, commits=True)
    return shard.machine.carry_out(NAME, outcome, lambda error, _: error)


def test_the_end_is_answered_before_its_markers_are_written(shard: ShardOfTransactions) -> None:
    shard.load(ongoing())
    assert end(shard) is ErrorCode.NONE
    assert not shard.markers.done
    shard.end_turn()
    assert len(shard.markers.done) == 1


def test_a_request_of_the_same_turn_finds_the_markers_written(shard: ShardOfTransactions) -> None:
    shard.markers.is_immediate = True
    shard.load(ongoing())
    assert end(shard) is ErrorCode.NONE
    found = shard.machine.get(NAME)
    assert found is not None
    assert found.state is TransactionState.COMPLETE_COMMIT
    shard.end_turn()
    assert len(shard.log.records) == 3, "Ongoing, PrepareCommit, CompleteCommit: once each"


def test_markers_that_are_due_are_left_to_the_next_coordinator(shard: ShardOfTransactions) -> None:
    shard.load(ongoing())
    end(shard)
    shard.shard.unload()
    shard.end_turn()
    assert not shard.markers.done


def test_markers_that_could_not_be_written_are_written_again(shard: ShardOfTransactions) -> None:
    """Otherwise the transaction would hold the last stable offset of its partitions until the next load."""
    shard.markers.problems.append(RuntimeError("in a record of another version"))
    shard.load(prepared())
    assert not shard.markers.done
    shard.fire()
    assert len(shard.markers.done) == 1
    shard.markers.failed.pop()()  # in the task that waits for the partitions
    shard.fire()
    assert len(shard.markers.done) == 2
    assert shard.state() is TransactionState.PREPARE_COMMIT
    shard.markers.done.pop()()
    assert shard.state() is TransactionState.COMPLETE_COMMIT


async def test_a_transaction_that_does_not_fit_into_a_batch_is_refused_and_nothing_changes(
    shard: ShardOfTransactions,
) -> None:
    shard.load(ongoing())
    shard.log.largest_bytes = 1000
    many = frozenset(("t", index) for index in range(10_000))
    outcome = rules.add_partitions(shard.machine.get(NAME), PRODUCER, many, V2, START_MS)
    answer = shard.machine.carry_out(NAME, outcome, lambda error, _: error)
    assert answer is ErrorCode.UNKNOWN_SERVER_ERROR
    assert shard.machine.transactions[NAME] == read_transaction(transaction_record(NAME, ongoing()).value or b"")
    assert len(shard.log.records) == 1
