"""The log of a shard on a real partition: batches, errors, and what counts as committed with `flush.messages`."""

import asyncio
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from odradek.coordinator.runtime.coordinator_record import CoordinatorRecord
from odradek.coordinator.runtime.record_batches import build_coordinator_batch
from odradek.log.log_config import LogConfig
from odradek.protocol.errors import ErrorCode
from odradek.protocol.key_values import read_key_values
from tests.coordinator.groups.group_world import GroupWorld
from tests.coordinator.runtime.log_partition import LogPartition, load, new_shard, offset, offsets, shard_log_of
from tests.log.batches import open_log
from tests.simulation.simulated_host import Simulation


@pytest.fixture
def simulation() -> Iterator[Simulation]:
    simulation = Simulation(1)
    simulation.disk.make_directories("/log")
    yield simulation
    simulation.close()


def test_records_of_one_decision_are_one_batch(simulation: Simulation) -> None:
    """A crash or a full disk between two batches would leave half a change in the log."""
    partition = LogPartition(simulation, max_message_bytes=10_000)
    records = [offset("g", "t", index, index) for index in range(500)]
    assert sum(len(key) + len(value or b"") for key, value in records) > 10_000
    assert shard_log_of(partition, simulation).append(records) is ErrorCode.NONE
    assert partition.batch_count == 1
    shard, _ = load(partition, simulation)
    assert offsets(shard, "g") == {("t", index): index for index in range(500)}


def test_independent_records_are_split_into_batches_that_the_topic_takes(simulation: Simulation) -> None:
    partition = LogPartition(simulation, max_message_bytes=2000)
    writer = new_shard(partition, simulation)
    writer.activate()
    records = [offset("g", "t", index, index) for index in range(500)]
    assert writer.write_each(records) is ErrorCode.NONE
    assert partition.batch_count > 10
    assert partition.log.segments[0].size_bytes > sum(len(key) for key, _ in records), "nothing is compressed"
    shard, _ = load(partition, simulation)
    assert offsets(shard, "g") == {("t", index): index for index in range(500)}


def test_one_record_that_is_too_large_keeps_all_out_with_an_error_that_clients_know(simulation: Simulation) -> None:
    partition = LogPartition(simulation, max_message_bytes=2000)
    noise = Random(1).randbytes(3000)  # what cannot be compressed
    records = [*(offset("g", "t", index, index) for index in range(50)), CoordinatorRecord(b"\0\2\0\1g", noise)]
    assert shard_log_of(partition, simulation).append(records) is ErrorCode.UNKNOWN_SERVER_ERROR
    assert partition.log.log_end_offset == 0


@pytest.mark.parametrize(("size_bytes", "builds"), [(7_000, 2), (9_000, 1)])
def test_records_far_over_the_limit_are_not_compressed(
    simulation: Simulation, monkeypatch: pytest.MonkeyPatch, size_bytes: int, builds: int
) -> None:
    """It would occupy the event loop for a second if they had 95 MB."""
    built = []

    def build(*arguments: Any, **named: Any) -> bytearray:
        built.append(arguments)
        return build_coordinator_batch(*arguments, **named)

    monkeypatch.setattr("odradek.coordinator.runtime.shard_log.build_coordinator_batch", build)
    partition = LogPartition(simulation, max_message_bytes=2000)
    noise = CoordinatorRecord(b"\0\2\0\1g", Random(1).randbytes(size_bytes))
    assert shard_log_of(partition, simulation).append([noise]) is ErrorCode.UNKNOWN_SERVER_ERROR
    assert len(built) == builds


def test_a_failed_disk_gives_not_coordinator(simulation: Simulation) -> None:
    partition = LogPartition(simulation)
    partition.error = OSError("broken")
    assert shard_log_of(partition, simulation).append([offset("g", "t", 0, 1)]) is ErrorCode.NOT_COORDINATOR


@pytest.fixture
def flushing_world() -> Iterator[GroupWorld]:
    world = GroupWorld(1, {"offsets.topic.num.partitions": "1", "log.flush.interval.messages": "1"})
    world.run(world.prepare())
    yield world
    world.close()


def test_with_flush_messages_reached_a_record_is_committed_when_it_is_on_the_disk(flushing_world: GroupWorld) -> None:
    world = flushing_world

    async def scenario() -> None:
        (shard,) = world.node.compose_serving().groups.shards()
        has_moved = asyncio.Event()
        shard.log.unwatch()
        shard.log.watch(lambda _: has_moved.set(), lambda: None)
        assert shard.log.append([offset("g", "t", 0, 1)]) is ErrorCode.NONE
        assert (shard.log.high_watermark, shard.log.log_end_offset) == (0, 1)
        await has_moved.wait()
        assert shard.log.high_watermark == 1

    world.run(scenario())


def test_a_flush_that_fails_ends_the_leadership(flushing_world: GroupWorld) -> None:
    world = flushing_world

    async def scenario() -> None:
        (shard,) = world.node.compose_serving().groups.shards()
        world.simulation.disk.sync_error = OSError("broken")
        commit = asyncio.ensure_future(world.commit(7))
        assert await commit is ErrorCode.NOT_COORDINATOR
        assert not shard.log.is_leader
        assert not shard.is_active
        world.simulation.disk.sync_error = None

    world.run(scenario())


def test_a_partition_that_does_not_lead_has_no_leader_log(simulation: Simulation) -> None:
    partition = LogPartition(simulation)
    shard_log = shard_log_of(partition, simulation)
    assert shard_log.is_leader
    partition.is_leader = False
    assert not shard_log.is_leader
    assert shard_log.name == "__consumer_offsets-0"


def test_a_batch_that_is_not_checked_is_stored_as_one_that_is(simulation: Simulation) -> None:
    stored = []
    for is_built_here in (False, True):
        directory = f"/log/{is_built_here}"
        simulation.disk.make_directories(directory)
        log = open_log(simulation.host, directory, LogConfig(is_compacted=True))
        now_ms = simulation.clock.now_ms()
        for records in ([offset("g", "t", 0, 1)], [offset("g", "t", index, 2) for index in range(100)]):
            batch = memoryview(build_coordinator_batch(records, now_ms))
            assert log.append(batch, 3, is_built_here=is_built_here).error is ErrorCode.NONE
        file = log.segments[0].file
        stored.append((log.log_end_offset, file.read_at(file.size(), 0)))
    assert stored[0] == stored[1]
    assert stored[0][0] == 101


def test_a_read_continues_from_a_log_start_that_moved(simulation: Simulation) -> None:
    """DeleteRecords may run between two reads."""
    partition = LogPartition(simulation)
    shard_log = shard_log_of(partition, simulation)
    for number in range(4):
        assert shard_log.append([offset("g", "t", number, number)]) is ErrorCode.NONE
    partition.log.advance_log_start_offset(2)
    read = simulation.loop.run_until_complete(shard_log.read(0, 4))
    assert read is not None
    assert [base_offset for base_offset, *_ in read_key_values(read, 1 << 20)] == [3, 4]


def test_a_read_past_the_log_end_fails(simulation: Simulation) -> None:
    """A load that ended early would activate a shard without the rest of its records."""
    shard_log = shard_log_of(LogPartition(simulation), simulation)
    assert shard_log.append([offset("g", "t", 0, 1)]) is ErrorCode.NONE
    with pytest.raises(OSError, match="OFFSET_OUT_OF_RANGE"):
        simulation.loop.run_until_complete(shard_log.read(5, 6))
