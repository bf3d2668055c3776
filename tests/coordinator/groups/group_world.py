"""Groups on a simulated broker, through the wire format, in virtual time."""

import asyncio
from collections.abc import Mapping
from typing import Any
from uuid import UUID

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from odradek.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from odradek.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from odradek.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from odradek.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from odradek.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse
from tests.coordinator.groups.test_consumer_protocol import subscription
from tests.simulation.world import World

GROUP = "group"
TOPIC = "topic"
PARTITION_COUNT = 3  # of the topic of groups, where a test does not say otherwise


class GroupWorld(World):
    topic_id: UUID

    async def prepare(self) -> None:
        created = await self.call(
            CreateTopicsRequest(topics=[CreatableTopic(name=TOPIC, num_partitions=4, replication_factor=1)]),
            CreateTopicsResponse,
            7,
        )
        self.topic_id = created.topics[0].topic_id
        await self.find()

    async def find(self, version: int = 6) -> FindCoordinatorResponse:
        request = FindCoordinatorRequest(key=GROUP, coordinator_keys=[GROUP])
        return await self.call(request, FindCoordinatorResponse, version)

    async def sleep(self, duration_ms: float) -> None:
        done = asyncio.get_running_loop().create_future()
        self.simulation.clock.call_after(duration_ms, lambda: done.set_result(None))
        await done

    async def until_loaded(self) -> None:
        while (await self.fetch()).groups[0].error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            await self.sleep(1)

    async def join(self, member_id: str = "", *, version: int = 9, **fields: Any) -> JoinGroupResponse:
        values: dict[str, Any] = {
            "group_id": GROUP,
            "session_timeout_ms": 10_000,
            "rebalance_timeout_ms": 60_000,
            "protocol_type": "consumer",
            "protocols": [JoinGroupRequestProtocol(name="range", metadata=subscription([TOPIC]))],
            **fields,
        }
        return await self.call(JoinGroupRequest(member_id=member_id, **values), JoinGroupResponse, version)

    async def join_new(self, **fields: Any) -> JoinGroupResponse:
        first = await self.join(**fields)
        assert first.error_code == ErrorCode.MEMBER_ID_REQUIRED
        return await self.join(first.member_id, **fields)

    async def sync(
        self, member_id: str, generation: int, assignments: Mapping[str, bytes] | None = None, *, version: int = 5
    ) -> SyncGroupResponse:
        request = SyncGroupRequest(
            group_id=GROUP,
            generation_id=generation,
            member_id=member_id,
            protocol_type="consumer",
            protocol_name="range",
            assignments=[
                SyncGroupRequestAssignment(member_id=each, assignment=data)
                for each, data in (assignments or {}).items()
            ],
        )
        return await self.call(request, SyncGroupResponse, version)

    async def heartbeat(self, member_id: str, generation: int) -> ErrorCode:
        request = HeartbeatRequest(group_id=GROUP, generation_id=generation, member_id=member_id)
        return ErrorCode((await self.call(request, HeartbeatResponse, 4)).error_code)

    async def form(self) -> JoinGroupResponse:
        """One member, stable, with all partitions."""
        member = await self.join_new()
        await self.sync(member.member_id, member.generation_id, {member.member_id: b"all"})
        return member

    async def commit(
        self,
        offset: int,
        *,
        partition: int = 0,
        member_id: str = "",
        generation: int = -1,
        metadata: str | None = "",
        version: int = 9,
        **topic: Any,
    ) -> ErrorCode:
        request = OffsetCommitRequest(
            group_id=GROUP,
            generation_id_or_member_epoch=generation,
            member_id=member_id,
            topics=[
                OffsetCommitRequestTopic(
                    **(topic or {"name": TOPIC, "topic_id": self.topic_id}),
                    partitions=[
                        OffsetCommitRequestPartition(
                            partition_index=partition,
                            committed_offset=offset,
                            committed_leader_epoch=2,
                            committed_metadata=metadata,
                        )
                    ],
                )
            ],
        )
        response = await self.call(request, OffsetCommitResponse, version)
        return ErrorCode(response.topics[0].partitions[0].error_code)

    async def fetch(self, *, version: int = 10, everything: bool = False) -> OffsetFetchResponse:
        """Partition 0, or all that there is."""
        topics = [OffsetFetchRequestTopics(name=TOPIC, topic_id=self.topic_id, partition_indexes=[0])]
        request = OffsetFetchRequest(
            group_id=GROUP,
            topics=None if everything else [OffsetFetchRequestTopic(name=TOPIC, partition_indexes=[0])],
            groups=[OffsetFetchRequestGroup(group_id=GROUP, topics=None if everything else topics)],
            require_stable=version >= 7,
        )
        return await self.call(request, OffsetFetchResponse, version)

    async def committed(self) -> int:
        return (await self.fetch()).groups[0].topics[0].partitions[0].committed_offset
