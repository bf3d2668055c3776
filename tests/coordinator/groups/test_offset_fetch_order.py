"""OffsetFetch answers groups, topics and partitions in the order of the request, whatever their outcome."""

from collections.abc import Iterator
from uuid import UUID

import pytest

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from odradek.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from odradek.security.authorizer import ResourceType
from tests.coordinator.groups.group_world import GROUP, TOPIC, GroupWorld
from tests.coordinator.groups.test_group_authorization import forbid

FORBIDDEN, UNKNOWN, EMPTY = "forbidden", "a-topic-that-does-not-exist", "another"
REQUESTED = [UNKNOWN, TOPIC, FORBIDDEN, EMPTY]
INDEXES = [3, 0, 99, 1]


@pytest.fixture
def world() -> Iterator[GroupWorld]:
    world = GroupWorld(1, {"offsets.topic.num.partitions": "1"})
    world.run(prepare(world))
    yield world
    world.close()


async def prepare(world: GroupWorld) -> None:
    await world.prepare()
    topics = [CreatableTopic(name=name, num_partitions=4, replication_factor=1) for name in (FORBIDDEN, EMPTY)]
    await world.call(CreateTopicsRequest(topics=topics), CreateTopicsResponse, 7)
    assert await world.commit(7) is ErrorCode.NONE


@pytest.mark.parametrize("version", [1, 5, 7])
def test_of_one_group(world: GroupWorld, version: int) -> None:
    forbid(world, ResourceType.TOPIC, FORBIDDEN)
    topics = [OffsetFetchRequestTopic(name=name, partition_indexes=INDEXES) for name in REQUESTED]
    request = OffsetFetchRequest(group_id=GROUP, topics=topics)
    response = world.run(world.call(request, OffsetFetchResponse, version))
    assert [topic.name for topic in response.topics] == REQUESTED
    assert all([each.partition_index for each in topic.partitions] == INDEXES for topic in response.topics)


@pytest.mark.parametrize("version", [8, 9, 10])
def test_of_several_groups(world: GroupWorld, version: int) -> None:
    forbid(world, ResourceType.TOPIC, FORBIDDEN)
    known = world.node.compose_serving().dispatcher._services.image.topics
    ids = [known[name].topic_id if name in known else UUID(int=7) for name in REQUESTED]
    groups = ["z", GROUP, "a"]
    topics = [
        OffsetFetchRequestTopics(name=name, topic_id=topic_id, partition_indexes=INDEXES)
        for name, topic_id in zip(REQUESTED, ids, strict=True)
    ]
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=each, topics=topics) for each in groups])
    response = world.run(world.call(request, OffsetFetchResponse, version))
    assert [group.group_id for group in response.groups] == groups
    for group in response.groups:
        if version >= 10:
            assert [topic.topic_id for topic in group.topics] == ids
        else:
            assert [topic.name for topic in group.topics] == REQUESTED
        assert all([each.partition_index for each in topic.partitions] == INDEXES for topic in group.topics)
