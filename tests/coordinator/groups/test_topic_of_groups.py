"""The topic of groups: made by the first search, written by the coordinator alone, deleted, grown."""

import pytest

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from odradek.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse, DeleteTopicState
from odradek.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from odradek.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from odradek.protocol.records import Record, build_batch
from tests.coordinator.groups.group_world import PARTITION_COUNT, GroupWorld

OFFSETS_TOPIC = "__consumer_offsets"


def test_the_first_search_makes_the_topic(world: GroupWorld) -> None:
    request = MetadataRequest(topics=[MetadataRequestTopic(name=OFFSETS_TOPIC)], allow_auto_topic_creation=False)
    (topic,) = world.run(world.call(request, MetadataResponse, 9)).topics
    assert topic.is_internal
    assert len(topic.partitions) == PARTITION_COUNT


def test_only_the_coordinator_writes_to_the_topic_of_groups(world: GroupWorld) -> None:
    batch = bytes(build_batch([Record(0, 0, b"key", b"value")]))
    partition = PartitionProduceData(index=0, records=memoryview(batch))
    request = ProduceRequest(
        acks=-1, timeout_ms=1000, topic_data=[TopicProduceData(name=OFFSETS_TOPIC, partition_data=[partition])]
    )
    response = world.run(world.call(request, ProduceResponse, 9))
    assert response.responses[0].partition_responses[0].error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


def test_the_internal_topic_can_be_deleted_and_created_again(world: GroupWorld) -> None:
    async def scenario() -> None:
        member = await world.form()
        request = DeleteTopicsRequest(topics=[DeleteTopicState(name=OFFSETS_TOPIC)])
        await world.call(request, DeleteTopicsResponse, 6)
        assert await world.heartbeat(member.member_id, 1) is ErrorCode.NOT_COORDINATOR
        await world.find()
        assert await world.heartbeat(member.member_id, 1) is ErrorCode.UNKNOWN_MEMBER_ID

    world.run(scenario())


def test_groups_stay_where_they_are_when_their_topic_grows(world: GroupWorld) -> None:
    async def scenario() -> None:
        await world.commit(7)
        request = CreatePartitionsRequest(
            topics=[CreatePartitionsTopic(name=OFFSETS_TOPIC, count=50, assignments=None)]
        )
        response = await world.call(request, CreatePartitionsResponse, 3)
        assert response.results[0].error_code == ErrorCode.NONE
        assert await world.committed() == 7

    world.run(scenario())


@pytest.mark.parametrize("name", [OFFSETS_TOPIC, "__transaction_state"])
def test_asking_for_the_topic_of_a_coordinator_makes_it_as_it_must_be(name: str) -> None:
    numbers = ("offsets.topic.num.partitions", "transaction.state.log.num.partitions")
    world = GroupWorld(1, {"auto.create.topics.enable": "true", **dict.fromkeys(numbers, str(PARTITION_COUNT))})
    request = MetadataRequest(topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=True)
    (topic,) = world.run(world.call(request, MetadataResponse, 9)).topics
    assert (topic.error_code, len(topic.partitions)) == (ErrorCode.NONE, PARTITION_COUNT)
    world.close()
