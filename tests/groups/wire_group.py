"""Groups by hand, for what no client library will send: a stable group, and single requests to it, on any broker."""

from __future__ import annotations

import uuid
from typing import Any

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from odradek.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from odradek.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from odradek.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from odradek.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from odradek.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from odradek.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse
from tests.coordinator.groups.test_consumer_protocol import subscription
from tests.waiting import eventually
from tests.wire import connect

PATIENCE_S = 30
SESSION_MS = 60_000
NOT_YET = (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE)
ASSIGNMENT = b"\0\0\0\0\0\0\xff\xff\xff\xff"  # of nothing, which is a right one


class WireGroup:
    """One group and one connection. The member that it `form`s leads the group in its first generation."""

    def __init__(self, servers: str, topic: str) -> None:
        self._client = connect(servers)
        self.topic = topic
        self.group_id = f"g{uuid.uuid4().hex[:10]}"
        self.member_id = ""
        self.generation = -1

    def close(self) -> None:
        self._client.close()

    def find_coordinator(self) -> None:
        request = FindCoordinatorRequest(coordinator_keys=[self.group_id])
        call = self._client.call
        eventually(lambda: not call(request, FindCoordinatorResponse, 6).coordinators[0].error_code, "a coordinator")
        unknown_member = HeartbeatRequest(group_id=self.group_id, member_id="unknown", generation_id=0)
        # Apache Kafka names a coordinator before it is one.
        eventually(lambda: call(unknown_member, HeartbeatResponse, 4).error_code not in NOT_YET, "its answers")

    def form(self) -> None:
        """One member, stable."""
        self.find_coordinator()
        first = self.join()
        assert first.error_code == ErrorCode.MEMBER_ID_REQUIRED
        joined = self.join(member_id=first.member_id)
        assert joined.error_code == ErrorCode.NONE
        self.member_id, self.generation = joined.member_id, joined.generation_id
        assert self.sync(assignments={self.member_id: ASSIGNMENT}).error_code == ErrorCode.NONE

    def join(self, **fields: Any) -> JoinGroupResponse:
        request = {
            "group_id": self.group_id,
            "session_timeout_ms": SESSION_MS,
            "rebalance_timeout_ms": SESSION_MS,
            "protocol_type": "consumer",
            "protocols": [JoinGroupRequestProtocol(name="range", metadata=subscription([self.topic]))],
        }
        return self._client.call(JoinGroupRequest(**{**request, **fields}), JoinGroupResponse, 9)

    def sync(self, *, assignments: dict[str, bytes] | None = None, **fields: Any) -> SyncGroupResponse:
        request = {**self._member(), "protocol_type": "consumer", "protocol_name": "range"}
        reported = [
            SyncGroupRequestAssignment(member_id=who, assignment=what) for who, what in (assignments or {}).items()
        ]
        return self._client.call(SyncGroupRequest(assignments=reported, **{**request, **fields}), SyncGroupResponse, 5)

    def heartbeat(self, **fields: Any) -> int:
        request = HeartbeatRequest(**{**self._member(), **fields})
        return self._client.call(request, HeartbeatResponse, 4).error_code

    def leave(self, *, group_id: str | None = None, **identity: Any) -> int:
        who = MemberIdentity(**(identity or {"member_id": self.member_id}))
        request = LeaveGroupRequest(group_id=self.group_id if group_id is None else group_id, members=[who])
        response = self._client.call(request, LeaveGroupResponse, 5)
        return response.error_code or response.members[0].error_code

    def commit(
        self, offset: int = 0, *, topic: str | None = None, partition: int = 0, metadata: str = "", **fields: Any
    ) -> int:
        place = OffsetCommitRequestPartition(
            partition_index=partition, committed_offset=offset, committed_leader_epoch=-1, committed_metadata=metadata
        )
        request = {
            "group_id": self.group_id,
            "member_id": self.member_id,
            "generation_id_or_member_epoch": self.generation,
            "topics": [OffsetCommitRequestTopic(name=topic or self.topic, partitions=[place])],
        }
        response = self._client.call(OffsetCommitRequest(**{**request, **fields}), OffsetCommitResponse, 9)
        return response.topics[0].partitions[0].error_code

    def committed(self) -> int:
        topics = [OffsetFetchRequestTopics(name=self.topic, partition_indexes=[0])]
        request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=self.group_id, topics=topics)])
        response = self._client.call(request, OffsetFetchResponse, 9)
        return response.groups[0].topics[0].partitions[0].committed_offset

    def consumer_heartbeat(self, **fields: Any) -> ConsumerGroupHeartbeatResponse:
        request = {"group_id": self.group_id, **fields}
        return self._client.call(ConsumerGroupHeartbeatRequest(**request), ConsumerGroupHeartbeatResponse, 1)

    def _member(self) -> dict[str, Any]:
        return {"group_id": self.group_id, "member_id": self.member_id, "generation_id": self.generation}
