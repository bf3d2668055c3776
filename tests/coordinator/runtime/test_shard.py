"""One shard: no answer before what it rests on is committed, and none that is lost or given twice."""

from collections.abc import Callable

import pytest

from odradek.coordinator.runtime.coordinator_record import CoordinatorRecord
from odradek.coordinator.runtime.pending_writes import TurnOfWrites
from odradek.coordinator.runtime.shard import Shard, ShardState
from odradek.protocol.errors import ErrorCode
from tests.coordinator.groups.shard_bench import ManualClock, ManualTimers
from tests.coordinator.runtime.counter import Answer, Counters, record
from tests.coordinator.runtime.fake_shard_log import FakeShardLog

TIMEOUT_MS = 5000


class CounterShard:
    def __init__(self, log: FakeShardLog) -> None:
        self.log = log
        self.timers = ManualTimers()
        self.clock = ManualClock(self.timers)
        self.ends: list[Callable[[], None]] = []
        self.shard: Shard[Counters] = Shard(log, self.clock, TurnOfWrites(self.ends.append), lambda: TIMEOUT_MS)
        self.shard.timers = self.timers
        self.shard.machine = self.counters = Counters(self.shard)
        self.shard.activate()

    def end_turn(self) -> None:
        ends, self.ends[:] = list(self.ends), []
        for end in ends:
            end()

    def increment(self, name: str = "a") -> Answer:
        answer = Answer()
        self.counters.increment(name, answer)
        return answer

    def put(self, value: int, name: str = "a") -> Answer:
        answer = Answer()
        self.counters.put(name, value, answer)
        return answer

    def read(self, name: str = "a") -> Answer:
        answer = Answer()
        self.counters.read(name, answer)
        return answer


@pytest.fixture
def log() -> FakeShardLog:
    return FakeShardLog(commits_at_once=False)


@pytest.fixture
def shard(log: FakeShardLog) -> CounterShard:
    return CounterShard(log)


def test_an_answer_waits_until_its_records_are_committed(shard: CounterShard, log: FakeShardLog) -> None:
    first, second = shard.increment(), shard.increment()
    assert first.is_waiting
    log.advance_high_watermark(1)
    assert (first.response, second.is_waiting) == (1, True)
    log.advance_high_watermark(2)
    assert second.response == 2


def test_a_read_waits_until_what_it_has_seen_is_committed(shard: CounterShard, log: FakeShardLog) -> None:
    assert shard.read().response == 0, "nothing is uncommitted"
    shard.increment()
    read = shard.read()
    assert read.is_waiting
    log.advance_high_watermark(1)
    assert read.response == 1


def test_answers_are_immediate_when_appends_are(log: FakeShardLog) -> None:
    log.commits_at_once = True
    shard = CounterShard(log)
    assert shard.increment().response == 1
    assert shard.read().response == 1


def test_losing_the_leadership_refuses_every_request_that_waits_once(shard: CounterShard, log: FakeShardLog) -> None:
    waiting = [shard.increment(), shard.read(), shard.put(5), shard.put(6)]
    log.lose_leadership()
    assert [answer.error for answer in waiting] == [ErrorCode.NOT_COORDINATOR] * 4
    assert not shard.timers.deadlines
    assert not shard.clock.calls
    shard.end_turn()
    assert len(log.records) == 2, "the write that was collected is not appended"
    assert shard.increment().error is ErrorCode.NOT_COORDINATOR
    assert shard.read().error is ErrorCode.NOT_COORDINATOR
    assert shard.shard.state is ShardState.UNLOADED


def test_a_later_leadership_of_the_same_broker_fences_the_shard(shard: CounterShard, log: FakeShardLog) -> None:
    log.gain_leadership()
    assert shard.increment().error is ErrorCode.NOT_COORDINATOR
    assert not log.records


def test_a_failed_append_changes_nothing(shard: CounterShard, log: FakeShardLog) -> None:
    log.error = ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert shard.increment().error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert not shard.counters.values
    assert not shard.timers.deadlines


def test_an_answer_whose_records_are_not_committed_in_time_is_refused(shard: CounterShard, log: FakeShardLog) -> None:
    first = shard.increment()
    shard.timers.now_ms += TIMEOUT_MS / 2
    second = shard.increment()
    shard.timers.now_ms += TIMEOUT_MS / 2
    shard.clock.run_due()
    assert (first.error, second.is_waiting) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, True)
    log.advance_high_watermark(2)
    assert second.response == 2
    shard.timers.now_ms += TIMEOUT_MS
    shard.clock.run_due()
    assert not shard.clock.calls


# Shared batches


