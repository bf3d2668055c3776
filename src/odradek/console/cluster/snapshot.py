"""The state of the cluster at one moment: brokers, partitions, offsets and sizes. `read_*` ask the brokers."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from heapq import nsmallest
from typing import TYPE_CHECKING

from odradek.cli.client.cluster_state import BrokerCounts, ClusterState, PartitionState
from odradek.cli.framework.failure import Failure
from odradek.protocol.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from odradek.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from odradek.cli.client.broker_requests import BrokerRequests

__all__ = ["ClusterState", "PartitionState"]

LATEST, EARLIEST = -1, -2
PARTITIONS_PER_REQUEST = 5_000
MOST_PROBLEMS = 50
Key = tuple[str, int]  # topic, partition


@dataclass(frozen=True, slots=True)
class LogDirectory:
    """`total_bytes` and `usable_bytes` are those of the volume; −1 if the broker does not tell them."""

    broker_id: int
    path: str
    error_code: int
    partitions: int
    stored_bytes: int
    total_bytes: int
    usable_bytes: int


@dataclass(frozen=True, slots=True)
class Disks:
    """Sizes of partitions on each broker, and the log directories."""

    sizes: Mapping[tuple[int, str, int], int] = field(default_factory=dict)  # by broker, topic and partition
    directories: tuple[LogDirectory, ...] = ()


@dataclass(slots=True)
class TopicSummary:
    name: str
    partitions: int = 0
    replicas: int = 0  # of the partition that has the most
    under_replicated: int = 0
    offline: int = 0
    records: int = 0  # offsets between start and end: the largest number of records that there can be
    size_bytes: int = 0  # on all replicas
    records_per_s: float = 0.0

    @property
    def is_internal(self) -> bool:
        return self.name.startswith("__")


@dataclass(frozen=True, slots=True)
class Health:
    """What is found by looking at every partition, once for each snapshot."""

    offline: int
    under_replicated: int
    under_min_in_sync: int
    problems: tuple[PartitionState, ...]  # the worst first, at most MOST_PROBLEMS
    problem_count: int
    moving: tuple[PartitionState, ...]
    counts: BrokerCounts


@dataclass(frozen=True, slots=True)
class Snapshot:
    time_s: float
    state: ClusterState
    health: Health
    starts: Mapping[Key, int]
    ends: Mapping[Key, int]
    disks: Disks
    topics: Mapping[str, TopicSummary]


def read_offsets(requests: BrokerRequests, state: ClusterState, timestamp: int) -> dict[Key, int]:
    """The first or the next offset of each partition; partitions whose leader does not answer are left out."""
    by_leader: dict[int, list[Key]] = defaultdict(list)
    for partition in state.partitions:
        if not partition.is_offline:
            by_leader[partition.leader].append((partition.topic, partition.index))
    found: dict[Key, int] = {}
    for leader, keys in by_leader.items():
        broker = state.brokers.get(leader)
        if broker is None or broker.is_fenced:
            continue
        for first in range(0, len(keys), PARTITIONS_PER_REQUEST):
            request = _offsets_request(keys[first : first + PARTITIONS_PER_REQUEST], timestamp)
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


def read_disks(requests: BrokerRequests, state: ClusterState) -> Disks:
    """The log directories of the brokers that answer."""
    sizes: dict[tuple[int, str, int], int] = {}
    directories: list[LogDirectory] = []
    for broker in state.brokers.values():
        if broker.is_fenced:
            continue
        try:
            answer = requests.ask(broker, DescribeLogDirsRequest(topics=None), DescribeLogDirsResponse, 4)
        except Failure:
            continue
        for directory in answer.results:
            before = len(sizes)
            stored = 0
            for topic in directory.topics:
                for each in topic.partitions:
                    if not each.is_future_key:
                        sizes[broker.broker_id, topic.name, each.partition_index] = each.partition_size
                    stored += each.partition_size
            directories.append(
                LogDirectory(
                    broker.broker_id,
                    directory.log_dir,
                    directory.error_code,
                    len(sizes) - before,
                    stored,
                    directory.total_bytes,
                    directory.usable_bytes,
                )
            )
    return Disks(sizes, tuple(directories))


def examine(state: ClusterState) -> Health:
    offline = under_replicated = under_min_in_sync = 0
    problems: list[PartitionState] = []
    moving: list[PartitionState] = []
    for partition in state.partitions:
        is_offline, is_behind, is_short = (
            partition.is_offline,
            partition.is_under_replicated,
            partition.is_under_min_in_sync,
        )
        offline += is_offline
        under_replicated += is_behind
        under_min_in_sync += is_short
        if is_offline or is_behind or is_short:
            problems.append(partition)
        if partition.is_reassigned:
            moving.append(partition)
    worst = nsmallest(MOST_PROBLEMS, problems, key=lambda each: (not each.is_offline, not each.is_under_min_in_sync))
    return Health(
        offline, under_replicated, under_min_in_sync, tuple(worst), len(problems), tuple(moving), state.counts()
    )


def summarize(
    state: ClusterState, starts: Mapping[Key, int], ends: Mapping[Key, int], disks: Disks, rates: Mapping[str, float]
) -> dict[str, TopicSummary]:
    """One summary for each topic, in the order of their names."""
    topics: dict[str, TopicSummary] = {}
    for partition in state.partitions:
        name = partition.topic
        topic = topics.get(name)
        if topic is None:
            topic = topics[name] = TopicSummary(name, records_per_s=rates.get(name, 0.0))
        key = (name, partition.index)
        topic.partitions += 1
        topic.replicas = max(topic.replicas, len(partition.replicas))
        topic.under_replicated += partition.is_under_replicated
        topic.offline += partition.is_offline
        topic.records += max(ends.get(key, 0) - starts.get(key, 0), 0)
    for (_broker, name, _index), size_bytes in disks.sizes.items():
        if name in topics:
            topics[name].size_bytes += size_bytes
    return topics


def rates_by_topic(before: Mapping[Key, int], after: Mapping[Key, int], seconds: float) -> dict[str, float]:
    """Records per second of the topics that have grown. A partition that was not there before does not count."""
    grown: dict[str, float] = defaultdict(float)
    if seconds <= 0:
        return {}
    for key, end in after.items():
        previous = before.get(key)
        if previous is not None and end > previous:
            grown[key[0]] += (end - previous) / seconds
    return dict(grown)


def growth_bytes(before: Disks, after: Disks) -> int:
    """Bytes by which the logs of partitions have grown; those that became smaller do not count."""
    total = 0
    for key, size_bytes in after.sizes.items():
        previous = before.sizes.get(key)
        if previous is not None and size_bytes > previous:
            total += size_bytes - previous
    return total
