"""The state of a cluster as values: brokers and the controller, partitions with their leaders and in-sync replicas,
reassignments. What begins with `read_` asks the brokers, and `unregister_broker` changes the cluster;
the rest is pure.

A broker of a KRaft cluster answers DescribeCluster with the id of any live broker as the controller's, because clients
cannot reach controllers (KIP-590). Such brokers serve DescribeQuorum, which names the leader of the quorum. They
forward it to the controller, and do not answer for a minute while there is none.
"""

from __future__ import annotations

import math
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field

from odradek.admin.broker_requests import BrokerRequests, DescribedCluster, KnownBroker, describe_resources
from odradek.admin.errors import AnswerTimeout, NotAuthorized, check
from odradek.conventions.dataclass import dataclass
from odradek.conventions.failures import Failure
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages import describe_quorum
from odradek.protocol.messages import list_partition_reassignments as listing
from odradek.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from odradek.protocol.messages.metadata import MetadataRequest, MetadataResponse
from odradek.protocol.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse

METADATA_TOPIC = "__cluster_metadata"
AFTER_REFUSAL_S = 60.0  # DescribeQuorum needs Describe on the cluster
AFTER_TIMEOUT_S = 15.0
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
    """Numbers of partitions by broker id."""

    leads: Counter[int] = field(default_factory=Counter)
    replicas: Counter[int] = field(default_factory=Counter)
    in_sync: Counter[int] = field(default_factory=Counter)
    preferred: Counter[int] = field(default_factory=Counter)


def led_partitions(
    brokers: Mapping[int, KnownBroker], partitions: Iterable[PartitionState]
) -> Iterator[tuple[KnownBroker, list[PartitionState]]]:
    """The partitions of each leader that runs."""
    by_leader: dict[int, list[PartitionState]] = defaultdict(list)
    for each in partitions:
        by_leader[each.leader].append(each)
    for leader, led in by_leader.items():
        broker = brokers.get(leader)
        if broker is not None and not broker.is_fenced:
            yield broker, led


class MinInSync:
    """Reads `min.insync.replicas` of each topic once."""

    def __init__(self, requests: BrokerRequests) -> None:
        self._requests = requests
        self._known: dict[str, int] = {}

    def of(self, topics: Iterable[str]) -> Mapping[str, int]:
        missing = [topic for topic in topics if topic not in self._known]
        for result in describe_resources(self._requests, TOPIC_RESOURCE, missing, [MIN_IN_SYNC]):
            values = [each.value for each in result.configs if each.name == MIN_IN_SYNC]
            self._known[result.resource_name] = int(values[0] or 1) if values else 1
        return self._known

    def forget(self) -> None:
        """Ask again: the settings may have changed."""
        self._known.clear()


def read_state(
    requests: BrokerRequests, min_in_sync: MinInSync | None = None, controllers: ControllerLookup | None = None, *,
    may_lack_reassignments: bool = False, asks_reassignments: bool = True,
) -> ClusterState:  # fmt: skip
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
            topic.name or "", each.partition_index, each.leader_id, tuple(each.replica_nodes), tuple(each.isr_nodes),
            minimum.get(topic.name or "", 1), *known.get((topic.name or "", each.partition_index), ((), ())),
        )
        for topic in topics
        for each in topic.partitions
    ]  # fmt: skip
    partitions.sort(key=lambda each: (each.topic, each.index))
    return ClusterState(cluster, partitions, moving is not None, is_restricted)


def read_reassignments(
    requests: BrokerRequests,
) -> dict[tuple[str, int], tuple[tuple[int, ...], tuple[int, ...]]] | None:
    """Adding and removing replicas of the partitions that are reassigned; None while no controller answers."""
    request = listing.ListPartitionReassignmentsRequest(topics=None, timeout_ms=round(requests.timeout_s * 500))
    try:
        answer = requests.ask_any(request, listing.ListPartitionReassignmentsResponse, 0, is_forwarded=True)
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


class ControllerLookup:
    """Finds the controller. Whether the brokers belong to a KRaft cluster is asked once."""

    def __init__(self, requests: BrokerRequests) -> None:
        self._requests = requests
        self._is_kraft: bool | None = None
        self._asks_from = -math.inf  # time.monotonic()

    def complete(self, described: DescribedCluster) -> DescribedCluster:
        """The description with the real controller, or with none if the cluster does not report it."""
        if self._is_kraft is None:
            answer = self._requests.ask_any(ApiVersionsRequest(), ApiVersionsResponse, 0)
            needed = describe_quorum.DescribeQuorumRequest.api_key
            self._is_kraft = any(each.api_key == needed for each in answer.api_keys)
        if not self._is_kraft:
            return described
        leader = self._read_leader()
        if leader is None:
            return described._replace(controller_id=None, knows_controller=False)
        return described._replace(controller_id=leader if leader >= 0 else None)

    def _read_leader(self) -> int | None:
        """−1 if the quorum has no leader; None if it is not known."""
        if time.monotonic() < self._asks_from:
            return None
        partitions = [describe_quorum.DescribeQuorumPartition(partition_index=0)]
        topic = describe_quorum.DescribeQuorumTopic(topic_name=METADATA_TOPIC, partitions=partitions)
        request = describe_quorum.DescribeQuorumRequest(topics=[topic])
        try:
            answer = self._requests.ask_any(request, describe_quorum.DescribeQuorumResponse, 0, is_forwarded=True)
        except AnswerTimeout:
            self._asks_from = time.monotonic() + AFTER_TIMEOUT_S
            return None
        except Failure:
            return None
        if answer.error_code:
            self._asks_from = time.monotonic() + AFTER_REFUSAL_S
            return None
        found = (each for topic in answer.topics for each in topic.partitions)
        return next((each.leader_id for each in found if not each.error_code), None)


def unregister_broker(requests: BrokerRequests, broker_id: int) -> None:
    """Remove a broker that is fenced and has no replicas from the metadata."""
    answer = requests.ask_controller(UnregisterBrokerRequest(broker_id=broker_id), UnregisterBrokerResponse, 0)
    check(answer.error_code, answer.error_message, f"broker {broker_id}", "Alter")
