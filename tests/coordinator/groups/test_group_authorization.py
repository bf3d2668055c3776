"""A client that may not use a group or a topic gets the error that its API has for this, and changes nothing."""

from collections.abc import Iterator

import pytest

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.join_group import JoinGroupResponse
from odradek.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from odradek.security.authorizer import AllowAll, ResourceType
from tests.coordinator.groups.group_world import GROUP, TOPIC, GroupWorld
from tests.security.authorizers import Forbids


@pytest.fixture
def world() -> Iterator[GroupWorld]:
    world = GroupWorld(1, {"offsets.topic.num.partitions": "1"})
    world.run(world.prepare())
    yield world
    world.close()


def forbid(world: GroupWorld, resource_type: ResourceType, name: str) -> None:
    world.node.compose_serving().dispatcher._services.authorizer = Forbids((resource_type, name))


def allow(world: GroupWorld) -> None:
    world.node.compose_serving().dispatcher._services.authorizer = AllowAll()


async def form_and_commit(world: GroupWorld) -> JoinGroupResponse:
    member = await world.form()
    assert await world.commit(7, member_id=member.member_id, generation=1) is ErrorCode.NONE
    return member


def test_a_forbidden_group_can_be_neither_joined_nor_read_nor_changed(world: GroupWorld) -> None:
    async def scenario() -> None:
        member = await form_and_commit(world)
        forbid(world, ResourceType.GROUP, GROUP)
        refused = ErrorCode.GROUP_AUTHORIZATION_FAILED
        assert (await world.find()).coordinators[0].error_code == refused
        assert (await world.join()).error_code == refused
        assert (await world.sync(member.member_id, 1)).error_code == refused
        assert await world.heartbeat(member.member_id, 1) is refused
        assert await world.commit(9, member_id=member.member_id, generation=1) is refused
        assert (await world.fetch()).groups[0].error_code == refused
        leave = LeaveGroupRequest(group_id=GROUP, members=[MemberIdentity(member_id=member.member_id)])
        assert (await world.call(leave, LeaveGroupResponse, 5)).error_code == refused
        allow(world)
        assert await world.heartbeat(member.member_id, 1) is ErrorCode.NONE
        assert await world.committed() == 7

    world.run(scenario())


def test_offsets_of_a_forbidden_topic_can_be_neither_read_nor_changed(world: GroupWorld) -> None:
    async def scenario() -> None:
        member = await form_and_commit(world)
        forbid(world, ResourceType.TOPIC, TOPIC)
        refused = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        assert await world.commit(9, member_id=member.member_id, generation=1) is refused
        (topic,) = (await world.fetch(version=9)).groups[0].topics
        assert topic.partitions[0].error_code == refused
        assert not (await world.fetch(version=9, everything=True)).groups[0].topics
        allow(world)
        assert await world.heartbeat(member.member_id, 1) is ErrorCode.NONE
        assert await world.committed() == 7

    world.run(scenario())


@pytest.mark.parametrize("version", [3, 4, 6])
def test_looking_for_a_forbidden_group_does_not_create_the_internal_topic(version: int) -> None:
    world = GroupWorld(1, {"offsets.topic.num.partitions": "1"})
    try:
        forbid(world, ResourceType.GROUP, GROUP)
        found = world.run(world.find(version))
        error = found.coordinators[0].error_code if version >= 4 else found.error_code
        assert error == ErrorCode.GROUP_AUTHORIZATION_FAILED
        assert "__consumer_offsets" not in world.node.compose_serving().dispatcher._services.image.topics
        allow(world)
        found = world.run(world.find(version))
        assert (found.coordinators[0].error_code if version >= 4 else found.error_code) == ErrorCode.NONE
        assert "__consumer_offsets" in world.node.compose_serving().dispatcher._services.image.topics
    finally:
        world.close()
