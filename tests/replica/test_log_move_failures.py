"""Moves of replicas between log directories: other requests, failing disks, and crashes with two copies."""

from __future__ import annotations

import errno
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from odradek.log.log_directory import MOVED_FROM_FILE, MOVED_TO_FILE
from odradek.protocol.batch import assign_offset
from odradek.protocol.errors import ErrorCode
from odradek.replica import log_moves
from odradek.replica.log_move import LogMove, open_copy
from tests.handlers.brokers import SimulatedBroker
from tests.handlers.requests import batch, create_topic, delete_records, delete_topic, produce
from tests.replica.held_workers import HeldWorkers
from tests.replica.test_compaction import offsets
from tests.replica.test_housekeeping import pass_time
from tests.replica.test_log_moves import contents, described, filled, move, set_rate
from tests.simulation.simulated_disk import SimulatedFile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from odradek.host.host import Host
    from odradek.log.log_directory import LogDirectory
    from odradek.log.partition_log import PartitionLog


@pytest.fixture(autouse=True)
def nothing_fails_unseen() -> None:
    """Failures are the subject of these tests."""


@pytest.fixture
def broker() -> Iterator[SimulatedBroker]:
    broker = SimulatedBroker(log_dirs="/one,/two,/three")
    yield broker
    broker.close()


def futures(broker: SimulatedBroker) -> list[str]:
    return [
        f"{path}/{name}"
        for path in [each.path for each in broker.services.partitions.directories]
        for name in broker.host.disk.list_directory(path)
        if name.endswith("-future")
    ]


def copying(broker: SimulatedBroker, name: str, *, seconds: float = 2) -> LogMove:
    """A throttled move from /one to /two that is copying."""
    assert filled(broker, name) == "/one"
    set_rate(broker, "1")
    assert move(broker, name, "/two") is ErrorCode.NONE
    pass_time(broker, seconds)
    found = broker.partition(name).move
    assert isinstance(found, LogMove)
    return found


def step_until(broker: SimulatedBroker, condition: Callable[[], bool]) -> None:
    for _ in range(10_000):
        if condition():
            return
        broker.step(1)
    raise AssertionError("the condition was never met")


def exchanged(broker: SimulatedBroker, name: str) -> None:
    """A move from /one to /two whose copy has just replaced the log, and is not durable."""
    assert filled(broker, name) == "/one"
    assert move(broker, name, "/two") is ErrorCode.NONE
    step_until(broker, lambda: broker.partition(name).directory.path == "/two")


def die(broker: SimulatedBroker) -> None:
    """The process ends; `start` begins another one."""
    broker._cancel_all()
    broker.simulation.loop._scheduled.clear()  # type: ignore[attr-defined]
    broker.simulation.disk.kill()


def start(broker: SimulatedBroker) -> None:
    broker.run(broker._start())


def follow_another_leader(broker: SimulatedBroker, name: str, offset: int, end_offset: int) -> None:
    """Another broker leads: the log is truncated to `offset`, and gets the records of the leader up to `end_offset`."""
    partition = broker.partition(name)
    image = partition.image
    assert image is not None
    followed = replace(
        image,
        leader=9,
        replicas=(0, 9),
        in_sync_replicas=(9,),
        leader_epoch=partition.leader_epoch + 1,
        partition_epoch=image.partition_epoch + 1,
    )
    assert partition.become_follower(followed) is ErrorCode.NONE
    broker.run(partition.follower_log.truncate_to(offset))
    for each in range(offset, end_offset):
        records = bytearray(batch(b"other %d" % each))
        assign_offset(records, 0, each, partition.leader_epoch)
        assert partition.follower_log.append(memoryview(records)).error is ErrorCode.NONE


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


