"""The group APIs on a simulated broker: every version, virtual time, restarts and power losses."""

import asyncio
from functools import partial
from typing import Any
from uuid import UUID

import pytest

from odradek.coordinator.runtime import runtime
from odradek.coordinator.runtime.loading import replay_log
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from odradek.protocol.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from odradek.protocol.messages.join_group import JoinGroupRequest
from odradek.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from odradek.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from odradek.protocol.messages.offset_commit import OffsetCommitRequest
from odradek.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)
from odradek.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponseTopics
from odradek.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from odradek.protocol.schema import Request
from tests.coordinator.groups.group_world import GROUP, TOPIC, GroupWorld
from tests.wire import encode_request


def versions(request: type[Request]) -> range:
    first, last = request.versions
    return range(first, last + 1)


@pytest.mark.parametrize("version", versions(FindCoordinatorRequest))
def test_the_coordinator_is_this_broker(world: GroupWorld, version: int) -> None:
    response = world.run(world.find(version))
    found = response.coordinators[0] if version >= 4 else response
    assert (found.error_code, found.node_id, found.host, found.port) == (ErrorCode.NONE, 0, "simulated", 9092)


def test_a_coordinator_of_another_kind_is_refused(world: GroupWorld) -> None:
    for key_type in (2, 9):
        request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=["x"])
        response = world.run(world.call(request, FindCoordinatorResponse, 6))
        assert response.coordinators[0].error_code == ErrorCode.INVALID_REQUEST


