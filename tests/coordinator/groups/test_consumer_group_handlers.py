"""The APIs of consumer groups on a simulated broker, through the wire format: what is refused before any rule is asked,
what is described, and what is left after a restart."""

import asyncio
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest

from odradek.coordinator import pattern_matching
from odradek.coordinator.pattern_matching import PatternMatching
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
)
from odradek.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from odradek.protocol.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from odradek.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from odradek.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from odradek.security.authorizer import ResourceType
from tests.coordinator.groups.group_world import GROUP, TOPIC, GroupWorld
from tests.security.authorizers import Forbids

JOIN: dict[str, Any] = {
    "group_id": GROUP,
    "member_id": "a",
    "member_epoch": 0,
    "rebalance_timeout_ms": 60_000,
    "subscribed_topic_names": [TOPIC],
    "topic_partitions": [],
}


class ConsumerWorld(GroupWorld):
    async def beat(self, version: int = 1, **fields: Any) -> ConsumerGroupHeartbeatResponse:
        request = ConsumerGroupHeartbeatRequest(**{"group_id": GROUP, "member_id": "a", **fields})
        return await self.call(request, ConsumerGroupHeartbeatResponse, version)

    async def describe(self, group_id: str = GROUP, version: int = 1) -> DescribedGroup:
        request = ConsumerGroupDescribeRequest(group_ids=[group_id], include_authorized_operations=True)
        return (await self.call(request, ConsumerGroupDescribeResponse, version)).groups[0]

    async def fetch_as(self, member_id: str | None, epoch: int) -> ErrorCode:
        topics = [OffsetFetchRequestTopics(topic_id=self.topic_id, partition_indexes=[0])]
        group = OffsetFetchRequestGroup(group_id=GROUP, member_id=member_id, member_epoch=epoch, topics=topics)
        response = await self.call(OffsetFetchRequest(groups=[group]), OffsetFetchResponse, 10)
        return ErrorCode(response.groups[0].error_code)


@pytest.fixture
def world() -> Iterator[ConsumerWorld]:
    world = ConsumerWorld(1, {"offsets.topic.num.partitions": "3"})
    world.run(world.prepare())
    yield world
    world.close()


@pytest.mark.parametrize("version", [0, 1])
def test_a_member_joins_is_described_and_leaves(world: ConsumerWorld, version: int) -> None:
    async def scenario() -> None:
        joined = await world.beat(version, **{**JOIN, "member_id": "" if version == 0 else "a"})
        assert joined.error_code == ErrorCode.NONE
        assert joined.member_id, "version 0 gets one"
        assert joined.assignment is not None
        (topic,) = joined.assignment.topic_partitions
        assert (topic.topic_id, topic.partitions) == (world.topic_id, [0, 1, 2, 3])
        group = await world.describe(version=version)
        assert (group.group_state, group.group_epoch, group.assignment_epoch) == ("Stable", 2, 2)
        assert group.assignor_name == "uniform"
        (member,) = group.members
        assert (member.member_id, member.member_epoch) == (joined.member_id, 2)
        assert member.subscribed_topic_names == [TOPIC]
        assert member.assignment.topic_partitions[0].topic_name == TOPIC
        assert member.target_assignment.topic_partitions[0].partitions == [0, 1, 2, 3]
        assert member.member_type == (1 if version == 1 else -1)
        assert group.authorized_operations != -(2**31)
        left = await world.beat(version, member_id=joined.member_id, member_epoch=-1)
        assert left.member_epoch == -1
        assert (await world.describe()).group_state == "Empty"

    world.run(scenario())


INVALID = {
    "no member id": {**JOIN, "member_id": " "},
    "no group id": {**JOIN, "group_id": ""},
    "no instance id": {**JOIN, "instance_id": ""},
    "no rack": {**JOIN, "rack_id": ""},
    "no timeout": {**JOIN, "rebalance_timeout_ms": -1},
    "unknown ownership": {**JOIN, "topic_partitions": None},
    "owns something": {**JOIN, "topic_partitions": [TopicPartitions(topic_id=UUID(int=1), partitions=[0])]},
    "no subscription": {**JOIN, "subscribed_topic_names": None},
    "leaves without its place": {"member_epoch": -2},
    "no epoch at all": {"member_epoch": -3},
}


