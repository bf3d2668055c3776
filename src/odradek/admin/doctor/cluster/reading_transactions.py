"""Reads transactions that no coordinator will end, and the newest records of internal topics."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from odradek.admin.doctor.cluster.topics import INTERNAL_TOPICS
from odradek.admin.request_parts import PARTITIONS_PER_REQUEST, in_parts
from odradek.admin.transactions import (
    OpenTransaction,
    describe_producers_request,
    open_transactions_in,
    without_known,
)
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.describe_producers import DescribeProducersResponse
from odradek.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from odradek.admin.broker_requests import BrokerRequests, KnownBroker
    from odradek.admin.cluster_state import ClusterState, PartitionState
    from odradek.admin.doctor.reading import Reader

LONGEST_TRANSACTION_MS = 15 * 60 * 1000  # the default of transaction.max.timeout.ms
MOVED_OR_DELETED = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION})
NEWEST = -3  # ListOffsets: the record with the largest timestamp


def read_hanging(requests: BrokerRequests, state: ClusterState, reader: Reader) -> list[OpenTransaction]:
    now_ms = int(time.time() * 1000)
    old: list[OpenTransaction] = []
    refusals: Counter[int] = Counter()
    for broker, partitions in _led(state, state.partitions):
        for some in in_parts(partitions, PARTITIONS_PER_REQUEST):
            reader.check_time()
            old += [
                each
                for each in _open_transactions(requests, broker, some, refusals)
                if now_ms - each.last_timestamp_ms > LONGEST_TRANSACTION_MS
            ]
    reader.leave_out("hanging", refusals, "partition", "transactions of {}")
    return without_known(requests, (each for each in state.brokers.values() if not each.is_fenced), old)


def _open_transactions(
    requests: BrokerRequests,
    broker: KnownBroker,
    partitions: Iterable[PartitionState],
    refusals: Counter[int],
) -> Iterator[OpenTransaction]:
    """Of the partitions that the broker describes; one that has moved or was deleted is left out. `refusals` counts
    other errors."""
    request = describe_producers_request((each.topic, each.index) for each in partitions)
    for topic in requests.ask(broker, request, DescribeProducersResponse, 0).topics:
        for partition in topic.partitions:
            if partition.error_code and partition.error_code not in MOVED_OR_DELETED:
                refusals[partition.error_code] += 1
            yield from open_transactions_in(topic.name, partition, broker)


def newest_internal_records(requests: BrokerRequests, state: ClusterState, reader: Reader) -> dict[str, int]:
    """By how many milliseconds the newest record of each partition is ahead of this machine's clock."""
    ahead: dict[str, int] = {}
    refusals: Counter[int] = Counter()
    internal = [each for each in state.partitions if each.topic in INTERNAL_TOPICS]
    for broker, partitions in _led(state, internal):
        topics: dict[str, list[ListOffsetsPartition]] = defaultdict(list)
        for each in partitions:
            topics[each.topic].append(ListOffsetsPartition(partition_index=each.index, timestamp=NEWEST))
        request = ListOffsetsRequest(
            replica_id=-1,
            isolation_level=0,
            topics=[ListOffsetsTopic(name=name, partitions=each) for name, each in topics.items()],
        )
        answer = requests.ask(broker, request, ListOffsetsResponse, 7)
        now_ms = int(time.time() * 1000)
        for topic in answer.topics:
            for found in topic.partitions:
                if found.error_code and found.error_code not in MOVED_OR_DELETED:
                    refusals[found.error_code] += 1
                elif not found.error_code and found.timestamp >= 0:
                    ahead[f"{topic.name}-{found.partition_index}"] = found.timestamp - now_ms
    reader.leave_out("ahead_ms", refusals, "partition", "{} of internal topics")
    return ahead


def _led(
    state: ClusterState, partitions: Iterable[PartitionState]
) -> Iterator[tuple[KnownBroker, list[PartitionState]]]:
    """The partitions of each leader that runs."""
    by_leader: dict[int, list[PartitionState]] = defaultdict(list)
    for each in partitions:
        by_leader[each.leader].append(each)
    for leader, led in by_leader.items():
        broker = state.brokers.get(leader)
        if broker is not None and not broker.is_fenced:
            yield broker, led