def test_the_first_write_of_a_turn_is_appended_at_once_and_the_others_share_a_batch(
    shard: CounterShard, log: FakeShardLog
) -> None:
    log.commits_at_once = True
    answers = [shard.put(value, f"counter-{value}") for value in range(5)]
    assert [answer.is_waiting for answer in answers] == [False, True, True, True, True]
    assert [len(batch) for batch in log.batches] == [1]
    assert len(shard.ends) == 1
    shard.end_turn()
    assert [len(batch) for batch in log.batches] == [1, 4]
    assert [answer.response for answer in answers] == [0, 1, 2, 3, 4]
    assert shard.counters.values == {f"counter-{value}": value for value in range(5)}
    assert not shard.put(9).is_waiting, "a new turn"


def test_any_other_operation_first_appends_what_was_collected(shard: CounterShard, log: FakeShardLog) -> None:
    log.commits_at_once = True
    first, second = shard.put(1), shard.put(2)
    assert shard.read().response == 2
    assert second.response == 2
    third = shard.put(3)
    assert shard.increment().response == 4
    assert [len(batch) for batch in log.batches] == [1, 1, 1, 1]
    assert (first.response, third.response) == (1, 3)
    shard.put(7)
    shard.shard.on_timer("a")
    assert shard.counters.values["a"] == 7
    shard.end_turn()
    assert len(log.records) == 5


def test_a_shared_batch_that_fails_fails_each_of_its_writes(shard: CounterShard, log: FakeShardLog) -> None:
    log.commits_at_once = True
    answers = [shard.put(value, f"counter-{value}") for value in range(3)]
    log.error = ErrorCode.NOT_COORDINATOR
    shard.end_turn()
    assert [answer.error for answer in answers] == [None, ErrorCode.NOT_COORDINATOR, ErrorCode.NOT_COORDINATOR]
    assert shard.counters.values == {"counter-0": 0}


def test_a_shared_batch_stays_within_the_limit(shard: CounterShard, log: FakeShardLog) -> None:
    log.commits_at_once = True
    log.batch_limit_bytes = 100  # two records
    for value in range(6):
        shard.put(value)
    shard.end_turn()
    assert [len(batch) for batch in log.batches] == [1, 2, 2, 1]


def test_independent_records_are_split_over_batches(shard: CounterShard, log: FakeShardLog) -> None:
    log.batch_limit_bytes = 100
    records = [record(f"{value}", value) for value in range(5)]
    assert shard.shard.write_each(records) is ErrorCode.NONE
    assert [len(batch) for batch in log.batches] == [2, 2, 1]
    assert shard.shard.write_each([]) is ErrorCode.NONE
    assert len(log.batches) == 3


def test_records_far_over_the_limit_are_refused_before_a_batch_is_built(shard: CounterShard, log: FakeShardLog) -> None:
    log.batch_limit_bytes = 100
    records = [CoordinatorRecord(b"a", bytes(400))]
    assert shard.shard.write(records) is ErrorCode.UNKNOWN_SERVER_ERROR
    assert not log.batches


# Failures of one write


def test_a_shared_write_whose_completion_raises_leaves_the_others_to_be_answered(
    shard: CounterShard, log: FakeShardLog
) -> None:
    log.commits_at_once = True
    shard.put(0)
    for replay, done in ((lambda: None, _fail), (_fail, lambda _: None)):
        assert shard.shard.write_shared([record("b", 1)], replay, done) is None
    answer = shard.put(2)
    shard.end_turn()
    assert answer.response == 2
    assert shard.counters.values == {"a": 2}


def test_a_shared_write_that_cannot_be_replayed_is_refused(shard: CounterShard) -> None:
    shard.put(0)
    errors: list[ErrorCode] = []
    assert shard.shard.write_shared([record("b", 1)], _fail, errors.append) is None
    shard.end_turn()
    assert errors == [ErrorCode.UNKNOWN_SERVER_ERROR]


def test_an_append_that_raises_refuses_every_write_of_its_batch(
    shard: CounterShard, log: FakeShardLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    shard.put(0)
    answers = [shard.put(1), shard.put(2)]
    with monkeypatch.context() as patch:
        patch.setattr(log, "append", _fail)
        shard.end_turn()
    assert [answer.error for answer in answers] == [ErrorCode.UNKNOWN_SERVER_ERROR] * 2


def test_the_first_write_of_a_turn_is_appended_after_older_ones(shard: CounterShard, log: FakeShardLog) -> None:
    for value in (0, 1):
        shard.put(value)
    shard.shard._turn._shards.clear()  # a turn that ended without appending the writes of this shard
    shard.put(2)
    assert [each.value for each in log.records] == [record("a", value).value for value in range(3)]


def test_unloading_refuses_the_writes_after_one_whose_completion_raises(shard: CounterShard, log: FakeShardLog) -> None:
    shard.put(0)
    assert shard.shard.write_shared([record("b", 1)], lambda: None, _fail) is None
    answer = shard.put(2)
    log.lose_leadership()
    assert answer.error is ErrorCode.NOT_COORDINATOR
    assert not shard.timers.deadlines


def _fail(*_: object) -> None:
    raise ValueError("a defect")
