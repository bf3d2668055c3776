"""Moves of replicas between log directories: other requests, failing disks, and crashes that interrupt them."""

import pytest

from odradek.host.host import Host
from odradek.log.partition_log import PartitionLog
from odradek.protocol.errors import ErrorCode
from odradek.replica.moves import copying as log_copying
from odradek.replica.moves.single_move import LogMove, open_copy
from tests.handlers.brokers import SimulatedBroker
from tests.handlers.requests import create_topic, delete_records, delete_topic, produce
from tests.replica.held_workers import HeldWorkers
from tests.replica.moved_replicas import (
    contents,
    copying,
    described,
    exchanged,
    filled,
    follow_another_leader,
    futures,
    move,
    set_rate,
)
from tests.replica.test_compaction import offsets
from tests.replica.test_housekeeping import pass_time


@pytest.fixture(autouse=True)
def nothing_fails_unseen() -> None:
    """Failures are the subject of these tests."""


def test_a_request_for_a_third_directory_replaces_the_move(broker: SimulatedBroker, name: str) -> None:
    copying(broker, name)
    assert move(broker, name, "/three") is ErrorCode.NONE
    set_rate(broker, "1000000")
    pass_time(broker, 2)
    assert described(broker, name) == {"/three": (False, 0)}
    assert futures(broker) == []
    assert len(offsets(broker, name)) == 20


def test_a_move_during_the_removal_of_an_old_copy_waits_for_it(broker: SimulatedBroker, name: str) -> None:
    exchanged(broker, name)
    pass_time(broker, 1)
    for path in ("/one", "/three", "/two"):
        assert move(broker, name, path) is ErrorCode.NONE
        pass_time(broker, 2)
        assert described(broker, name) == {path: (False, 0)}
    assert len(offsets(broker, name)) == 20


def test_a_crash_that_left_copies_in_two_directories_continues_one_move(broker: SimulatedBroker, name: str) -> None:
    copying(broker, name)
    left = f"/three/{name}-0.{'0' * 32}-future"
    broker.host.disk.make_directories(left)
    partition = broker.partition(name)
    partition.directory.write_partition_metadata(name, 0, partition.topic_id, left)
    broker.kill()
    pass_time(broker, 1)
    assert len(futures(broker)) == 1
    assert len(list(broker.services.partitions.moves)) == 1
    set_rate(broker, "1000000")
    pass_time(broker, 2)
    assert futures(broker) == []
    assert broker.partition(name).directory.path != "/one"
    assert len(offsets(broker, name)) == 20


def test_a_copy_of_records_that_were_truncated_is_not_used_after_a_crash(broker: SimulatedBroker, name: str) -> None:
    found = copying(broker, name, seconds=40)
    assert found.copy is not None
    assert found.copy.log_end_offset > 2
    follow_another_leader(broker, name, 2, 30)
    expected = contents(broker.partition(name))
    broker.kill()
    set_rate(broker, "1000000")
    pass_time(broker, 20)
    assert broker.partition(name).directory.path == "/two"
    assert contents(broker.partition(name)) == expected


@pytest.mark.parametrize("cancels", [False, True])
def test_a_new_topic_does_not_take_over_the_offsets_of_a_discarded_copy(
    broker: SimulatedBroker, name: str, cancels: bool
) -> None:
    filled(broker, name, 60)
    delete_records(broker, name, 15)
    set_rate(broker, "1")
    assert move(broker, name, "/two") is ErrorCode.NONE
    pass_time(broker, 70)
    found = broker.partition(name).move
    assert isinstance(found, LogMove)
    assert found.copy is not None
    assert found.copy.log_start_offset == 15
    if cancels:
        assert move(broker, name, "/one") is ErrorCode.NONE
    delete_topic(broker, name)
    move(broker, name, "/two")
    create_topic(broker, name)
    assert broker.partition(name).directory.path == "/two"
    for _ in range(3):
        produce(broker, name)
    broker.kill()
    assert offsets(broker, name) == [0, 1, 2]


def test_a_topic_is_deleted_while_the_target_of_its_move_hangs(name: str) -> None:
    workers = HeldWorkers()
    broker = SimulatedBroker(workers, log_dirs="/one,/two")
    copying(broker, name)
    workers.hung.add("/two")
    set_rate(broker, "1000000")
    pass_time(broker, 1)
    delete_topic(broker, name)
    pass_time(broker, 1)
    assert [each for each in broker.host.disk.list_directory("/one") if name in each] == []
    assert len(futures(broker)) == 1
    workers.release_all()
    pass_time(broker, 1)
    assert futures(broker) == []
    broker.close()


def test_an_unexpected_exception_ends_one_move_only(
    broker: SimulatedBroker, name: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    assert filled(broker, name) == "/one"
    create_topic(broker, f"{name}-other")

    def fail(found: LogMove, host: Host) -> PartitionLog:
        if found.partition.topic == name:
            raise ValueError("unexpected")
        return open_copy(found, host)

    monkeypatch.setattr(log_copying, "open_copy", fail)
    for topic in (name, f"{name}-other"):
        assert move(broker, topic, "/three") is ErrorCode.NONE
    pass_time(broker, 2)
    assert described(broker, name) == {"/one": (False, 0)}
    assert described(broker, f"{name}-other") == {"/three": (False, 0)}
    assert caplog.messages == ["a replica could not be moved"]
    delete_topic(broker, name)
    pass_time(broker, 1)
    assert [each for each in broker.host.disk.list_directory("/one") if each.startswith(f"{name}-0")] == []
