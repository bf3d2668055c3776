"""The life of shards on a simulated broker: topics that go while groups load, and what must be on the disk."""

import asyncio
from collections.abc import Iterator
from uuid import UUID

import pytest

from odradek.coordinator.groups.group_coordinator import FORGET_AGAIN_MS, OFFSETS_PER_SLICE
from odradek.coordinator.groups.group_records import CommittedOffset
from odradek.coordinator.runtime.shard import ShardState
from odradek.coordinator.runtime.timers import ShardTimers
from odradek.metadata.entities import TopicImage
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from odradek.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse, DeleteTopicState
from tests.coordinator.groups.committed_offsets import offset_commit_record
from tests.coordinator.groups.group_world import GROUP, TOPIC, GroupWorld

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
    monkeypatch.setattr("odradek.coordinator.runtime.loading.SLICE_RECORDS", 5)  # replaying outlasts the deletion

    async def scenario() -> None:
        await world.form()
        (shard,) = world.node.compose_serving().groups.shards()
        offset = CommittedOffset(1, -1, "", 0)
        shard.write_each([offset_commit_record("g", "t", index, offset) for index in range(3_000)])
        await world.restart()
        (orphan,) = world.node.compose_serving().groups.shards()
        for _ in range(30):
            await asyncio.sleep(0)  # the log is read by then, and its records are being replayed
        request = DeleteTopicsRequest(topics=[DeleteTopicState(name=OFFSETS_TOPIC)])
        await world.call(request, DeleteTopicsResponse, 6)
        assert world.node.compose_serving().groups._runtime._tasks, "the shard is still loading"
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
    (shard,) = world.node.compose_serving().groups.shards()
    assert shard.log.high_watermark == shard.log.log_end_offset
    world.lose_power()
    world.run(world.until_loaded())
    assert world.run(world.committed()) == -1


def test_offsets_of_deleted_topics_are_forgotten_in_slices(world: GroupWorld) -> None:
    async def scenario() -> None:
        (runtime_shard,) = world.node.compose_serving().groups.shards()
        shard = runtime_shard.machine
        topic_id, group_count, count = UUID(int=9), 40, OFFSETS_PER_SLICE // 4
        value = offset_commit_record("g", "t", 0, CommittedOffset(1, -1, "", 0, -1, topic_id)).value
        assert value is not None
        for group in range(group_count):
            for partition in range(count):
                shard.offsets.put(f"group-{group}", ("kept", "gone")[partition == 0], partition, value)
        shard.deleted_topics.append(TopicImage("gone", topic_id, (), False))
        turns = 0
        forgetting = asyncio.ensure_future(world.node.compose_serving().groups.forget_topics(shard))
        while not forgetting.done():
            turns += 1
            await asyncio.sleep(0)
        assert turns >= group_count // 4
        assert len(shard.offsets) == group_count * (count - 1)

    world.run(scenario())


def test_offsets_of_a_deleted_topic_are_not_those_of_a_new_one_of_its_name(
    world: GroupWorld, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Also if their tombstones cannot be written, which is tried again."""

    async def scenario() -> None:
        assert await world.commit(7) is ErrorCode.NONE
        (runtime_shard,) = world.node.compose_serving().groups.shards()
        shard = runtime_shard.machine
        with monkeypatch.context() as patched:
            patched.setattr(shard, "write_each", lambda _: ErrorCode.COORDINATOR_NOT_AVAILABLE)
            await world.call(DeleteTopicsRequest(topic_names=[TOPIC]), DeleteTopicsResponse, 4)
            await world.prepare()
            await world.sleep(1)
            assert len(shard.offsets) == 1
        for version in (1, 5, 8, 9, 10):
            answer = await world.fetch(version=version)
            topics = answer.groups[0].topics if version >= 8 else answer.topics
            assert [each.committed_offset for each in topics[0].partitions] == [-1], version
        everything = await world.fetch(version=9, everything=True)
        assert everything.groups[0].topics == []
        await world.sleep(FORGET_AGAIN_MS)
        assert len(shard.offsets) == 0
        assert await world.commit(8) is ErrorCode.NONE
        assert (await world.fetch(version=9)).groups[0].topics[0].partitions[0].committed_offset == 8

    world.run(scenario())
    assert "offsets of deleted topics stay" in caplog.text
    caplog.clear()


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