def test_a_member_id_begins_with_a_part_of_a_long_client_id(world: GroupWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is kept for a session timeout, and every group of the client may keep many."""
    monkeypatch.setattr("tests.simulation.world.encode_request", partial(encode_request, client_id="c" * 30_000))
    answer = world.run(world.join())
    assert answer.error_code == ErrorCode.MEMBER_ID_REQUIRED
    assert answer.member_id.startswith("c" * 255 + "-")
    assert len(answer.member_id) == 255 + 1 + 36


@pytest.mark.parametrize("version", versions(OffsetCommitRequest))
def test_what_was_committed_is_fetched(world: GroupWorld, version: int) -> None:
    async def scenario() -> None:
        assert await world.commit(42, metadata="note", version=version) is ErrorCode.NONE
        for fetch_version in versions(OffsetFetchRequest):
            response = await world.fetch(version=fetch_version)
            topic = response.groups[0].topics[0] if fetch_version >= 8 else response.topics[0]
            (partition,) = topic.partitions
            assert (partition.committed_offset, partition.metadata) == (42, "note")
            if fetch_version >= 5 and version >= 6:
                assert partition.committed_leader_epoch == 2

    world.run(scenario())


def test_all_offsets_of_a_group_are_fetched_at_once(world: GroupWorld) -> None:
    async def scenario() -> None:
        await world.commit(1, partition=1)
        await world.commit(3, partition=3)
        for version in range(2, 11):
            response = await world.fetch(version=version, everything=True)
            (topic,) = response.groups[0].topics if version >= 8 else response.topics
            assert {(each.partition_index, each.committed_offset) for each in topic.partitions} == {(1, 1), (3, 3)}
            if isinstance(topic, OffsetFetchResponseTopics) and version >= 10:
                assert topic.topic_id == world.topic_id
            else:
                assert topic.name == TOPIC

    world.run(scenario())


def test_a_partition_without_an_offset_has_none(world: GroupWorld) -> None:
    async def scenario() -> None:
        (partition,) = (await world.fetch()).groups[0].topics[0].partitions
        assert (partition.committed_offset, partition.metadata, partition.error_code) == (-1, "", ErrorCode.NONE)

    world.run(scenario())


def test_offsets_of_what_does_not_exist_are_refused(world: GroupWorld) -> None:
    async def scenario() -> None:
        assert await world.commit(1, partition=4) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert await world.commit(1, partition=-1) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert await world.commit(1, name="missing") is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert await world.commit(1, topic_id=UUID(int=9), version=10) is ErrorCode.UNKNOWN_TOPIC_ID
        assert await world.commit(1, metadata="x" * 4097) is ErrorCode.OFFSET_METADATA_TOO_LARGE
        assert not (await world.fetch(everything=True)).groups[0].topics

    world.run(scenario())


def test_offsets_survive_a_restart_and_a_group_goes_on(world: GroupWorld) -> None:
    async def scenario() -> None:
        member = await world.form()
        await world.commit(7, member_id=member.member_id, generation=1)
        await world.restart()
        await world.until_loaded()
        assert await world.committed() == 7
        assert await world.heartbeat(member.member_id, 1) is ErrorCode.NONE
        assert (await world.sync(member.member_id, 1)).assignment == b"all"

    world.run(scenario())


def test_a_restart_in_the_middle_of_a_rebalance_is_survived(world: GroupWorld) -> None:
    async def scenario() -> None:
        member = await world.form()
        second = await world.join()
        waiting = asyncio.ensure_future(world.join(second.member_id))
        await world.sleep(100)
        await world.restart()
        assert (await waiting).error_code == ErrorCode.NOT_COORDINATOR
        await world.until_loaded()
        assert await world.heartbeat(member.member_id, 1) is ErrorCode.NONE
        # The id of the new member was never stored, so it must join without one.
        assert (await world.join(second.member_id)).error_code == ErrorCode.UNKNOWN_MEMBER_ID
        again = asyncio.ensure_future(world.join_new())
        await world.sleep(100)
        assert await world.heartbeat(member.member_id, 1) is ErrorCode.REBALANCE_IN_PROGRESS
        rejoined = await world.join(member.member_id)
        assert rejoined.generation_id == (await again).generation_id == 2

    world.run(scenario())


@pytest.mark.parametrize("version", versions(JoinGroupRequest))
def test_a_group_forms_in_every_version(world: GroupWorld, version: int) -> None:
    async def scenario() -> None:
        join = world.join_new if version >= 4 else world.join
        member = await join(version=version)
        assert (member.error_code, member.generation_id, member.leader) == (ErrorCode.NONE, 1, member.member_id)
        assert member.member_id.startswith("wire-")
        synced = await world.sync(member.member_id, 1, {member.member_id: b"all"}, version=min(version, 5))
        assert synced.assignment == b"all"

    world.run(scenario())


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"group_id": ""}, ErrorCode.INVALID_GROUP_ID),
        ({"session_timeout_ms": 5_999}, ErrorCode.INVALID_SESSION_TIMEOUT),
        ({"session_timeout_ms": 1_800_001}, ErrorCode.INVALID_SESSION_TIMEOUT),
        ({"protocols": []}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocol_type": ""}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
    ],
)
@pytest.mark.parametrize("version", [0, 6, 7, 9])
def test_a_join_that_makes_no_sense_is_refused(
    world: GroupWorld, fields: dict[str, Any], error: ErrorCode, version: int
) -> None:
    assert world.run(world.join(version=version, **fields)).error_code == error


def test_a_sync_without_its_protocol_is_refused(world: GroupWorld) -> None:
    request = SyncGroupRequest(group_id=GROUP, generation_id=1, member_id="m")
    answers = {v: world.run(world.call(request, SyncGroupResponse, v)).error_code for v in (4, 5)}
    assert answers == {4: ErrorCode.UNKNOWN_MEMBER_ID, 5: ErrorCode.INCONSISTENT_GROUP_PROTOCOL}


@pytest.mark.parametrize("version", versions(LeaveGroupRequest))
def test_a_member_leaves_in_every_version(world: GroupWorld, version: int) -> None:
    async def scenario() -> None:
        member = await world.form()
        for expected in (ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID):
            identity = MemberIdentity(member_id=member.member_id)
            request = LeaveGroupRequest(group_id=GROUP, member_id=member.member_id, members=[identity])
            response = await world.call(request, LeaveGroupResponse, version)
            assert (response.members[0].error_code if version >= 3 else response.error_code) == expected

    world.run(scenario())


@pytest.mark.parametrize("version", versions(DescribeGroupsRequest))
def test_a_group_is_described(world: GroupWorld, version: int) -> None:
    async def scenario() -> None:
        member = await world.form()
        request = DescribeGroupsRequest(groups=[GROUP, "missing"], include_authorized_operations=True)
        known, missing = (await world.call(request, DescribeGroupsResponse, version)).groups
        assert (known.group_state, known.protocol_type, known.protocol_data) == ("Stable", "consumer", "range")
        assert [each.member_id for each in known.members] == [member.member_id]
        assert (known.members[0].client_host, known.members[0].member_assignment) == ("/simulated", b"all")
        if version >= 3:
            assert known.authorized_operations == 1 << 3 | 1 << 6 | 1 << 8 | 1 << 10 | 1 << 11
        assert missing.group_state == "Dead"
        assert missing.error_code == (ErrorCode.GROUP_ID_NOT_FOUND if version >= 6 else ErrorCode.NONE)

    world.run(scenario())


def test_groups_are_listed_by_state_and_kind(world: GroupWorld) -> None:
    async def listed(states: list[str], kinds: list[str]) -> list[str]:
        request = ListGroupsRequest(states_filter=states, types_filter=kinds)
        return [group.group_id for group in (await world.call(request, ListGroupsResponse, 5)).groups]

    async def scenario() -> None:
        await world.form()
        assert await listed([], []) == [GROUP]
        assert await listed([" stable"], ["Classic"]) == [GROUP]
        assert await listed(["Empty", "Dead"], []) == []
        assert await listed([], ["consumer"]) == []
        assert await listed([], ["nonsense"]) == []

    world.run(scenario())


def test_only_an_empty_group_is_deleted(world: GroupWorld) -> None:
    async def delete(*names: str) -> list[int]:
        response = await world.call(DeleteGroupsRequest(groups_names=list(names)), DeleteGroupsResponse, 2)
        return [result.error_code for result in response.results]

    async def scenario() -> None:
        member = await world.form()
        await world.commit(7, member_id=member.member_id, generation=1)
        assert await delete(GROUP, GROUP, "missing") == [ErrorCode.NON_EMPTY_GROUP, ErrorCode.GROUP_ID_NOT_FOUND]
        request = LeaveGroupRequest(group_id=GROUP, members=[MemberIdentity(member_id=member.member_id)])
        await world.call(request, LeaveGroupResponse, 5)
        assert await delete(GROUP) == [ErrorCode.NONE]
        assert await world.committed() == -1
        await world.restart()
        await world.until_loaded()
        assert await world.committed() == -1

    world.run(scenario())


def test_offsets_are_deleted_one_by_one(world: GroupWorld) -> None:
    async def scenario() -> None:
        await world.commit(7)
        partitions = [OffsetDeleteRequestPartition(partition_index=index) for index in (0, 1, 9)]
        topics = [OffsetDeleteRequestTopic(name=TOPIC, partitions=partitions)]
        response = await world.call(OffsetDeleteRequest(group_id=GROUP, topics=topics), OffsetDeleteResponse, 0)
        errors = [partition.error_code for partition in response.topics[0].partitions]
        assert errors == [ErrorCode.NONE, ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
        assert await world.committed() == -1
        missing = await world.call(OffsetDeleteRequest(group_id="missing", topics=topics), OffsetDeleteResponse, 0)
        assert missing.error_code == ErrorCode.GROUP_ID_NOT_FOUND

    world.run(scenario())


def test_a_clock_that_leaps_ahead_expires_no_offsets(world: GroupWorld, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        await world.commit(7)
        world.simulation.clock.wall_offset_ms += 30 * 24 * 3_600_000
        await world.sleep(1_800_000)
        assert await world.committed() == 7
        world.simulation.clock.wall_offset_ms -= 30 * 24 * 3_600_000
        await world.sleep(1_200_000)
        assert await world.committed() == -1, "in its time"

    world.run(scenario())
    caplog.clear()


def test_the_broker_speaks_for_its_groups_while_they_load(world: GroupWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    may_load = asyncio.Event()

    async def load_when_allowed(*args: Any) -> int:
        await may_load.wait()
        return await replay_log(*args)

    async def scenario() -> None:
        await world.commit(7)
        monkeypatch.setattr(runtime, "replay_log", load_when_allowed)
        await world.restart()
        assert (await world.fetch()).groups[0].error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        assert (await world.fetch(version=1)).topics[0].partitions[0].error_code == (
            ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        )
        assert await world.commit(8) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        assert await world.heartbeat("m", 1) is ErrorCode.NONE
        sync = SyncGroupRequest(group_id=GROUP, generation_id=1, member_id="m")
        assert (await world.call(sync, SyncGroupResponse, 4)).error_code == ErrorCode.REBALANCE_IN_PROGRESS
        assert (await world.call(ListGroupsRequest(), ListGroupsResponse, 5)).error_code == (
            ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        )
        may_load.set()
        await world.until_loaded()
        assert await world.committed() == 7

    world.run(scenario())
