"""The requests by which records are fetched, and the state of the partitions and brokers that they are for."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

from odradek.admin.records.fetched_batches import LARGEST_BATCH_BYTES
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from odradek.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic

if TYPE_CHECKING:
    from collections.abc import Iterator

    from odradek.admin.records.fetched_batches import BatchRead
    from odradek.admin.wire import BrokerConnection
    from odradek.protocol.messages.fetch import PartitionData

Key = tuple[str, int]  # topic, partition
Address = tuple[str, int]  # host, port
RETRIED_ERRORS = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.REQUEST_TIMED_OUT,
    }
)


class AssignedPartition:
    __slots__ = ("high_watermark", "is_at_end", "key", "leader", "offset", "retry_at", "since", "stalled", "trouble")

    def __init__(self, key: Key, offset: int) -> None:
        self.key = key
        self.offset = offset  # the next one, or LATEST or EARLIEST
        self.leader: tuple[str, int] | None = None
        self.retry_at = 0.0  # when to look up its leader
        self.since = time.monotonic()  # when it was assigned, or the broker last knew it
        self.stalled = 0
        self.is_at_end = False
        self.high_watermark = -1
        self.trouble = ""  # until the next response


class LeaderConnection:
    """A connection with at most one request that waits for its response."""

    def __init__(self, connection: BrokerConnection) -> None:
        self.connection = connection
        self.deadline: float | None = None  # of the response
        self.is_receiving = False
        self.is_fetch = False  # or a ListOffsets
        # The partitions of the request and their offsets in it. A broker returns at least one batch of the first one,
        # if it has any. The response is not for a partition that was assigned again.
        self.asked: dict[Key, tuple[AssignedPartition, int]] = {}


class FetchedPartition(NamedTuple):
    """What a response has of a partition."""

    address: Address
    partition: AssignedPartition
    batches: Iterator[BatchRead]
    data: PartitionData


def offsets_request(unresolved: list[AssignedPartition], *, reads_committed: bool) -> ListOffsetsRequest:
    topics: dict[str, list[ListOffsetsPartition]] = {}
    for each in unresolved:
        topic, index = each.key
        topics.setdefault(topic, []).append(ListOffsetsPartition(partition_index=index, timestamp=each.offset))
    return ListOffsetsRequest(
        replica_id=-1,
        isolation_level=int(reads_committed),
        topics=[ListOffsetsTopic(name=name, partitions=partitions) for name, partitions in topics.items()],
    )


def fetch_request(
    led: list[AssignedPartition], max_wait_ms: int, response_bytes: int, partition_bytes: int, *, reads_committed: bool
) -> FetchRequest:
    topics: dict[str, list[FetchPartition]] = {}
    for each in led:
        wanted_bytes = partition_bytes if not each.stalled else LARGEST_BATCH_BYTES
        topics.setdefault(each.key[0], []).append(
            FetchPartition(partition=each.key[1], fetch_offset=each.offset, partition_max_bytes=wanted_bytes)
        )
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        max_bytes=response_bytes,
        isolation_level=int(reads_committed),
        topics=[FetchTopic(topic=name, partitions=partitions) for name, partitions in topics.items()],
    )
