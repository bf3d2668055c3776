"""Copying a log while it serves, and the exchange: failures, gaps, records that are deleted or arrive late."""

import asyncio
import errno
from collections.abc import Callable, Iterable
from typing import TypeVar, TypeVarTuple

import pytest

from odradek.log.log_directory import LogDirectory
from odradek.log.partition_log import PartitionLog
from odradek.protocol.batch import assign_offset
from odradek.protocol.errors import ErrorCode
from odradek.replica.moves import copying
from odradek.replica.moves.single_move import LogMove
from odradek.replica.partition import Partition
from tests.handlers.brokers import SimulatedBroker
from tests.handlers.requests import batch, create_topic, delete_records, produce
from tests.replica.held_workers import HeldWorkers
from tests.replica.moved_replicas import filled, futures, move, step_until
from tests.replica.test_compaction import offsets
from tests.replica.test_housekeeping import pass_time
from tests.simulation.simulated_disk import SimulatedFile

T = TypeVar("T")
Arguments = TypeVarTuple("Arguments")


@pytest.fixture(autouse=True)
def nothing_fails_unseen() -> None:
    """Failures are the subject of these tests."""


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


def test_records_that_arrive_before_the_exchange_are_copied(
    broker: SimulatedBroker, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copying, "CHUNK_BYTES", 200)  # of two or three batches
    prepare = copying.LogCopier._prepare
    prepared: list[LogMove] = []

    async def prepare_and_append(self: copying.LogCopier, found: LogMove, copy: PartitionLog) -> None:
        await prepare(self, found, copy)
        for _ in range(0 if prepared else 10):
            assert broker.partition(name).append(memoryview(bytearray(batch())), 1).error is ErrorCode.NONE
        prepared.append(found)

    monkeypatch.setattr(copying.LogCopier, "_prepare", prepare_and_append)
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


@pytest.mark.parametrize("log_start_offset", [0, 17])
def test_a_log_that_ends_with_a_gap_is_moved(broker: SimulatedBroker, name: str, log_start_offset: int) -> None:
    """Its last segment is empty and begins after the last batch, as after a compaction of Apache Kafka."""
    filled(broker, name, 15)
    partition = broker.partition(name)
    partition.log._segments.roll(partition.log.config, partition.log.producers, 20)
    partition.log.log_end_offset = 20
    partition.advance_high_watermark(20)
    if log_start_offset:
        delete_records(broker, name, log_start_offset)
    assert move(broker, name, "/two") is ErrorCode.NONE
    pass_time(broker, 5)
    assert partition.directory.path == "/two"
    assert (partition.log.log_start_offset, partition.log.log_end_offset) == (log_start_offset, 20)
    assert produce(broker, name).base_offset == 20
    broker.kill()
    assert offsets(broker, name) == [*range(0 if log_start_offset else 15), 20]


class BusyWorkers(HeldWorkers):
    """A partition gets records during each read of a chunk."""

    def __init__(self) -> None:
        super().__init__()
        self.chunks = 0
        self.partition: Partition | None = None

    async def run(self, function: Callable[[*Arguments], T], *args: *Arguments) -> T:
        await asyncio.sleep(0)
        result = await super().run(function, *args)
        if function.__name__ == "read_chunk" and self.partition is not None and self.chunks < 500:
            self.chunks += 1
            for _ in range(30):
                assert self.partition.append(memoryview(bytearray(batch())), 1).error is ErrorCode.NONE
        return result


def test_a_partition_that_grows_faster_than_it_is_copied_is_moved(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copying, "CHUNK_BYTES", 200)  # of two or three batches
    workers = BusyWorkers()
    broker = SimulatedBroker(workers, log_dirs="/one,/two")
    assert filled(broker, name, 100) == "/one"
    workers.partition = broker.partition(name)
    assert move(broker, name, "/two") is ErrorCode.NONE
    pass_time(broker, 10)
    assert workers.partition.directory.path == "/two"
    assert 0 < workers.chunks < 100
    assert offsets(broker, name) == list(range(100 + 30 * workers.chunks))
    broker.close()


def test_a_damaged_log_is_not_moved(broker: SimulatedBroker, name: str, caplog: pytest.LogCaptureFixture) -> None:
    filled(broker, name)
    broker.restart()
    file = broker.host.disk.open(f"/one/{name}-0/{0:020}.log")
    size_bytes = file.size() // 20
    file.write_at(b"?", 10 * size_bytes + size_bytes - 1)
    caplog.clear()
    assert move(broker, name, "/two") is ErrorCode.NONE
    pass_time(broker, 5)
    assert broker.partition(name).move is None
    assert futures(broker) == []
    assert caplog.messages.count("a replica could not be moved") == 1
