"""The state of the cluster at one moment: brokers, partitions, offsets and sizes; and samples between two of them."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from heapq import nsmallest
from typing import TYPE_CHECKING

from odradek.admin.broker_requests import KnownBroker
from odradek.admin.cluster_state import BrokerCounts, ClusterState, PartitionState
from odradek.admin.log_directories import Disks, LogDirectory
from odradek.console.cluster.traffic import values_between

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.console.cluster.traffic import BrokerLoad, Traffic

__all__ = ["ClusterState", "KnownBroker", "LogDirectory", "PartitionState"]

MOST_PROBLEMS = 50
Key = tuple[str, int]  # topic, partition


def is_internal(topic: str) -> bool:
    return topic.startswith("__")


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
    unread_partitions: int = 0  # whose offsets are not known: they have no leader, or it did not answer
    unread_replicas: int = 0  # whose size is not known

    @property
    def is_internal(self) -> bool:
        return is_internal(self.name)


@dataclass(frozen=True, slots=True)
class Health:
    """Counts over all partitions, made once for each snapshot."""

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
    traffic: Mapping[int, Traffic] = field(default_factory=dict)  # of brokers that report metrics
    loads: Mapping[int, BrokerLoad] = field(default_factory=dict)  # the same brokers, since the last sample
    silent: tuple[int, ...] = ()  # brokers that are not fenced, and did not answer
    monotonic_s: float = 0.0  # the same moment as `time_s`, by a clock that is never set

    def seconds_since(self, before: Snapshot) -> float:
        return self.monotonic_s - before.monotonic_s


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
    worst = nsmallest(MOST_PROBLEMS, problems, key=_urgency)
    return Health(
        offline, under_replicated, under_min_in_sync, tuple(worst), len(problems), tuple(moving), state.counts()
    )


def _urgency(partition: PartitionState) -> tuple[bool, bool, bool]:
    """The smallest is shown first."""
    return not partition.is_offline, not partition.is_under_min_in_sync, is_internal(partition.topic)


def summarize(
    state: ClusterState, starts: Mapping[Key, int], ends: Mapping[Key, int], disks: Disks, rates: Mapping[str, float]
) -> dict[str, TopicSummary]:
    """One summary for each topic, in the order of their names."""
    topics: dict[str, TopicSummary] = {}
    unknown = -1 if disks.is_denied else 0
    for partition in state.partitions:
        name = partition.topic
        topic = topics.get(name)
        if topic is None:
            topic = topics[name] = TopicSummary(name, size_bytes=unknown, records_per_s=rates.get(name, 0.0))
        key = (name, partition.index)
        topic.partitions += 1
        topic.replicas = max(topic.replicas, len(partition.replicas))
        topic.under_replicated += partition.is_under_replicated
        topic.offline += partition.is_offline
        topic.records += max(ends.get(key, 0) - starts.get(key, 0), 0)
        topic.unread_partitions += key not in ends or key not in starts
        topic.unread_replicas += len(partition.replicas)
    for (_broker, name, _index), size_bytes in disks.sizes.items():
        if name in topics:
            topics[name].size_bytes += size_bytes
            topics[name].unread_replicas -= 1
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


def sample_values(before: Snapshot, after: Snapshot) -> dict[str, float]:
    """The values of the charts, as far as they are known, by name.

    What brokers of Odradek count themselves replaces the values that can be read from any Kafka cluster, by offsets and
    sizes. While a running broker does not answer, their sums would be too small: then records are those of the offsets.
    The growth of logs is no replacement for bytes, because it counts every replica.
    """
    seconds = after.seconds_since(before)
    values = {
        "records": sum(rates_by_topic(before.ends, after.ends, seconds).values()),
        "bytes": growth_bytes(before.disks, after.disks) / seconds,
    }
    running = [broker.broker_id for broker in after.state.brokers.values() if not broker.is_fenced]
    measured = values_between(before.traffic, after.traffic, running)
    if after.traffic and not measured:
        del values["bytes"]
    return {**values, **measured}
