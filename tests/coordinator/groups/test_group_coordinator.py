"""The life of shards on a simulated broker: topics that go while groups load, and what must be on the disk."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING
from uuid import UUID

import pytest

from odradek.coordinator.groups.group_coordinator import OFFSETS_PER_SLICE
from odradek.coordinator.groups.group_records import CommittedOffset
from odradek.coordinator.runtime.shard import ShardState
from odradek.coordinator.runtime.timers import ShardTimers
from odradek.metadata.entities import TopicImage
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from odradek.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse, DeleteTopicState
from tests.coordinator.groups.committed_offsets import offset_commit_record
from tests.coordinator.groups.group_world import GROUP, GroupWorld

if TYPE_CHECKING:
    from collections.abc import Iterator

OFFSETS_TOPIC = "__consumer_offsets"


@pytest.fixture
def world() -> Iterator[GroupWorld]:
    world = GroupWorld(1, {"offsets.topic.num.partitions": "1", "log.flush.interval.messages": "1"})
    world.run(world.prepare())
    yield world
    world.close()


def test_a_shard_whose_topic_goes_while_it_loads_is_not_begun(
    world: GroupWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("odradek.coordinator.runtime.loading.SLICE_RECORDS", 50)  # replaying outlasts the deletion

    async def scenario() -> None:
        await world.form()
        (shard,) = world.node._groups.shards()
        offset = CommittedOffset(1, -1, "", 0)
        shard.write_each([offset_commit_record("g", "t", index, offset) for index in range(30_000)])
        await world.restart()
        (orphan,) = world.node._groups.shards()
        for _ in range(30):
            await asyncio.sleep(0)  # the log is read by then, and its records are being replayed
        request = DeleteTopicsRequest(topics=[DeleteTopicState(name=OFFSETS_TOPIC)])
        await world.call(request, DeleteTopicsResponse, 6)
        assert world.node._groups._runtime._tasks, "the shard is still loading"
        await world.sleep(1000)
        assert orphan.state is ShardState.UNLOADED
        assert isinstance(orphan.timers, ShardTimers)
        assert len(orphan.timers) == 0, "no broker has these members"

    world.run(scenario())


def test_a_group_that_is_said_to_be_deleted_is_so_after_a_power_loss(world: GroupWorld) -> None:
    """`flush.messages` counts for this answer as for all others."""

    async def delete() -> None:
        assert await world.commit(7) is ErrorCode.NONE
        response = await world.call(DeleteGroupsRequest(groups_names=[GROUP]), DeleteGroupsResponse, 2)
        assert response.results[0].error_code == ErrorCode.NONE

    world.run(delete())
    (shard,) = world.node._groups.shards()
    assert shard.log.high_watermark == shard.log.log_end_offset
    world.lose_power()
    world.run(world.until_loaded())
    assert world.run(world.committed()) == -1


def test_offsets_of_deleted_topics_are_forgotten_in_slices(world: GroupWorld) -> None:
    async def scenario() -> None:
        (runtime_shard,) = world.node._groups.shards()
        shard = runtime_shard.machine
        topic_id, group_count, count = UUID(int=9), 40, OFFSETS_PER_SLICE // 4
        value = offset_commit_record("g", "t", 0, CommittedOffset(1, -1, "", 0, -1, topic_id)).value
        assert value is not None
        for group in range(group_count):
            for partition in range(count):
                shard.offsets.put(f"group-{group}", ("kept", "gone")[partition == 0], partition, value)
        shard.deleted_topics.append(TopicImage("gone", topic_id, (), False))
        turns = 0
        forgetting = asyncio.ensure_future(world.node._groups.forget_topics(shard))
        while not forgetting.done():
            turns += 1
            await asyncio.sleep(0)
        assert turns >= group_count // 4
        assert len(shard.offsets) == group_count * (count - 1)

    world.run(scenario())


def test_groups_are_served_once_the_log_of_their_topic_could_be_created(caplog: pytest.LogCaptureFixture) -> None:
    world = GroupWorld(1, {"offsets.topic.num.partitions": "1"})

    async def scenario() -> None:
        world.simulation.disk.capacity_bytes = 0
        await world.prepare()
        assert await world.commit(7) is not ErrorCode.NONE
        world.simulation.disk.capacity_bytes = None
        await world.sleep(2000)
        assert await world.commit(7) is ErrorCode.NONE
        assert await world.committed() == 7

    world.run(scenario())
    world.close()
    caplog.clear()
