"""The runtime with a coordinator that is not of groups: leaderships begin, move and end."""

import asyncio
import errno
from collections.abc import Coroutine
from typing import Any

import pytest

from odradek.coordinator.java_strings import partition_of
from odradek.coordinator.runtime.coordinator_record import CoordinatorRecord
from odradek.coordinator.runtime.runtime import CoordinatorRuntime
from odradek.coordinator.runtime.shard import ShardState
from odradek.coordinator.runtime.timers import ShardTimers
from odradek.protocol.errors import ErrorCode
from tests.coordinator.groups.shard_bench import ManualClock, ManualTimers
from tests.coordinator.runtime.counter import Answer, Counters, record
from tests.coordinator.runtime.fake_shard_log import FakeShardLog

KEY = "key"


def make_runtime() -> CoordinatorRuntime[Counters]:
    return CoordinatorRuntime(ManualClock(ManualTimers()), Counters, answer_timeout_ms=lambda: 5000)


def run(scenario: Coroutine[Any, Any, None]) -> None:
    asyncio.run(scenario)


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


def increment(runtime: CoordinatorRuntime[Counters], key: str = KEY) -> Answer:
    counters = runtime.find(key)
    answer = Answer()
    if isinstance(counters, ErrorCode):
        answer.refuse(counters)
    else:
        counters.increment(key, answer)
    return answer


def test_an_empty_log_needs_no_loading() -> None:
    async def scenario() -> None:
        runtime = make_runtime()
        assert runtime.find(KEY) is ErrorCode.NOT_COORDINATOR
        runtime.follow([FakeShardLog()], 1)
        assert increment(runtime).response == 1
        runtime.stop()

    run(scenario())


def test_a_shard_is_loaded_to_the_log_end_and_answers_when_that_is_committed() -> None:
    """Records past the high watermark may have been answered by the leader before this one."""

    async def scenario() -> None:
        log = FakeShardLog(commits_at_once=False)
        for value in (1, 2, 3):
            log.append([record(KEY, value)])
        log.advance_high_watermark(1)
        runtime = make_runtime()
        runtime.follow([log], 1)
        assert runtime.find(KEY) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        await settle()
        answer = increment(runtime)
        assert answer.is_waiting
        log.advance_high_watermark(4)
        assert answer.response == 4
        (shard,) = runtime.shards()
        assert isinstance(shard.timers, ShardTimers)
        assert len(shard.timers) == 1
        runtime.stop()
        assert len(shard.timers) == 0

    run(scenario())


def test_each_key_has_the_shard_of_its_partition() -> None:
    async def scenario() -> None:
        runtime = make_runtime()
        led = [FakeShardLog(index) for index in (0, 2)]
        runtime.follow(led, 4)
        for number in range(50):
            key = f"key-{number}"
            index = partition_of(key, 4)
            assert runtime.partition_of(key) == index
            assert increment(runtime, key).error is (None if index in (0, 2) else ErrorCode.NOT_COORDINATOR)
        assert sum(len(log.records) for log in led) > 10
        runtime.stop()

    run(scenario())


def test_keys_stay_where_their_records_are_when_the_topic_grows() -> None:
    async def scenario() -> None:
        runtime = make_runtime()
        log = FakeShardLog()
        runtime.follow([log], 1)
        increment(runtime)
        runtime.follow([log, FakeShardLog(1)], 2)
        assert len(runtime.shards()) == 1
        assert increment(runtime).response == 2
        runtime.stop()

    run(scenario())


def test_a_lost_leadership_unloads_and_the_next_one_loads_again() -> None:
    async def scenario() -> None:
        log = FakeShardLog(commits_at_once=False)
        runtime = make_runtime()
        runtime.follow([log], 1)
        committed, waiting = increment(runtime), increment(runtime)
        log.advance_high_watermark(1)
        log.is_leader = False
        runtime.follow([], 1)
        assert (committed.response, waiting.error) == (1, ErrorCode.NOT_COORDINATOR)
        assert runtime.find(KEY) is ErrorCode.NOT_COORDINATOR
        log.truncate_to_high_watermark()
        log.gain_leadership()
        runtime.follow([log], 1)
        await settle()
        again = increment(runtime)
        log.advance_high_watermark(2)
        assert again.response == 2
        runtime.stop()

    run(scenario())


def test_a_new_leader_epoch_of_the_same_broker_gets_a_new_shard() -> None:
    """Another broker may have led, and written, between the two."""

    async def scenario() -> None:
        log = FakeShardLog()
        runtime = make_runtime()
        runtime.follow([log], 1)
        increment(runtime)
        (before,) = runtime.shards()
        log.append([record(KEY, 70)])
        log.gain_leadership()
        runtime.follow([log], 1)
        await settle()
        assert before.state is ShardState.UNLOADED
        assert increment(runtime).response == 71
        runtime.stop()

    run(scenario())


def test_a_leadership_that_ends_unnoticed_is_noticed_by_the_next_request() -> None:
    async def scenario() -> None:
        log = FakeShardLog(commits_at_once=False)
        runtime = make_runtime()
        runtime.follow([log], 1)
        waiting = increment(runtime)
        log.is_leader = False
        assert runtime.find(KEY) is ErrorCode.NOT_COORDINATOR
        assert waiting.error is ErrorCode.NOT_COORDINATOR

    run(scenario())


