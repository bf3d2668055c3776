"""The state of a cluster as values: brokers, partitions with their leaders and in-sync replicas, reassignments.

`read_state` asks the brokers; the rest is pure.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from odradek.admin.broker_requests import check
from odradek.admin.errors import AnswerTimeout, NotAuthorized
from odradek.admin.request_parts import TOPICS_PER_REQUEST, in_parts
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from odradek.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from odradek.protocol.messages.metadata import MetadataRequest, MetadataResponse

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from odradek.admin.broker_requests import BrokerRequests, DescribedCluster, KnownBroker
    from odradek.admin.controller_lookup import ControllerLookup

TOPIC_RESOURCE = 2
MIN_IN_SYNC = "min.insync.replicas"
NO_LEADER = -1
NO_CONTROLLER = frozenset({ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_CONTROLLER})


@dataclass(frozen=True, slots=True)
class PartitionState:
    topic: str
    index: int
    leader: int
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]
    min_in_sync: int = 1
    adding: tuple[int, ...] = ()  # of a running reassignment
    removing: tuple[int, ...] = ()

    @property
    def name(self) -> str:
        return f"{self.topic}-{self.index}"

    @property
    def is_offline(self) -> bool:
        return self.leader == NO_LEADER

    @property
    def is_reassigned(self) -> bool:
        return bool(self.adding or self.removing)

    @property
    def target(self) -> tuple[int, ...]:
        """The replicas after the running reassignment, or the present ones."""
        return tuple(replica for replica in self.replicas if replica not in self.removing)

    @property
    def is_under_replicated(self) -> bool:
        """Replicas that a reassignment adds do not count, as in Kafka."""
        return bool(set(self.replicas) - set(self.adding) - set(self.in_sync))

    @property
    def is_under_min_in_sync(self) -> bool:
        return len(self.in_sync) < min(self.min_in_sync, len(self.replicas))

    @property
    def has_other_leader(self) -> bool:
        """Whether another replica than the preferred one leads, and no reassignment will change that."""
        preferred = self.replicas[0] if self.replicas else self.leader
        return not self.is_offline and self.leader != preferred and preferred not in self.adding

    @property
    def problems(self) -> list[str]:
        found = {
            "offline": self.is_offline,
            "under min ISR": self.is_under_min_in_sync,
            "under-replicated": self.is_under_replicated,
            "not on the preferred leader": self.has_other_leader,
        }
        return [name for name, is_present in found.items() if is_present]


@dataclass(frozen=True, slots=True)
class ClusterState:
    cluster: DescribedCluster
    partitions: Sequence[PartitionState]
    knows_reassignments: bool = True  # False while no controller answers, or if the user may not know them
    is_restricted: bool = False  # the user may not describe the cluster, and sees some of its topics only

    @property
    def is_healthy(self) -> bool:
        """Every broker takes part, and every partition has a leader and all its replicas in sync."""
        return all(not broker.is_fenced for broker in self.cluster.brokers.values()) and not any(
            each.is_offline or each.is_under_replicated for each in self.partitions
        )

    @property
    def brokers(self) -> dict[int, KnownBroker]:
        return self.cluster.brokers

    def counts(self) -> BrokerCounts:
        counts = BrokerCounts()
        for partition in self.partitions:
            if not partition.is_offline:
                counts.leads[partition.leader] += 1
            counts.replicas.update(partition.replicas)
            counts.in_sync.update(partition.in_sync)
            counts.preferred.update(partition.replicas[:1])
        return counts

    def of_topics(self, topics: Iterable[str]) -> list[PartitionState]:
        names = set(topics)
        return [partition for partition in self.partitions if partition.topic in names]


@dataclass(slots=True)
class BrokerCounts:
    """By broker."""

    leads: Counter[int] = field(default_factory=Counter)
    replicas: Counter[int] = field(default_factory=Counter)
    in_sync: Counter[int] = field(default_factory=Counter)
    preferred: Counter[int] = field(default_factory=Counter)


class MinInSync:
    """`min.insync.replicas` of topics, asked once for each."""

    def __init__(self, requests: BrokerRequests) -> None:
        self._requests = requests
        self._known: dict[str, int] = {}

    def of(self, topics: Iterable[str]) -> Mapping[str, int]:
        missing = [topic for topic in topics if topic not in self._known]
        for names in in_parts(missing, TOPICS_PER_REQUEST):
            resources = [
                DescribeConfigsResource(
                    resource_type=TOPIC_RESOURCE, resource_name=topic, configuration_keys=[MIN_IN_SYNC]
                )
                for topic in names
            ]
            answer = self._requests.ask_any(DescribeConfigsRequest(resources=resources), DescribeConfigsResponse, 4)
            for result in answer.results:
                values = [each.value for each in result.configs if each.name == MIN_IN_SYNC]
                self._known[result.resource_name] = int(values[0] or 1) if values else 1
        return self._known

    def forget(self) -> None:
        """Ask again: the settings may have changed."""
        self._known.clear()


def read_state(
    requests: BrokerRequests,
    min_in_sync: MinInSync | None = None,
    controllers: ControllerLookup | None = None,
    *,
    may_lack_reassignments: bool = False,
    asks_reassignments: bool = True,
) -> ClusterState:
    """With `may_lack_reassignments`, a user without Describe on the cluster gets the state without reassignments.

    Without `controllers`, the controller is the one that DescribeCluster names.
    """
    described = requests.describe()
    cluster = described if controllers is None else controllers.complete(described)
    metadata = requests.ask_any(MetadataRequest(topics=None, allow_auto_topic_creation=False), MetadataResponse, 12)
    moving, is_restricted = None, False
    try:
        moving = read_reassignments(requests) if asks_reassignments else None
    except NotAuthorized:
        if not may_lack_reassignments:
            raise
        is_restricted = True
    known = moving or {}
    topics = [topic for topic in metadata.topics if not topic.error_code and topic.name]
    minimum = (min_in_sync or MinInSync(requests)).of(topic.name or "" for topic in topics)
    partitions = [
        PartitionState(
            topic.name or "",
            each.partition_index,
            each.leader_id,
            tuple(each.replica_nodes),
            tuple(each.isr_nodes),
            minimum.get(topic.name or "", 1),
            *known.get((topic.name or "", each.partition_index), ((), ())),
        )
        for topic in topics
        for each in topic.partitions
    ]
    partitions.sort(key=lambda each: (each.topic, each.index))
    return ClusterState(cluster, partitions, moving is not None, is_restricted)


def read_reassignments(
    requests: BrokerRequests,
) -> dict[tuple[str, int], tuple[tuple[int, ...], tuple[int, ...]]] | None:
    """Adding and removing replicas of the partitions that are reassigned; None while no controller answers."""
    request = ListPartitionReassignmentsRequest(topics=None, timeout_ms=round(requests.timeout_s * 500))
    try:
        answer = requests.ask_any(request, ListPartitionReassignmentsResponse, 0, is_forwarded=True)
    except AnswerTimeout:
        return None  # brokers of Apache Kafka wait for a controller longer than the request says
    if answer.error_code in NO_CONTROLLER:
        return None
    check(answer.error_code, answer.error_message, "running reassignments", "Describe")
    return {
        (topic.name, each.partition_index): (tuple(each.adding_replicas), tuple(each.removing_replicas))
        for topic in answer.topics
        for each in topic.partitions
    }