def test_a_log_that_cannot_be_read_does_not_fail_the_target(
    broker: SimulatedBroker, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(broker, name)
    read_at = SimulatedFile.read_at

    def fail(file: SimulatedFile, size_bytes: int, position: int) -> bytes:
        if file._path.startswith(f"/one/{name}-0/"):
            raise OSError(errno.EIO, "unreadable")
        return read_at(file, size_bytes, position)

    monkeypatch.setattr(SimulatedFile, "read_at", fail)
    assert move(broker, name, "/two") is ErrorCode.NONE
    pass_time(broker, 2)
    assert [each.failure for each in broker.services.partitions.directories] == [None] * 3
    assert broker.partition(name).move is None
    assert futures(broker) == []
    monkeypatch.undo()
    assert produce(broker, name).base_offset == 20


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


def test_the_old_copy_is_not_used_when_the_target_has_failed(broker: SimulatedBroker, name: str) -> None:
    exchanged(broker, name)
    pass_time(broker, 2)
    assert produce(broker, name).base_offset == 20
    die(broker)
    broker.simulation.disk.broken.add("/two")
    start(broker)
    assert produce(broker, name).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    die(broker)
    broker.simulation.disk.broken.clear()
    start(broker)
    assert broker.partition(name).directory.path == "/two"
    assert len(offsets(broker, name)) == 21


@pytest.mark.parametrize("seconds", [0, 2])
def test_the_old_copy_does_not_replace_a_truncated_one(broker: SimulatedBroker, name: str, seconds: int) -> None:
    exchanged(broker, name)
    if seconds:
        pass_time(broker, seconds)
    follow_another_leader(broker, name, 5, 15)
    expected = contents(broker.partition(name))
    broker.kill()
    assert broker.partition(name).directory.path == "/two"
    assert contents(broker.partition(name)) == expected


def test_a_marker_stays_while_the_directory_that_it_names_cannot_be_read(name: str) -> None:
    broker = SimulatedBroker(log_dirs="/two,/one")  # the first one must be usable at a start
    create_topic(broker, f"{name}-other")
    exchanged(broker, name)
    die(broker)
    marker = f"/two/{name}-0/{MOVED_FROM_FILE}"
    assert broker.host.disk.exists(marker)
    broker.simulation.disk.broken.add("/one")
    start(broker)
    assert produce(broker, name).base_offset == 20
    assert broker.host.disk.exists(marker)
    die(broker)
    broker.simulation.disk.broken.clear()
    start(broker)
    assert (broker.partition(name).directory.path, len(offsets(broker, name))) == ("/two", 21)
    assert not broker.host.disk.exists(marker)
    broker.close()


def test_an_empty_last_segment_does_not_hide_lost_records(broker: SimulatedBroker, name: str) -> None:
    exchanged(broker, name)
    die(broker)
    file = broker.host.disk.open(f"/two/{name}-0/{0:020}.log")
    assert broker.host.disk.exists(f"/two/{name}-0/{20:020}.log")
    file.truncate(file.size() - 10)
    start(broker)
    assert offsets(broker, name) == [*range(20)]


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


def test_records_that_are_deleted_just_before_the_exchange_stay_deleted(
    broker: SimulatedBroker, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(broker, name)
    table, partition = broker.services.partitions, broker.partition(name)
    checkpoint = table.checkpoint

    async def delete_after(directories: Iterable[LogDirectory] | None = None) -> None:
        await checkpoint(directories)
        assert partition.delete_records_before(7) is ErrorCode.NONE

    monkeypatch.setattr(table, "checkpoint", delete_after)
    assert move(broker, name, "/two") is ErrorCode.NONE
    step_until(broker, lambda: partition.directory.path == "/two")
    broker.kill()
    assert broker.partition(name).log.log_start_offset == 7


def test_a_flush_of_the_old_log_does_not_count_for_the_new_one(broker: SimulatedBroker, name: str) -> None:
    exchanged(broker, name)
    (found,) = broker.services.partitions.moves
    assert found.old_log is not None
    found.old_log.flush()
    epochs = broker.partition(name).log.leader_epochs
    assert epochs.is_dirty
    pass_time(broker, 1)
    assert not epochs.is_dirty


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


def test_a_removal_that_hangs_does_not_delay_the_next_move(name: str) -> None:
    workers = HeldWorkers()
    broker = SimulatedBroker(workers, log_dirs="/one,/two")
    exchanged(broker, name)
    workers.held.add("remove_trees")
    assert move(broker, name, "/one") is ErrorCode.NONE
    pass_time(broker, 2)
    assert workers.waiting == ["remove_trees"]
    assert described(broker, name) == {"/one": (False, 0)}
    workers.release_all()
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

    monkeypatch.setattr(log_moves, "open_copy", fail)
    for topic in (name, f"{name}-other"):
        assert move(broker, topic, "/three") is ErrorCode.NONE
    pass_time(broker, 2)
    assert described(broker, name) == {"/one": (False, 0)}
    assert described(broker, f"{name}-other") == {"/three": (False, 0)}
    assert caplog.messages == ["a replica could not be moved"]
    delete_topic(broker, name)
    pass_time(broker, 1)
    assert [each for each in broker.host.disk.list_directory("/one") if each.startswith(f"{name}-0")] == []


def test_a_source_without_room_for_the_marker_loses_the_old_copy_at_once(
    broker: SimulatedBroker, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(found: LogMove, host: Host) -> None:
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(log_moves, "mark_old_copy", refuse)
    exchanged(broker, name)
    pass_time(broker, 2)
    assert not broker.host.disk.exists(f"/one/{name}-0")
    broker.kill()
    assert (broker.partition(name).directory.path, len(offsets(broker, name))) == ("/two", 20)


def test_records_that_arrive_before_the_exchange_are_copied(
    broker: SimulatedBroker, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_moves, "CHUNK_BYTES", 200)  # of two or three batches
    prepare = log_moves.LogMoves._prepare
    prepared: list[LogMove] = []

    async def prepare_and_append(self: log_moves.LogMoves, found: LogMove, copy: PartitionLog) -> None:
        await prepare(self, found, copy)
        for _ in range(0 if prepared else 10):
            assert broker.partition(name).append(memoryview(bytearray(batch())), 1).error is ErrorCode.NONE
        prepared.append(found)

    monkeypatch.setattr(log_moves.LogMoves, "_prepare", prepare_and_append)
    assert filled(broker, name) == "/one"
    assert move(broker, name, "/two") is ErrorCode.NONE
    pass_time(broker, 10)
    assert broker.partition(name).directory.path == "/two"
    assert len(set(prepared)) == 1
    assert offsets(broker, name) == list(range(30))


def test_a_compacted_log_that_begins_with_a_gap_is_moved(broker: SimulatedBroker, name: str) -> None:
    """Its first segment begins before its first batch, as after a compaction and a retention."""
    create_topic(broker, name)
    partition = broker.partition(name)
    for each in range(150, 160):
        records = bytearray(batch())
        assign_offset(records, 0, each, partition.leader_epoch)
        if each == 150:
            partition.log.truncate_fully_and_start_at(100)
        assert partition.log.append_as_follower(memoryview(records)).error is ErrorCode.NONE
    assert partition.log.log_start_offset == 100
    source = partition.directory.path
    assert move(broker, name, "/two" if source == "/one" else "/one") is ErrorCode.NONE
    pass_time(broker, 10)
    assert partition.directory.path != source
    assert (partition.log.log_start_offset, partition.log.log_end_offset) == (100, 160)


def test_an_old_copy_is_kept_if_the_new_one_cannot_be_used(broker: SimulatedBroker, name: str) -> None:
    exchanged(broker, name)
    step_until(broker, lambda: broker.host.disk.exists(f"/one/{name}-0/{MOVED_TO_FILE}"))
    broker.host.disk.replace_file(f"/one/{name}-0/{MOVED_TO_FILE}", b"a directory that is gone")
    die(broker)
    start(broker)
    assert broker.partition(name).directory.path == "/two"
    assert [each for each in broker.host.disk.list_directory("/one") if each.endswith("-stray")]
