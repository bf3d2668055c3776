"""Every group API on a simulated broker whose replicas lag: no answer before what it rests on is committed, and
NOT_COORDINATOR when the leadership ends first."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from odradek.coordinator.groups.group_shard import GroupShard
from odradek.coordinator.runtime.shard import Shard
from odradek.coordinator.runtime.shard_log import ShardLog
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from odradek.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from odradek.protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from odradek.protocol.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from odradek.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from odradek.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from odradek.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)
from tests.coordinator.groups.group_world import GROUP, TOPIC, GroupWorld


class LaggingLog:
    """A shard's log whose high watermark stays where it is until `catch_up`."""

    def __init__(self, shard: Shard[GroupShard]) -> None:
        self._log: ShardLog = shard.log
        self._listener = shard.on_log_moved
        self.high_watermark = self._log.log_end_offset
        self.is_leader = True
        self._log.unwatch()
        shard.log = self

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)

    def leads_in(self, leader_epoch: int) -> bool:
        return self.is_leader and self._log.leads_in(leader_epoch)

    def catch_up(self) -> None:
        self.high_watermark = self._log.log_end_offset
        self._listener()

    def lose_leadership(self) -> None:
        self.is_leader = False
        self._listener()


@pytest.fixture
def world() -> Iterator[GroupWorld]:
    world = GroupWorld(1, {"offsets.topic.num.partitions": "1", "group.initial.rebalance.delay.ms": "0"})
    world.run(world.prepare())
    yield world
    world.close()


async def join(world: GroupWorld) -> int:
    return (await world.join(group_id="new")).error_code


async def sync(world: GroupWorld) -> int:
    return (await world.sync("unknown", 1)).error_code


async def leave(world: GroupWorld) -> int:
    request = LeaveGroupRequest(group_id="other", members=[MemberIdentity(member_id="unknown")])
    response = await world.call(request, LeaveGroupResponse, 5)
    return response.error_code or response.members[0].error_code


async def fetch(world: GroupWorld) -> int:
    return (await world.fetch()).groups[0].error_code


async def fetch_of_one_group(world: GroupWorld) -> int:
    return (await world.fetch(version=7)).error_code


async def describe(world: GroupWorld) -> int:
    return (await world.call(DescribeGroupsRequest(groups=[GROUP]), DescribeGroupsResponse, 5)).groups[0].error_code


async def describe_consumer_group(world: GroupWorld) -> int:
    request = ConsumerGroupDescribeRequest(group_ids=[GROUP])
    return (await world.call(request, ConsumerGroupDescribeResponse, 1)).groups[0].error_code


async def delete(world: GroupWorld) -> int:
    response = await world.call(DeleteGroupsRequest(groups_names=["other"]), DeleteGroupsResponse, 2)
    return response.results[0].error_code


async def delete_offsets(world: GroupWorld) -> int:
    topics = [OffsetDeleteRequestTopic(name=TOPIC, partitions=[OffsetDeleteRequestPartition(partition_index=0)])]
    request = OffsetDeleteRequest(group_id=GROUP, topics=topics)
    return (await world.call(request, OffsetDeleteResponse, 0)).error_code


async def consumer_heartbeat(world: GroupWorld) -> int:
    request = ConsumerGroupHeartbeatRequest(
        group_id="consumers",
        member_id="member",
        member_epoch=0,
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=[TOPIC],
        topic_partitions=[],
    )
    return (await world.call(request, ConsumerGroupHeartbeatResponse, 1)).error_code


async def commit(world: GroupWorld) -> int:
    return await world.commit(9)


async def heartbeat(world: GroupWorld) -> int:
    return await world.heartbeat("unknown", 1)


CALLS: dict[str, tuple[Callable[[GroupWorld], Awaitable[int]], ErrorCode]] = {
    "JoinGroup": (join, ErrorCode.MEMBER_ID_REQUIRED),
    "SyncGroup": (sync, ErrorCode.UNKNOWN_MEMBER_ID),
    "Heartbeat": (heartbeat, ErrorCode.UNKNOWN_MEMBER_ID),
    "LeaveGroup": (leave, ErrorCode.UNKNOWN_MEMBER_ID),
    "OffsetCommit": (commit, ErrorCode.NONE),
    "OffsetFetch": (fetch, ErrorCode.NONE),
    "OffsetFetch of one group": (fetch_of_one_group, ErrorCode.NONE),
    "OffsetDelete": (delete_offsets, ErrorCode.NONE),
    "DescribeGroups": (describe, ErrorCode.NONE),
    "ConsumerGroupDescribe": (describe_consumer_group, ErrorCode.GROUP_ID_NOT_FOUND),
    "DeleteGroups": (delete, ErrorCode.GROUP_ID_NOT_FOUND),
    "ConsumerGroupHeartbeat": (consumer_heartbeat, ErrorCode.NONE),
}


async def begin(world: GroupWorld, call: Awaitable[int]) -> tuple[LaggingLog, asyncio.Future[int]]:
    """The request while an earlier commit is not committed."""
    (shard,) = world.node.compose_serving().groups.shards()
    log = LaggingLog(shard)
    first = asyncio.ensure_future(world.commit(7))
    for _ in range(5):
        await asyncio.sleep(0)
    waiting = asyncio.ensure_future(call)
    for _ in range(20):
        await asyncio.sleep(0)
    assert not first.done()
    assert not waiting.done(), "it rests on what is not committed"
    first.add_done_callback(lambda _: None)
    return log, waiting


@pytest.mark.parametrize("api", CALLS)
def test_an_answer_waits_for_the_high_watermark(world: GroupWorld, api: str) -> None:
    async def scenario() -> None:
        call, error = CALLS[api]
        log, waiting = await begin(world, call(world))
        log.catch_up()
        assert await waiting == error

    world.run(scenario())


@pytest.mark.parametrize("api", CALLS)
def test_a_lost_leadership_answers_not_coordinator(world: GroupWorld, api: str) -> None:
    async def scenario() -> None:
        call, _ = CALLS[api]
        log, waiting = await begin(world, call(world))
        log.lose_leadership()
        assert await waiting == ErrorCode.NOT_COORDINATOR

    world.run(scenario())


def test_a_list_of_groups_waits_and_leaves_out_what_another_broker_lists(world: GroupWorld) -> None:
    async def groups(world: GroupWorld) -> int:
        return len((await world.call(ListGroupsRequest(), ListGroupsResponse, 5)).groups)

    async def scenario() -> None:
        log, waiting = await begin(world, groups(world))
        log.catch_up()
        assert await waiting == 1
        log, waiting = await begin(world, groups(world))
        log.lose_leadership()
        assert await waiting == 0

    world.run(scenario())


def test_an_answer_that_waits_too_long_is_refused(world: GroupWorld) -> None:
    async def scenario() -> None:
        log, waiting = await begin(world, heartbeat(world))
        assert await waiting == ErrorCode.COORDINATOR_NOT_AVAILABLE
        log.catch_up()

    world.run(scenario())
