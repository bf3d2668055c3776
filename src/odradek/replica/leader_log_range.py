"""The first and last offset of a leader's log, by ListOffsets requests."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)

if TYPE_CHECKING:
    from odradek.client.broker_client import BrokerClient
    from odradek.replica.partition import Partition

LATEST, EARLIEST = -1, -2


class LogRange(NamedTuple):
    start_offset: int
    end_offset: int


async def fetch_log_range(
    client: BrokerClient, partition: Partition, node_id: int, *, timeout_ms: float
) -> LogRange | None:
    """None when the broker does not lead in this leader epoch. BrokerUnavailable as for every call."""
    found = []
    leader_epoch = partition.leader_epoch
    for timestamp in (EARLIEST, LATEST):
        asked = ListOffsetsPartition(
            partition_index=partition.index, current_leader_epoch=leader_epoch, timestamp=timestamp
        )
        request = ListOffsetsRequest(
            replica_id=node_id, topics=[ListOffsetsTopic(name=partition.topic, partitions=[asked])]
        )
        response = await client.call(request, ListOffsetsResponse, timeout_ms=timeout_ms)
        answer = response.topics[0].partitions[0]
        if answer.error_code != ErrorCode.NONE:
            return None
        found.append(answer.offset)
    return LogRange(*found)
