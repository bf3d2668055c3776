"""A request may name the same thing as often as it fits into a frame: each time is answered, as in Kafka, but the work
and the bytes of the answer are bounded."""

from collections.abc import Iterator
from typing import Any

import pytest

from odradek.configuration.config_descriptions import describe_topic_configs
from odradek.configuration.config_types import ConfigResourceType
from odradek.handlers import describe_configs, repeated_names
from odradek.handlers.cooperative_scheduling import ELEMENTS_PER_TURN
from odradek.handlers.repeated_names import answer_each, approximate_size_bytes, distinct
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from odradek.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from odradek.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from odradek.protocol.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from odradek.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    TopicRequest,
)
from odradek.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from odradek.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from tests.coordinator.groups.group_world import GROUP, TOPIC, GroupWorld

TIMES = 2 * ELEMENTS_PER_TURN + 200  # more than are handled in one turn
REPEATED_BYTES = 5_000


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[GroupWorld]:
    monkeypatch.setattr(repeated_names, "MOST_REPEATED_BYTES", REPEATED_BYTES)
    world = GroupWorld(1, {"offsets.topic.num.partitions": "3"})
    world.run(world.prepare())
    yield world
    world.close()


def check(answers: list[Any]) -> None:
    """Every name is answered; the first two times in full, and beyond the bound with an error."""
    assert len(answers) == TIMES
    assert answers[0] == answers[1]
    assert answers[1].error_code != ErrorCode.INVALID_REQUEST
    assert answers[-1].error_code == ErrorCode.INVALID_REQUEST
    complete = [each for each in answers if each.error_code != ErrorCode.INVALID_REQUEST]
    assert sum(map(approximate_size_bytes, complete[1:])) <= 1.2 * REPEATED_BYTES


def topic_resource(name: str = TOPIC) -> DescribeConfigsResource:
    return DescribeConfigsResource(resource_type=ConfigResourceType.TOPIC, resource_name=name, configuration_keys=None)


def test_settings_are_described_once(world: GroupWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    described = []

    def count(*arguments: Any) -> Any:
        described.append(arguments)
        return describe_topic_configs(*arguments)

    monkeypatch.setattr("odradek.handlers.describe_configs.describe_topic_configs", count)
    request = DescribeConfigsRequest(resources=[topic_resource()] * TIMES)
    check(world.run(world.call(request, DescribeConfigsResponse, 4)).results)
    assert len(described) == 1


def test_the_settings_that_a_resource_is_asked_for_are_a_set(
    world: GroupWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def remember(overrides: Any, config: Any, names: Any, inherited: Any) -> Any:
        asked.append(names)
        return describe_topic_configs(overrides, config, names, inherited)

    monkeypatch.setattr("odradek.handlers.describe_configs.describe_topic_configs", remember)
    resource = topic_resource()
    resource.configuration_keys = ["retention.ms"] * 3
    answer = world.run(world.call(DescribeConfigsRequest(resources=[resource]), DescribeConfigsResponse, 4))
    assert [each.name for each in answer.results[0].configs] == ["retention.ms"]
    assert asked == [frozenset(["retention.ms"])]


def test_settings_of_distinct_resources_are_bounded(world: GroupWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """A group is described whether it exists or not."""
    monkeypatch.setattr(describe_configs, "MOST_DESCRIBED_BYTES", 20_000)
    request = DescribeConfigsRequest(
        resources=[
            DescribeConfigsResource(
                resource_type=ConfigResourceType.GROUP, resource_name=f"g{number}", configuration_keys=None
            )
            for number in range(TIMES)
        ]
    )
    results = world.run(world.call(request, DescribeConfigsResponse, 4)).results
    assert [each.resource_name for each in results] == [f"g{number}" for number in range(TIMES)]
    assert results[1].error_code == ErrorCode.NONE
    assert (results[-1].error_code, results[-1].configs) == (ErrorCode.INVALID_REQUEST, [])
    assert sum(map(approximate_size_bytes, (each.configs for each in results))) < 30_000


def test_a_classic_group_is_described_once(world: GroupWorld) -> None:
    world.run(world.form())
    check(world.run(world.call(DescribeGroupsRequest(groups=[GROUP] * TIMES), DescribeGroupsResponse, 6)).groups)


def test_a_consumer_group_is_described_once(world: GroupWorld) -> None:
    async def scenario() -> list[Any]:
        beat = ConsumerGroupHeartbeatRequest(
            group_id=GROUP,
            member_id="a",
            member_epoch=0,
            rebalance_timeout_ms=60_000,
            subscribed_topic_names=[TOPIC],
            topic_partitions=[],
        )
        await world.call(beat, ConsumerGroupHeartbeatResponse, 1)
        request = ConsumerGroupDescribeRequest(group_ids=[GROUP] * TIMES)
        return (await world.call(request, ConsumerGroupDescribeResponse, 1)).groups

    check(world.run(scenario()))


def test_producers_of_a_partition_are_described_once(world: GroupWorld) -> None:
    topics = [TopicRequest(name=TOPIC, partition_indexes=[0, 0]) for _ in range(TIMES // 2)]
    answer = world.run(world.call(DescribeProducersRequest(topics=topics), DescribeProducersResponse, 0))
    assert [len(topic.partitions) for topic in answer.topics] == [2] * (TIMES // 2)
    check([partition for topic in answer.topics for partition in topic.partitions])


def test_a_transaction_is_described_once(world: GroupWorld) -> None:
    request = DescribeTransactionsRequest(transactional_ids=["transactional-id"] * TIMES)
    check(world.run(world.call(request, DescribeTransactionsResponse, 0)).transaction_states)


def test_all_offsets_of_a_group_are_answered_as_often_as_fits(world: GroupWorld) -> None:
    async def scenario() -> list[Any]:
        assert await world.commit(1, metadata="m" * 100) is ErrorCode.NONE
        # The members differ: a group of the classic protocol does not look at them.
        groups = [
            OffsetFetchRequestGroup(group_id=GROUP, member_id=str(number), member_epoch=number, topics=None)
            for number in range(TIMES)
        ]
        return (await world.call(OffsetFetchRequest(groups=groups), OffsetFetchResponse, 10)).groups

    check(world.run(scenario()))


@pytest.mark.parametrize("is_in_one_topic", [True, False])
def test_the_offset_of_a_partition_is_answered_as_often_as_fits(world: GroupWorld, is_in_one_topic: bool) -> None:
    async def scenario() -> list[Any]:
        assert await world.commit(1, metadata="m" * 100) is ErrorCode.NONE
        counts = [TIMES] if is_in_one_topic else [1] * TIMES
        topics = [OffsetFetchRequestTopics(name=TOPIC, partition_indexes=[0] * count) for count in counts]
        group = OffsetFetchRequestGroup(group_id=GROUP, topics=topics)
        answer = await world.call(OffsetFetchRequest(groups=[group]), OffsetFetchResponse, 8)
        return [partition for topic in answer.groups[0].topics for partition in topic.partitions]

    check(world.run(scenario()))


def test_names_that_come_once_get_their_answers_in_order() -> None:
    assert answer_each(["b", "a"], ["B", "A"], str) == ["B", "A"]
    assert list(distinct(["b", "a", "b"])) == ["b", "a"]


def test_a_large_answer_that_no_longer_fits_leaves_room_for_a_small_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repeated_names, "MOST_REPEATED_BYTES", 100)
    names = ["large", "small", "large", "small", "large"]
    assert answer_each(names, ["x" * 200, "s"], lambda name: f"no {name}") == [
        "x" * 200,
        "s",
        "no large",
        "s",
        "no large",
    ]
