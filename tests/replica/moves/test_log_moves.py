"""Moves of replicas between log directories: copied while the broker serves, exchanged, continued after a crash."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from odradek.protocol.batch import assign_offset
from odradek.protocol.errors import ErrorCode
from odradek.replica.moves.single_move import LogMove
from tests.handlers.brokers import SimulatedBroker
from tests.handlers.requests import batch, create_topic, delete_records, delete_topic, produce
from tests.replica.committed_reading import committed_offsets
from tests.replica.moved_replicas import contents, described, filled, move, other, set_rate
from tests.replica.test_compaction import offsets
from tests.replica.test_housekeeping import pass_time
from tests.replica.transactions import abort, commit, put


@pytest.fixture
def broker() -> Iterator[SimulatedBroker]:
    broker = SimulatedBroker(log_dirs="/one,/two")
    yield broker
    broker.close()


def test_a_replica_is_moved_with_all_its_records(broker: SimulatedBroker, name: str) -> None:
    before = filled(broker, name)
    found = offsets(broker, name)
    assert move(broker, name, other(before)) is ErrorCode.NONE
    pass_time(broker, 2)
    assert broker.partition(name, 0).directory.path == other(before)
    assert described(broker, name) == {other(before): (False, 0)}
    assert offsets(broker, name) == found
    assert produce(broker, name).base_offset == 20
    pass_time(broker, 70)
    assert f"{name}-0" not in broker.host.disk.list_directory(before)
    broker.restart()
    assert broker.partition(name, 0).directory.path == other(before)
    assert len(offsets(broker, name)) == 21


def test_a_throttled_move_shows_its_lag_and_can_be_cancelled(broker: SimulatedBroker, name: str) -> None:
    before = filled(broker, name)
    set_rate(broker, "1")
    assert move(broker, name, other(before)) is ErrorCode.NONE
    pass_time(broker, 2)
    is_future, lag = described(broker, name)[other(before)]
    assert is_future
    assert 0 < lag < 20
    assert described(broker, name)[before] == (False, 0)
    assert move(broker, name, before) is ErrorCode.NONE
    pass_time(broker, 1)
    assert described(broker, name) == {before: (False, 0)}
    assert not [each for each in broker.host.disk.list_directory(other(before)) if each.endswith("-future")]


def test_the_directory_of_a_partition_that_does_not_exist_is_remembered(broker: SimulatedBroker, name: str) -> None:
    for number, path in enumerate(["/two", "/one", "/two", "/two"]):
        topic = f"{name}{number}"
        assert move(broker, topic, path) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        create_topic(broker, topic)
        assert broker.partition(topic, 0).directory.path == path
        assert move(broker, topic, path, 1) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_refusals_are_those_of_kafka(broker: SimulatedBroker, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = filled(broker, name)
    assert move(broker, name, "/three") is ErrorCode.LOG_DIR_NOT_FOUND
    assert move(broker, "a" * 240, "/one") is ErrorCode.INVALID_TOPIC_EXCEPTION
    assert move(broker, name, before) is ErrorCode.NONE
    assert described(broker, name) == {before: (False, 0)}
    is_elsewhere = ErrorCode.NOT_LEADER_OR_FOLLOWER  # the partition is in the metadata, on other brokers
    monkeypatch.setattr(broker.services.partitions, "absence", lambda *_: is_elsewhere)
    assert move(broker, f"{name}-elsewhere", "/one") is ErrorCode.REPLICA_NOT_AVAILABLE


def test_deleted_records_are_not_copied(broker: SimulatedBroker, name: str) -> None:
    before = filled(broker, name)
    delete_records(broker, name, 7)
    move(broker, name, other(before))
    pass_time(broker, 2)
    log = broker.partition(name, 0).log
    assert (broker.partition(name, 0).directory.path, log.log_start_offset) == (other(before), 7)
    broker.kill()
    assert broker.partition(name, 0).log.log_start_offset == 7


def test_a_deleted_topic_leaves_no_copy(broker: SimulatedBroker, name: str) -> None:
    before = filled(broker, name)
    set_rate(broker, "1")
    move(broker, name, other(before))
    pass_time(broker, 1)
    delete_topic(broker, name)
    pass_time(broker, 2)
    left = [each for path in ("/one", "/two") for each in broker.host.disk.list_directory(path) if name in each]
    assert left == []


def test_producers_continue_their_sequences(broker: SimulatedBroker, name: str) -> None:
    create_topic(broker, name)
    before = broker.partition(name, 0).directory.path
    for sequence in range(5):
        assert produce(broker, name, batch(producer=(9, 0, sequence))).error_code == 0
    delete_records(broker, name, 5)
    move(broker, name, other(before))
    pass_time(broker, 2)
    assert broker.partition(name, 0).directory.path == other(before)
    assert produce(broker, name, batch(producer=(9, 0, 7))).error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    broker.kill()
    assert produce(broker, name, batch(producer=(9, 0, 4))).base_offset == 4
    assert produce(broker, name, batch(producer=(9, 0, 5))).base_offset == 5


def test_transactions_continue_after_a_move(broker: SimulatedBroker, name: str) -> None:
    create_topic(broker, name)
    partition = broker.partition(name)
    before = partition.directory.path
    put(partition, 1, b"committed")
    commit(partition, 1)
    put(partition, 2, b"aborted")
    abort(partition, 2)
    put(partition, 3, b"open")
    move(broker, name, other(before))
    pass_time(broker, 2)
    assert partition.directory.path == other(before)
    assert (partition.last_stable_offset, committed_offsets(partition)) == (4, [0])
    abort(partition, 3)
    put(partition, 4, b"another")
    commit(partition, 4)
    assert committed_offsets(partition) == [0, 6]
    broker.kill()
    partition = broker.partition(name)
    assert (partition.directory.path, partition.last_stable_offset) == (other(before), 8)
    assert committed_offsets(partition) == [0, 6]


def test_the_copy_follows_a_truncation(broker: SimulatedBroker, name: str) -> None:
    before = filled(broker, name)
    partition = broker.partition(name, 0)
    set_rate(broker, "1")
    move(broker, name, other(before))
    pass_time(broker, 40)
    assert isinstance(partition.move, LogMove)
    assert partition.move.copy is not None
    copied = partition.move.copy.log_end_offset
    assert copied > 2
    assert partition.image is not None
    followed = replace(
        partition.image,
        leader=9,
        replicas=(0, 9),
        in_sync_replicas=(9,),
        leader_epoch=partition.leader_epoch + 1,
        partition_epoch=partition.image.partition_epoch + 1,
    )
    assert partition.become_follower(followed) is ErrorCode.NONE
    broker.run(partition.follower_log.truncate_to(2))
    for offset in range(2, 30):
        records = bytearray(batch(b"other %d" % offset))
        assign_offset(records, 0, offset, partition.leader_epoch)
        assert partition.follower_log.append(memoryview(records)).error is ErrorCode.NONE
    expected = contents(partition)
    set_rate(broker, "1000000")
    pass_time(broker, 20)
    assert partition.directory.path == other(before)
    assert contents(partition) == expected


@pytest.mark.parametrize("loses_power", [False, True])
def test_a_crash_at_any_step_loses_and_repeats_nothing(name: str, loses_power: bool) -> None:
    """Records are durable when they are acknowledged (`flush.messages=1`), so that a power loss may lose none."""
    moved_at_once = 0
    for steps in range(0, 90, 2):
        broker = SimulatedBroker(log_dirs="/one,/two")
        create_topic(broker, name, flush_messages="1")
        for _ in range(5):
            produce(broker, name)
        before = broker.partition(name, 0).directory.path
        move(broker, name, other(before))
        acknowledged = 5
        for _ in range(steps // 10):
            broker.step(10)
            acknowledged = produce(broker, name).base_offset + 1
        broker.step(steps % 10)
        if loses_power:
            crash(broker)
        else:
            broker.kill()
        moved_at_once += broker.partition(name, 0).directory.path == other(before)
        assert offsets(broker, name) == [*range(acknowledged)], steps
        pass_time(broker, 70)
        move(broker, name, other(before))  # the crash may have left no trace of the request
        pass_time(broker, 70)
        assert broker.partition(name, 0).directory.path == other(before), steps
        assert produce(broker, name).base_offset == acknowledged
        assert offsets(broker, name) == [*range(acknowledged + 1)], steps
        copies = [path for path in ("/one", "/two") if f"{name}-0" in broker.host.disk.list_directory(path)]
        assert len(copies) == 1
        assert not broker.host.disk.exists(f"{copies[0]}/{name}-0/moved-from")
        broker.close()
    assert moved_at_once


def crash(broker: SimulatedBroker) -> None:
    broker._cancel_all()
    broker.simulation.loop._scheduled.clear()  # type: ignore[attr-defined]  # asyncio cannot forget timers otherwise
    broker.simulation.crash()
    broker.run(broker._start())
