"""What the group commands know of a group: its state and members, what it has committed, and how far behind it is."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, ConsumerGroupTopicPartitions, KafkaException, TopicPartition

from odradek.cli.framework.failure import Failure

if TYPE_CHECKING:
    from collections.abc import Iterable

    from odradek.cli.client.cluster import Cluster

REQUEST_TIMEOUT_S = 15.0
TIME_LAG_PATIENCE_S = 5.0  # how long the first unread records are waited for
Place = tuple[str, int]  # topic and partition

STATE_NAMES = {
    "PREPARING_REBALANCING": "PreparingRebalance",
    "COMPLETING_REBALANCING": "CompletingRebalance",
    "STABLE": "Stable",
    "EMPTY": "Empty",
    "DEAD": "Dead",
    "UNKNOWN": "Rebalancing",  # librdkafka has no names for Assigning and Reconciling, of the newer protocol
}


@dataclass(frozen=True, slots=True)
class GroupMember:
    member_id: str
    client_id: str
    host: str
    instance_id: str | None
    assignment: tuple[Place, ...]


@dataclass(slots=True)
class PartitionLag:
    """`committed_offset` is None where nothing is committed, `end_offset` where the topic is gone."""

    topic: str
    partition: int
    committed_offset: int | None
    end_offset: int | None
    member: GroupMember | None = None
    time_lag_ms: int | None = None

    @property
    def lag(self) -> int | None:
        if self.committed_offset is None or self.end_offset is None:
            return None
        return max(self.end_offset - self.committed_offset, 0)


@dataclass(slots=True)
class GroupState:
    name: str
    state: str
    kind: str
    assignor: str
    coordinator: str
    members: list[GroupMember] = field(default_factory=list)

    @property
    def is_active(self) -> bool:
        return self.state not in ("Empty", "Dead")


def state_name(state: Any) -> str:
    name: str = state.name
    return STATE_NAMES.get(name, name.capitalize())


def read_group(cluster: Cluster, name: str) -> GroupState:
    """Failure when there is no such group."""
    futures = cluster.admin().describe_consumer_groups([name], request_timeout=REQUEST_TIMEOUT_S)
    described = cluster.finish(futures[name], f"group {name}")
    state = state_name(described.state)
    if state == "Dead":
        raise Failure(f"there is no group {name}; `odradek group list` shows those that exist")
    members = [
        GroupMember(
            member.member_id,
            member.client_id,
            member.host.removeprefix("/"),
            member.group_instance_id,
            tuple(sorted((each.topic, each.partition) for each in member.assignment.topic_partitions)),
        )
        for member in described.members
    ]
    node = described.coordinator
    return GroupState(
        name=name,
        state=state,
        kind=described.type.name.lower() if described.type is not None else "",
        assignor=described.partition_assignor or "",
        coordinator="" if node is None else f"{node.host}:{node.port}",
        members=sorted(members, key=lambda member: (member.client_id, member.member_id)),
    )


def read_offsets(cluster: Cluster, name: str) -> dict[Place, int]:
    """All that the group has committed."""
    request = ConsumerGroupTopicPartitions(name)
    futures = cluster.admin().list_consumer_group_offsets([request], request_timeout=REQUEST_TIMEOUT_S)
    found = cluster.finish(futures[name], f"group {name}").topic_partitions
    return {(each.topic, each.partition): each.offset for each in found if each.offset >= 0}


def read_lags(cluster: Cluster, group: GroupState) -> list[PartitionLag]:
    """Every partition that is committed or assigned, in order."""
    committed = read_offsets(cluster, group.name)
    owners = {place: member for member in group.members for place in member.assignment}
    ends = read_ends(cluster, committed.keys() | owners.keys())
    return [
        PartitionLag(*place, committed.get(place), ends.get(place), owners.get(place))
        for place in sorted(committed.keys() | owners.keys())
    ]


def read_ends(cluster: Cluster, places: Iterable[Place]) -> dict[Place, int]:
    """Where the partitions end; those of topics that are gone are left out."""
    ends: dict[Place, int] = {}
    by_topic: dict[str, list[int]] = {}
    for topic, partition in places:
        by_topic.setdefault(topic, []).append(partition)
    existing = set(cluster.topic_names()) if by_topic else set()
    for topic, partitions in by_topic.items():
        if topic in existing:
            ends.update(
                ((topic, partition), offset) for partition, offset in cluster.latest_offsets(topic, partitions).items()
            )
    return ends


def add_time_lags(cluster: Cluster, lags: list[PartitionLag]) -> None:
    """How old the first record is that the group has not read: looked up in the topic itself."""
    behind = {(each.topic, each.partition): each for each in lags if each.lag}
    for each in lags:
        if each.lag == 0:
            each.time_lag_ms = 0
    if not behind:
        return
    # Little at a time: of each partition one record is wanted, however many wait behind it.
    consumer = cluster.consumer(
        {"auto.offset.reset": "earliest", "fetch.wait.max.ms": 50, "fetch.message.max.bytes": 65_536}
    )
    try:
        consumer.assign([TopicPartition(*place, lag.committed_offset or 0) for place, lag in behind.items()])
        deadline = time.monotonic() + TIME_LAG_PATIENCE_S
        while behind and time.monotonic() < deadline:
            for message in consumer.consume(100, 0.1):
                place = (message.topic() or "", message.partition() or 0)
                lag = behind.pop(place, None)
                if lag is None or message.error() is not None:
                    continue
                consumer.pause([TopicPartition(*place)])
                kind, written_ms = message.timestamp()
                if kind != TIMESTAMP_NOT_AVAILABLE:
                    lag.time_lag_ms = max(int(time.time() * 1000) - written_ms, 0)
    except KafkaException as error:
        raise cluster.failure(error.args[0], "time lag") from None
    finally:
        consumer.close()
