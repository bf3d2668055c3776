"""State, members, committed offsets and lag of a group, read by admin requests."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from confluent_kafka import ConsumerGroupTopicPartitions

from odradek.admin.cluster import without_leader
from odradek.admin.errors import NoSuchGroup, NoSuchTopic, NotAuthorized
from odradek.admin.kafka_admin import OffsetSpec

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from odradek.admin.cluster import Cluster

REQUEST_TIMEOUT_S = 15.0
NO_LEADER = "no leader"
PartitionKey = tuple[str, int]  # topic, partition

STATE_NAMES = {
    "PREPARING_REBALANCING": "PreparingRebalance",
    "COMPLETING_REBALANCING": "CompletingRebalance",
    "STABLE": "Stable",
    "EMPTY": "Empty",
    "DEAD": "Dead",
    "UNKNOWN": "Rebalancing",  # librdkafka has no names for Assigning and Reconciling of the consumer protocol
}


@dataclass(frozen=True, slots=True)
class GroupMember:
    member_id: str
    client_id: str
    host: str
    instance_id: str | None
    assignment: tuple[PartitionKey, ...]


@dataclass(slots=True)
class PartitionLag:
    """`committed_offset` is None if nothing is committed, `end_offset` if the topic does not exist, or if a `failure`
    hides the end."""

    topic: str
    partition: int
    committed_offset: int | None
    end_offset: int | None
    member: GroupMember | None = None
    time_lag_ms: int | None = None
    failure: str = ""

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
    """NoSuchGroup if there is none of this name."""
    futures = cluster.admin().describe_consumer_groups([name], request_timeout=REQUEST_TIMEOUT_S)
    described = cluster.finish(futures[name], f"group {name}", "Describe")
    state = state_name(described.state)
    if state == "Dead":
        raise NoSuchGroup(f"there is no group {name}; `odradek group list` shows those that exist")
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


def read_offsets(cluster: Cluster, name: str) -> dict[PartitionKey, int]:
    """The committed offsets of the group."""
    request = ConsumerGroupTopicPartitions(name)
    futures = cluster.admin().list_consumer_group_offsets([request], request_timeout=REQUEST_TIMEOUT_S)
    found = cluster.finish(futures[name], f"group {name}", "Describe").topic_partitions
    return {(each.topic, each.partition): each.offset for each in found if each.offset >= 0}


def read_lags(cluster: Cluster, group: GroupState) -> list[PartitionLag]:
    """The lag of every partition with a committed offset or an owner, in order."""
    committed = read_offsets(cluster, group.name)
    return lags_of(group, committed, *read_ends(cluster, partitions_of(group, committed)))


def partitions_of(group: GroupState, committed: Iterable[PartitionKey]) -> set[PartitionKey]:
    """Partitions with a committed offset or an owner."""
    return {*committed, *(key for member in group.members for key in member.assignment)}


def lags_of(
    group: GroupState,
    committed: Mapping[PartitionKey, int],
    ends: Mapping[PartitionKey, int],
    failures: Mapping[PartitionKey, str],
) -> list[PartitionLag]:
    owners = {key: member for member in group.members for key in member.assignment}
    return [
        PartitionLag(*key, committed.get(key), ends.get(key), owners.get(key), failure=failures.get(key, ""))
        for key in sorted(partitions_of(group, committed))
    ]


def read_ends(
    cluster: Cluster, keys: Iterable[PartitionKey]
) -> tuple[dict[PartitionKey, int], dict[PartitionKey, str]]:
    """End offsets of partitions, and why those of others are not known. Partitions that do not exist, or that the user
    may not see, are left out."""
    wanted = list(keys)
    # These topics alone are asked for: the names of all would come with all partitions of the cluster.
    topics = cluster.find_topics({topic for topic, _partition in wanted})
    existing = {(topic.name, each.id) for topic in topics for each in topic.partitions}
    leaderless = without_leader(topics)
    led = [key for key in wanted if key in existing and key not in leaderless]
    listed = cluster.list_offsets(led, OffsetSpec.latest())  # type: ignore[no-untyped-call]  # confluent_kafka has no types here
    failures = {key: NO_LEADER for key in wanted if key in leaderless}
    for key, failure in listed.failures.items():
        if isinstance(failure, NotAuthorized):
            raise failure
        if not isinstance(failure, NoSuchTopic):
            failures[key] = failure.message
    return listed.offsets, failures