def test_a_shard_that_is_unloaded_while_it_loads_is_never_active() -> None:
    async def scenario() -> None:
        log = FakeShardLog()
        log.append([record(KEY, 1)])
        runtime = make_runtime()
        runtime.follow([log], 1)
        (shard,) = runtime.shards()
        log.is_leader = False
        runtime.follow([], 1)
        await settle()
        assert shard.state is ShardState.UNLOADED

    run(scenario())


def test_shards_that_were_lost_unnoticed_are_unloaded_and_left_out() -> None:
    """One of several log directories fails: the shards on it lose their leadership without a change of the metadata."""

    async def scenario() -> None:
        logs = [FakeShardLog(index) for index in range(4)]
        logs[2].append([record(KEY, 1)])
        runtime = make_runtime()
        runtime.follow(logs, 4)
        first, notified, loading, unnotified = runtime.shards()
        logs[1].lose_leadership()
        logs[2].is_leader = logs[3].is_leader = False
        assert runtime.shards() == [first]
        states = [shard.state for shard in (first, notified, loading, unnotified)]
        assert states == [ShardState.ACTIVE] + [ShardState.UNLOADED] * 3
        runtime.stop()

    run(scenario())


def test_shared_writes_of_all_shards_are_appended_at_the_end_of_the_turn() -> None:
    async def scenario() -> None:
        logs = [FakeShardLog(index) for index in range(2)]
        runtime = make_runtime()
        runtime.follow(logs, 2)
        answers = []
        for number in range(20):
            counters = runtime.find_for_shared_write(f"key-{number}")
            assert not isinstance(counters, ErrorCode)
            answers.append(Answer())
            counters.put(f"key-{number}", number, answers[-1])
        assert [len(log.batches) for log in logs] == [1, 1]
        await asyncio.sleep(0)
        assert [len(log.batches) for log in logs] == [2, 2]
        assert [answer.response for answer in answers] == list(range(20))
        runtime.stop()
        assert runtime.find(KEY) is ErrorCode.COORDINATOR_NOT_AVAILABLE

    run(scenario())


@pytest.mark.parametrize("problem", [OSError(errno.EMFILE, "too many open files"), ValueError("a defect")])
def test_a_shard_that_cannot_be_loaded_is_retried_while_the_others_work(problem: Exception) -> None:
    async def scenario() -> None:
        timers = ManualTimers()
        clock = ManualClock(timers)
        runtime = CoordinatorRuntime(clock, Counters, answer_timeout_ms=lambda: 5000)
        broken, sound = FakeShardLog(0), FakeShardLog(1)
        for log in (broken, sound):
            log.append([CoordinatorRecord(KEY.encode(), None)])  # no counter, so no timer of one
        broken.read_errors = [problem] * 3
        runtime.follow([broken, sound], 2)
        await settle()
        delays_ms = []
        for _ in range(3):
            assert [shard.state for shard in runtime.shards()] == [ShardState.LOADING, ShardState.ACTIVE]
            (call,) = clock.calls
            delays_ms.append(call[0] - timers.now_ms)
            timers.now_ms = call[0]
            clock.run_due()
            await settle()
        assert delays_ms == [1000, 2000, 4000]
        assert [shard.state for shard in runtime.shards()] == [ShardState.ACTIVE] * 2
        assert not clock.calls
        runtime.stop()

    run(scenario())


def test_a_disk_that_hangs_does_not_delay_shards_of_another_log_directory() -> None:
    async def scenario() -> None:
        runtime = make_runtime()
        logs = [FakeShardLog(index) for index in range(3)]
        for log in logs:
            log.append([record(KEY, 1)])
        logs[0].hangs = True
        logs[2].log_directory = "/other"
        runtime.follow(logs, 3)
        await settle()
        states = [shard.state for shard in runtime.present_shards()]
        assert states == [ShardState.LOADING, ShardState.LOADING, ShardState.ACTIVE]
        runtime.stop()

    run(scenario())


def test_loading_is_not_retried_after_the_leadership_or_the_runtime_has_ended() -> None:
    async def scenario() -> None:
        timers = ManualTimers()
        clock = ManualClock(timers)
        runtime = CoordinatorRuntime(clock, Counters, answer_timeout_ms=lambda: 5000)
        logs = [FakeShardLog(0), FakeShardLog(1)]
        for log in logs:
            log.append([CoordinatorRecord(KEY.encode(), None)])
            log.read_errors = [OSError("broken")] * 2
        runtime.follow(logs, 2)
        await settle()
        logs[0].is_leader = False
        timers.now_ms += 1000
        clock.run_due()
        await settle()
        assert [len(log.read_errors) for log in logs] == [1, 0]
        assert len(clock.calls) == 1
        runtime.stop()
        assert not clock.calls

    run(scenario())


def test_a_failing_start_of_one_shard_leaves_the_others_to_work() -> None:
    async def scenario() -> None:
        def fail_for_first(counters: Counters) -> None:
            if counters.shard.log.index == 0:
                raise ValueError("a defect")

        runtime = CoordinatorRuntime(
            ManualClock(ManualTimers()), Counters, answer_timeout_ms=lambda: 5000, on_active=fail_for_first
        )
        logs = [FakeShardLog(index) for index in range(3)]
        logs[1].append([record(KEY, 1)])
        runtime.follow(logs, 3)
        await settle()
        assert [shard.state for shard in runtime.shards()] == [ShardState.ACTIVE] * 3
        runtime.stop()

    run(scenario())