@pytest.mark.parametrize("case", INVALID)
def test_what_makes_no_sense_is_refused(world: ConsumerWorld, case: str) -> None:
    response = world.run(world.beat(**INVALID[case]))
    assert response.error_code == ErrorCode.INVALID_REQUEST
    assert response.error_message
    assert world.run(world.describe()).error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_an_assignor_that_is_not_offered_is_refused(world: ConsumerWorld) -> None:
    response = world.run(world.beat(**JOIN, server_assignor="mine"))
    assert response.error_code == ErrorCode.UNSUPPORTED_ASSIGNOR
    assert "uniform, range" in (response.error_message or "")


@pytest.mark.parametrize("pattern", ["[", "(?=lookahead)", "x" * 5000])
def test_a_pattern_that_is_none_is_refused(world: ConsumerWorld, pattern: str) -> None:
    response = world.run(world.beat(**{**JOIN, "subscribed_topic_regex": pattern}))
    assert response.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION
    assert world.run(world.describe()).error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_new_patterns_wait_for_each_other_and_few_wait(world: ConsumerWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client may bring patterns that take long on each of its connections."""
    monkeypatch.setattr(pattern_matching, "MOST_WAITING_PATTERNS", 3)
    world.node.compose_serving().dispatcher._services.groups.pattern_matching = PatternMatching(
        world.simulation.host.workers
    )

    async def beat(number: int) -> ErrorCode:
        member = {**JOIN, "group_id": f"g{number}", "subscribed_topic_regex": f"t{number}"}
        return ErrorCode((await world.beat(**member)).error_code)

    async def scenario() -> list[ErrorCode]:
        return await asyncio.gather(*(beat(number) for number in range(6)))

    answers = world.run(scenario())
    assert answers == [ErrorCode.NONE] * 4 + [ErrorCode.COORDINATOR_NOT_AVAILABLE] * 2
    assert world.run(beat(5)) is ErrorCode.NONE


def test_a_request_whose_pattern_waits_is_answered_when_the_broker_stops(world: ConsumerWorld) -> None:
    """A request without an answer would keep its connection open for as long as a stop waits at most."""

    async def scenario() -> ConsumerGroupHeartbeatResponse:
        groups = world.node.compose_serving().dispatcher._services.groups
        is_matching = asyncio.Event()

        class HangingWorkers:
            async def run(self, *arguments: object) -> None:
                is_matching.set()
                await asyncio.Event().wait()

        groups.pattern_matching = PatternMatching(HangingWorkers())  # type: ignore[arg-type]  # a stand-in for tests
        beat = asyncio.ensure_future(world.beat(**{**JOIN, "subscribed_topic_regex": "t.*"}))
        await is_matching.wait()
        groups.stop()
        return await beat

    assert world.run(scenario()).error_code == ErrorCode.NOT_COORDINATOR


def test_a_pattern_gets_its_partitions_with_the_first_answer(world: ConsumerWorld) -> None:
    response = world.run(
        world.beat(**{**JOIN, "subscribed_topic_names": None, "subscribed_topic_regex": f"{TOPIC[:2]}.*"})
    )
    assert response.assignment is not None
    assert [topic.topic_id for topic in response.assignment.topic_partitions] == [world.topic_id]
    assert world.run(world.describe()).members[0].subscribed_topic_regex == f"{TOPIC[:2]}.*"


def test_without_the_protocol_the_apis_are_not_served() -> None:
    world = ConsumerWorld(1, {"group.coordinator.rebalance.protocols": "classic"})
    world.run(world.prepare())
    assert world.run(world.beat(**JOIN)).error_code == ErrorCode.UNSUPPORTED_VERSION
    assert world.run(world.describe()).error_code == ErrorCode.UNSUPPORTED_VERSION
    world.close()


def test_each_api_describes_its_own_kind_of_group(world: ConsumerWorld) -> None:
    async def scenario() -> None:
        await world.beat(**JOIN)
        request = DescribeGroupsRequest(groups=[GROUP])
        (classic,) = (await world.call(request, DescribeGroupsResponse, 6)).groups
        assert (classic.error_code, classic.group_state) == (ErrorCode.GROUP_ID_NOT_FOUND, "Dead")
        assert (await world.call(request, DescribeGroupsResponse, 5)).groups[0].error_code == ErrorCode.NONE
        assert (await world.describe("other")).error_code == ErrorCode.GROUP_ID_NOT_FOUND
        for kinds, states, count in ((["consumer"], ["stable"], 1), (["classic"], [], 0), ([], ["Empty"], 0)):
            request_ = ListGroupsRequest(types_filter=kinds, states_filter=states)
            listed = (await world.call(request_, ListGroupsResponse, 5)).groups
            assert [(each.group_id, each.group_type, each.protocol_type) for each in listed] == (
                [(GROUP, "consumer", "consumer")] * count
            )

    world.run(scenario())


def test_offsets_are_read_and_written_by_member_and_epoch(world: ConsumerWorld) -> None:
    async def scenario() -> None:
        await world.beat(**JOIN)
        assert await world.commit(5, member_id="a", generation=2) is ErrorCode.NONE
        assert await world.commit(6, member_id="a", generation=3) is ErrorCode.STALE_MEMBER_EPOCH
        assert await world.commit(6, member_id="b", generation=2) is ErrorCode.UNKNOWN_MEMBER_ID
        assert await world.commit(6, member_id="a", generation=2, version=8) is ErrorCode.UNSUPPORTED_VERSION
        assert await world.fetch_as("a", 2) is ErrorCode.NONE
        assert await world.fetch_as(None, -1) is ErrorCode.NONE
        assert await world.fetch_as("a", 1) is ErrorCode.STALE_MEMBER_EPOCH
        assert await world.fetch_as("b", 2) is ErrorCode.UNKNOWN_MEMBER_ID
        assert await world.committed() == 5

    world.run(scenario())


def test_a_group_is_the_same_after_a_restart(world: ConsumerWorld) -> None:
    async def scenario() -> None:
        await world.beat(**JOIN)
        await world.beat(**{**JOIN, "member_id": "b", "subscribed_topic_regex": "t.*"})
        await world.sleep(1000)
        kept = await world.beat(member_epoch=2)
        assert kept.assignment is not None
        before = await world.describe()
        assert before.group_state == "Reconciling"
        await world.restart()
        await world.until_loaded()
        after = await world.describe()
        assert {member.member_id: member for member in after.members} == {
            member.member_id: member for member in before.members
        }
        assert (after.group_epoch, after.assignment_epoch) == (before.group_epoch, before.assignment_epoch)
        assert (await world.beat(member_epoch=2, topic_partitions=kept.assignment.topic_partitions)).member_epoch == 3

    world.run(scenario())


def test_what_may_not_be_seen_is_not_shown(world: ConsumerWorld) -> None:
    services = world.node.compose_serving().dispatcher._services
    everybody = services.authorizer
    world.run(world.beat(**JOIN))
    services.authorizer = Forbids((ResourceType.TOPIC, TOPIC))
    assert world.run(world.beat(**{**JOIN, "member_id": "b"})).error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    described = world.run(world.describe())
    assert (described.error_code, described.members) == (ErrorCode.TOPIC_AUTHORIZATION_FAILED, [])
    services.authorizer = Forbids((ResourceType.GROUP, GROUP))
    assert world.run(world.beat(**JOIN)).error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED
    assert world.run(world.describe()).error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED
    services.authorizer = everybody
    assert len(world.run(world.describe()).members) == 1
