"""Attacks on what a broker keeps for its clients: groups, producers and records. `attacks` runs them."""

from __future__ import annotations

import itertools
import random
from typing import TYPE_CHECKING

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from odradek.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from odradek.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse
from tests.wire import WireClient, encode_request

if TYPE_CHECKING:
    from tests.server.attacked_broker import Target

MEBIBYTE = 1 << 20
SESSION_TIMEOUT_MS = 1_800_000  # the longest
JOIN_VERSION, SYNC_VERSION = 3, 3  # members join without an id
_numbers = itertools.count()


def join(
    client: WireClient, group_id: str, metadata: bytes, *, member_id: str = "", version: int = JOIN_VERSION
) -> JoinGroupResponse:
    request = join_request(group_id, metadata, member_id=member_id)
    return client.call(request, JoinGroupResponse, version)


def join_request(group_id: str, metadata: bytes, *, member_id: str = "") -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id=group_id,
        session_timeout_ms=SESSION_TIMEOUT_MS,
        rebalance_timeout_ms=SESSION_TIMEOUT_MS,
        member_id=member_id,
        protocol_type="attack",
        protocols=[JoinGroupRequestProtocol(name="any", metadata=metadata)],
    )


def large_assignments(target: Target) -> None:
    """The leader of a group assigns more than a batch of its topic takes."""
    assignment, group_id = random.Random(1).randbytes(5 * MEBIBYTE), f"assigned-{next(_numbers)}"
    with WireClient(target.plain_port) as leader:
        joined = join(leader, group_id, b"")
        for _ in range(20):
            assert joined.error_code == ErrorCode.NONE
            request = SyncGroupRequest(
                group_id=group_id,
                generation_id=joined.generation_id,
                member_id=joined.member_id,
                assignments=[SyncGroupRequestAssignment(member_id=joined.member_id, assignment=assignment)],
            )
            answer = leader.call(request, SyncGroupResponse, SYNC_VERSION)
            assert answer.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
            joined = join(leader, group_id, b"", member_id=joined.member_id)


def large_subscriptions(target: Target) -> None:
    """A member of a consumer group subscribes to more names than a batch of its topic takes."""
    names = [f"{number:05}" + 32_000 * "n" for number in range(160)]
    request = ConsumerGroupHeartbeatRequest(
        group_id="subscribed",
        member_id="attacker",
        member_epoch=0,
        rebalance_timeout_ms=300_000,
        subscribed_topic_names=names,
        topic_partitions=[],
    )
    with WireClient(target.plain_port) as member:
        for _ in range(20):
            answer = member.call(request, ConsumerGroupHeartbeatResponse)
            assert answer.error_code == ErrorCode.UNKNOWN_SERVER_ERROR


def large_metadata(target: Target) -> None:
    """Members bring as much metadata as one may, each to a group of its own, and disconnect."""
    metadata = random.Random(1).randbytes(900_000)
    for _ in range(40):
        with WireClient(target.plain_port) as member:
            member.send(encode_request(join_request(f"held-{next(_numbers)}", metadata), JOIN_VERSION))
    with WireClient(target.plain_port) as member:
        refused = join(member, f"refused-{next(_numbers)}", metadata)
        assert refused.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        refused = join(member, f"refused-{next(_numbers)}", metadata + metadata)
        assert refused.error_code == ErrorCode.UNKNOWN_SERVER_ERROR


STATE_ATTACKS = (
    large_metadata,
    large_assignments,
    large_subscriptions,
)
