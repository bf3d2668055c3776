"""The first or the next offsets of many partitions, with few requests (ListOffsets)."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from odradek.admin.request_parts import in_parts
from odradek.conventions.failures import Failure
from odradek.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from odradek.admin.broker_requests import BrokerRequests, KnownBroker
    from odradek.admin.cluster_state import ClusterState, PartitionState

LATEST, EARLIEST = -1, -2
PARTITIONS_PER_REQUEST = 5_000
Key = tuple[str, int]  # topic, partition


def read_offsets(requests: BrokerRequests, state: ClusterState, timestamp: int) -> dict[Key, int]:
    """The first or the next offset of each partition; partitions whose leader does not answer are left out."""
    return read_offsets_of(requests, state.brokers, state.partitions, timestamp)


def read_offsets_of(
    requests: BrokerRequests, brokers: Mapping[int, KnownBroker], partitions: Iterable[PartitionState], timestamp: int
) -> dict[Key, int]:
    """The same, of some partitions."""
    by_leader: dict[int, list[Key]] = defaultdict(list)
    for partition in partitions:
        if not partition.is_offline:
            by_leader[partition.leader].append((partition.topic, partition.index))
    found: dict[Key, int] = {}
    for leader, keys in by_leader.items():
        broker = brokers.get(leader)
        if broker is None or broker.is_fenced:
            continue
        for some in in_parts(keys, PARTITIONS_PER_REQUEST):
            request = _offsets_request(some, timestamp)
            try:
                answer = requests.ask(broker, request, ListOffsetsResponse, 2)
            except Failure:
                break
            for topic in answer.topics:
                for each in topic.partitions:
                    if not each.error_code:
                        found[topic.name, each.partition_index] = each.offset
    return found


def _offsets_request(keys: Iterable[Key], timestamp: int) -> ListOffsetsRequest:
    topics: dict[str, list[ListOffsetsPartition]] = defaultdict(list)
    for topic, index in keys:
        topics[topic].append(ListOffsetsPartition(partition_index=index, timestamp=timestamp))
    return ListOffsetsRequest(
        replica_id=-1,
        isolation_level=0,
        topics=[ListOffsetsTopic(name=name, partitions=partitions) for name, partitions in topics.items()],
    )
