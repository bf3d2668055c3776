"""Attacks on what a broker keeps for its clients: groups, producers and records. `attacks` runs them."""

import contextlib
import itertools
import random

from odradek.protocol.compression import Compression
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from odradek.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from odradek.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from odradek.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from odradek.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from odradek.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse
from odradek.protocol.records import Record, build_batch
from tests.server.attacked_broker import Target
from tests.server.requests import VERSION, create_topic
from tests.server.test_hostile_peers import error_of, produce_as
from tests.wire import WireClient, decode_response, encode_request

MEBIBYTE = 1 << 20
SESSION_TIMEOUT_MS = 1_800_000  # the longest
JOIN_VERSION, SYNC_VERSION = 3, 3  # members join without an id
JOIN_VERSION_WITH_ID, LEAVE_VERSION = 5, 4
LIST_OFFSETS_VERSION = 7
TIMES = "times"
PRODUCERS = "producers"
_created: list[str] = []
_numbers = itertools.count()
_ids = itertools.count(random.Random().getrandbits(40))


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


def many_protocols(target: Target) -> None:
    """Members bring as many protocols as a request may have, without metadata, and stay connected for the answer."""
    request = join_request("protocols", b"")
    request.protocols = [JoinGroupRequestProtocol(name=f"{number}", metadata=b"") for number in range(15_900)]
    for _ in range(40):
        request.group_id = f"protocols-{next(_numbers)}"
        with WireClient(target.plain_port) as member:
            answer = member.call(request, JoinGroupResponse, JOIN_VERSION)
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


_compressed: list[bytes] = []


def time_lookup_bomb(target: Target) -> None:
    """Look-ups by time in a batch of a few KB that decompresses to 15 MiB, and in one of 7 MiB that is read, by eight
    connections at once; and one that names a partition thousands of times."""
    if not _compressed:
        for number, size_bytes in enumerate((15 * MEBIBYTE, 7 * MEBIBYTE), 1):
            records = [Record(0, 1_000 * number, None, bytes(size_bytes))]
            _compressed.append(bytes(build_batch(records, compression=Compression.ZSTD)))
        with WireClient(target.plain_port) as attacker:
            create_topic(attacker, TIMES)
            for records_of_batch in _compressed:
                assert error_of(produce_as(attacker, "attacker", TIMES, records_of_batch)) is ErrorCode.NONE
    repeated = list_offsets_request(*[1_000] * 12_000)
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(WireClient(target.plain_port)) for _ in range(8)]
        for client, timestamp in zip(clients, itertools.cycle((1_000, 2_000)), strict=False):
            client.send(encode_request(list_offsets_request(timestamp), LIST_OFFSETS_VERSION))
        for number, client in enumerate(clients):
            frame = client.read_frame()
            assert frame is not None
            answer = decode_response(ListOffsetsResponse, frame, LIST_OFFSETS_VERSION)
            assert answer.topics[0].partitions[0].offset == number % 2
        refused = clients[0].call(repeated, ListOffsetsResponse, LIST_OFFSETS_VERSION)
        assert refused.topics[0].partitions[0].error_code == ErrorCode.INVALID_REQUEST


def list_offsets_request(*timestamps: int) -> ListOffsetsRequest:
    asked = [ListOffsetsPartition(partition_index=0, timestamp=timestamp) for timestamp in timestamps]
    return ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=TIMES, partitions=asked)])


def invented_producers(target: Target) -> None:
    """Each batch has a producer id of its own, in sixteen partitions in turn."""
    partition_count, batches_of_request = 16, 250
    with WireClient(target.plain_port) as attacker:
        if not _created:
            create_topic(attacker, PRODUCERS, partition_count, retention_bytes="1000000", segment_bytes="1048576")
            _created.append(PRODUCERS)
        for index in range(partition_count):
            data = [
                PartitionProduceData(
                    index=index,
                    records=memoryview(
                        build_batch(
                            [Record(0, 1_000, None, b"")], producer_id=next(_ids), producer_epoch=0, base_sequence=0
                        )
                    ),
                )
                for _ in range(batches_of_request)
            ]
            topic = TopicProduceData(name=PRODUCERS, partition_data=data)
            answer = attacker.call(
                ProduceRequest(acks=1, timeout_ms=1_000, topic_data=[topic]), ProduceResponse, VERSION
            )
            assert error_of(answer) is ErrorCode.NONE


def abandoned_members(target: Target) -> None:
    """A client asks for a member id with the longest session timeout, and leaves the group."""
    with WireClient(target.plain_port) as client:
        for _ in range(1_000):
            given = join(client, "abandoned", b"", version=JOIN_VERSION_WITH_ID)
            assert given.error_code == ErrorCode.MEMBER_ID_REQUIRED
            leaving = LeaveGroupRequest(group_id="abandoned", members=[MemberIdentity(member_id=given.member_id)])
            left = client.call(leaving, LeaveGroupResponse, LEAVE_VERSION)
            assert left.members[0].error_code == ErrorCode.NONE


STATE_ATTACKS = (
    abandoned_members,
    invented_producers,
    time_lookup_bomb,
    large_metadata,
    many_protocols,
    large_assignments,
    large_subscriptions,
)
