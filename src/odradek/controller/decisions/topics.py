"""The controller's decisions about topics: pure functions from an image and a request to changes or refusals.

Checks have Apache Kafka's order, and refusals its messages.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import field, replace
from typing import TYPE_CHECKING, NamedTuple

from odradek.configuration.config_types import ConfigResourceType
from odradek.configuration.topic_configs import check_topic_configs
from odradek.controller.decisions.partition_rules import active_brokers
from odradek.controller.decisions.placement import Replicas, check_assignment, place_replicas, usable_brokers
from odradek.controller.decisions.reassignment import Reassignment
from odradek.conventions.dataclass import dataclass
from odradek.metadata.changes import ConfigsChanged, PartitionsAdded, PartitionsChanged, TopicCreated
from odradek.metadata.entities import PartitionImage, TopicImage
from odradek.metadata.streams import is_stream_topic, split_name
from odradek.metadata.topic_names import CLUSTER_METADATA_TOPIC, collision_key, illegal_name_reason, is_internal
from odradek.protocol.errors import ErrorCode
from odradek.protocol.refusal import Refusal
from odradek.security.quotas.mutation_quota import UNLIMITED_MUTATIONS, MutationQuota

if TYPE_CHECKING:
    import uuid
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from odradek.configuration.broker_configs import BrokerConfig
    from odradek.metadata.changes import Change
    from odradek.metadata.image import MetadataImage

MAX_PARTITIONS_PER_REQUEST = 10_000
QUOTA_EXCEEDED = Refusal(ErrorCode.THROTTLING_QUOTA_EXCEEDED, "The throttling quota has been exceeded.")
_TOO_MANY_PARTITIONS = Refusal(ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request.")


class Assignment(NamedTuple):
    """The brokers of one partition as the client assigned them; the first one leads."""

    partition_index: int
    broker_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTopic:
    """A topic to create; −1 stands for the broker's default."""

    name: str
    partition_count: int = -1
    replication_factor: int = -1
    assignments: Sequence[Assignment] = ()
    configs: Mapping[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewPartitions:
    """`count` is the total number of partitions after the request."""

    name: str
    count: int
    assignments: Sequence[tuple[int, ...]] | None = None


@dataclass(frozen=True, slots=True)
class Cluster:
    """The inputs of a decision: the image, the effective configuration, and randomness."""

    image: MetadataImage
    config: BrokerConfig
    random_below: Callable[[int], int]
    new_topic_id: Callable[[], uuid.UUID]


def default_partitions(topic: str, image: MetadataImage, config: BrokerConfig) -> int:
    """The number of partitions of a new topic that names none: that of its stream, or of the broker."""
    stream = image.stream_of(topic)
    return config.num_partitions if stream is None else stream.default_partitions


def _partition_count(request: NewTopic, image: MetadataImage, config: BrokerConfig) -> int:
    given = request.partition_count
    return default_partitions(request.name, image, config) if given == -1 else given


def check_request_size(requests: Iterable[NewTopic], image: MetadataImage, config: BrokerConfig) -> Refusal | None:
    total = sum(len(request.assignments) or max(_partition_count(request, image, config), 0) for request in requests)
    return _TOO_MANY_PARTITIONS if total > MAX_PARTITIONS_PER_REQUEST else None


def check_additions_size(requests: Iterable[NewPartitions], image: MetadataImage) -> Refusal | None:
    """Called before `decide_partitions`, which makes the partitions of each topic."""
    total = 0
    for request in requests:
        topic = image.topics.get(request.name)
        if topic is not None and request.assignments is None:
            total += max(request.count - len(topic.partitions), 0)
        elif topic is not None:
            total += len(request.assignments or ())
    return _TOO_MANY_PARTITIONS if total > MAX_PARTITIONS_PER_REQUEST else None


def decide_topics(
    requests: Sequence[NewTopic], cluster: Cluster
) -> list[tuple[NewTopic, tuple[TopicImage, list[Change]] | Refusal]]:
    """One decision for each request; of new topics whose names collide with each other, the first is created."""
    too_many = check_request_size(requests, cluster.image, cluster.config)
    claimed: dict[str, str] = {}
    decisions: list[tuple[NewTopic, tuple[TopicImage, list[Change]] | Refusal]] = []
    for request in requests:
        decision = too_many or decide_topic(request, cluster)
        key = collision_key(request.name)
        if key is not None and not isinstance(decision, Refusal):
            if key in claimed:
                decision = _refuse_collision(request.name, claimed[key])
            else:
                claimed[key] = request.name
        decisions.append((request, decision))
    return decisions


def decide_topic(request: NewTopic, cluster: Cluster) -> tuple[TopicImage, list[Change]] | Refusal:
    refusal = _check_new_name(request.name, cluster.image) or _check_new_configs(request, cluster)
    if refusal is not None:
        return refusal
    placed = _place_as_assigned(request, cluster) if request.assignments else _place(request, cluster)
    if isinstance(placed, Refusal):
        return placed
    topic = TopicImage(
        name=request.name,
        topic_id=cluster.new_topic_id(),
        partitions=_new_partitions(placed, 0, cluster.image),
        is_internal=is_internal(request.name),
    )
    changes: list[Change] = [TopicCreated(topic)]
    if request.configs:
        changes.append(ConfigsChanged(ConfigResourceType.TOPIC, request.name, request.configs))
    return topic, changes


def duplicates(names: Iterable[str]) -> Mapping[str, int]:
    """The names that come more than once, in their order, and how often."""
    return {name: count for name, count in Counter(names).items() if count > 1}


def _check_new_name(name: str, image: MetadataImage) -> Refusal | None:
    if name == CLUSTER_METADATA_TOPIC:
        return Refusal(ErrorCode.INVALID_REQUEST, f"Creation of internal topic {name} is prohibited.")
    if name in image.topics:
        return Refusal(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
    reason = illegal_name_reason(name)
    if reason is None and is_stream_topic(name) and image.stream_of(name) is None:
        reason = f"Topic name is invalid: there is no stream '{split_name(name).path}' for '{name}'"
    if image.full_name(name) != name:
        reason = f"Topic name is invalid: '{name}' is the alias of '{image.full_name(name)}'"
    if reason is not None:
        return Refusal(ErrorCode.INVALID_TOPIC_EXCEPTION, reason)
    key = collision_key(name)
    if key is not None and key in image.topics_by_collision_key:
        return _refuse_collision(name, image.topics_by_collision_key[key])
    return None


def _refuse_collision(name: str, other: str) -> Refusal:
    return Refusal(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic '{name}' collides with existing topic: {other}")


def _check_new_configs(request: NewTopic, cluster: Cluster) -> Refusal | None:
    nulls = [name for name, value in request.configs.items() if value is None]
    if nulls:
        return Refusal(ErrorCode.INVALID_CONFIG, f"Null value not supported for topic configs: {','.join(nulls)}")
    if not request.configs:
        return None
    own = {name: value for name, value in request.configs.items() if value is not None}
    return check_topic_configs(cluster.image.with_inherited(request.name, own), cluster.config)


def _place(request: NewTopic, cluster: Cluster) -> list[Replicas] | Refusal:
    if request.replication_factor < -1 or request.replication_factor == 0:
        return Refusal(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "Replication factor must be larger than 0, or -1 to use the default value.",
        )
    if request.partition_count < -1 or request.partition_count == 0:
        return Refusal(ErrorCode.INVALID_PARTITIONS, "Number of partitions was set to an invalid non-positive value.")
    config = cluster.config
    return place_replicas(
        usable_brokers(cluster.image.brokers, config.inter_broker_listener_name),
        _partition_count(request, cluster.image, config),
        config.default_replication_factor if request.replication_factor == -1 else request.replication_factor,
        cluster.random_below,
    )


def _place_as_assigned(request: NewTopic, cluster: Cluster) -> list[Replicas] | Refusal:
    counts = ((request.replication_factor, "replication factor"), (request.partition_count, "numPartitions"))
    for value, name in counts:
        if value != -1:
            return Refusal(
                ErrorCode.INVALID_REQUEST,
                f"A manual partition assignment was specified, but {name} was not set to -1.",
            )
    placed: dict[int, Replicas] = {}
    replication_factor = None
    for index, broker_ids in request.assignments:
        if index in placed:
            return Refusal(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"Found multiple manual partition assignments for partition {index}",
            )
        refusal = check_assignment(broker_ids, cluster.image.brokers, replication_factor) or _check_active(
            index, broker_ids, cluster.image
        )
        if refusal is not None:
            return refusal
        replication_factor = len(broker_ids)
        placed[index] = tuple(broker_ids)
    if sorted(placed) != list(range(len(placed))):
        return Refusal(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT, "partitions should be a consecutive 0-based integer sequence"
        )
    return [placed[index] for index in range(len(placed))]


def decide_partitions(
    request: NewPartitions, cluster: Cluster, mutations: MutationQuota = UNLIMITED_MUTATIONS
) -> list[Change] | Refusal:
    topic = cluster.image.topics.get(request.name)
    if topic is None:
        return Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    current = len(topic.partitions)
    refusal = _check_count(request, current)
    if refusal is not None:
        return refusal
    if not mutations.allows(request.count - current):
        return QUOTA_EXCEEDED
    replication_factor = len(Reassignment.of(topic.partitions[0]).target)  # its replicas include those that leave
    placed: list[Replicas] | Refusal
    if request.assignments is None:
        placed = place_replicas(
            usable_brokers(cluster.image.brokers, cluster.config.inter_broker_listener_name),
            request.count - current,
            replication_factor,
            cluster.random_below,
        )
        if isinstance(placed, Refusal):
            return placed
    else:
        placed = [tuple(broker_ids) for broker_ids in request.assignments]
        for index, replicas in enumerate(placed, current):
            refusal = check_assignment(replicas, cluster.image.brokers, replication_factor) or _check_active(
                index, replicas, cluster.image
            )
            if refusal is not None:
                return refusal
    return [PartitionsAdded(topic.topic_id, _new_partitions(placed, current, cluster.image))]


def _check_count(request: NewPartitions, current: int) -> Refusal | None:
    additional = request.count - current
    if additional == 0:
        return Refusal(ErrorCode.INVALID_PARTITIONS, f"Topic already has {current} partition(s).")
    if additional < 0:
        return Refusal(
            ErrorCode.INVALID_PARTITIONS,
            f"The topic {request.name} currently has {current} partition(s); {request.count} would not be an increase.",
        )
    if request.assignments is not None and len(request.assignments) != additional:
        return Refusal(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"Attempted to add {additional} additional partition(s), but only {len(request.assignments)} "
            "assignment(s) were specified.",
        )
    return None


def _check_active(index: int, replicas: Sequence[int], image: MetadataImage) -> Refusal | None:
    if any(image.brokers[broker].is_active for broker in replicas):
        return None
    return Refusal(
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        f"All brokers specified in the manual partition assignment for partition {index} are fenced or in controlled "
        "shutdown.",
    )


def _new_partitions(placed: Iterable[Replicas], first_index: int, image: MetadataImage) -> tuple[PartitionImage, ...]:
    """Only active brokers are in sync at first; the first of them leads."""
    active = active_brokers(image)
    partitions = []
    for index, replicas in enumerate(placed, first_index):
        in_sync = replicas if active.issuperset(replicas) else tuple(each for each in replicas if each in active)
        partitions.append(PartitionImage(index, replicas, in_sync, in_sync[0], 0, 0))
    return tuple(partitions)


def decide_new_leader_epochs(image: MetadataImage, leader: int) -> list[Change]:
    """Each partition that this broker leads gets its next leader epoch: requests from before the restart are fenced."""
    changes: list[Change] = []
    for topic in image.topics.values():
        led = tuple(
            replace(partition, leader_epoch=partition.leader_epoch + 1, partition_epoch=partition.partition_epoch + 1)
            for partition in topic.partitions
            if partition.leader == leader
        )
        if led:
            changes.append(PartitionsChanged(topic.topic_id, led))
    return changes
