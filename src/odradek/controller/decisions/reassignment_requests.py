"""AlterPartitionReassignments and ListPartitionReassignments. Pure.

A reassignment adds its new replicas at once; the old ones are removed when all that stay are in sync, by the change
that brings the last of them into the in-sync set (`partition_change`).

Departure from Kafka: a reassignment that replaces a running one always replaces its sets of adding and removing
replicas. In Kafka an empty set leaves the previous one, so a reassignment to all present replicas would not stop
their removal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from odradek.controller.decisions.leader_election import ElectionKind
from odradek.controller.decisions.partition_change import Intention, change_partition
from odradek.controller.decisions.partition_drafts import PartitionDrafts, find_partition
from odradek.controller.decisions.partition_rules import TopicRules
from odradek.controller.decisions.placement import check_assignment
from odradek.controller.decisions.reassignment import Reassignment, without
from odradek.protocol.errors import ErrorCode
from odradek.protocol.refusal import Refusal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from odradek.controller.decisions.topics import Cluster
    from odradek.metadata.changes import Change
    from odradek.metadata.entities import PartitionImage, TopicImage
    from odradek.metadata.image import MetadataImage


class NewReplicas(NamedTuple):
    """The replicas that one partition is to have; None cancels a reassignment in progress."""

    topic: str
    partition_index: int
    replicas: tuple[int, ...] | None


class ReassignmentResult(NamedTuple):
    topic: str
    partition_index: int
    refusal: Refusal | None = None


def decide_reassignments(
    requests: Sequence[NewReplicas], cluster: Cluster, *, allow_replication_factor_change: bool = True
) -> tuple[list[ReassignmentResult], list[Change]]:
    rules = TopicRules(cluster.image, cluster.config)
    drafts = PartitionDrafts()
    results = []
    for request in requests:
        decision = _decide(request, cluster.image, rules, drafts, allow_replication_factor_change)
        results.append(ReassignmentResult(request.topic, request.partition_index, decision))
    return results, drafts.changes()


def _decide(
    request: NewReplicas, image: MetadataImage, rules: TopicRules, drafts: PartitionDrafts, allow_factor_change: bool
) -> Refusal | None:
    topic = image.topics.get(request.topic)
    if topic is None:
        return Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find a topic named {request.topic}.")
    partition = find_partition(topic, request.partition_index)
    if partition is None:
        return Refusal(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find partition {request.topic}:{request.partition_index}."
        )
    if drafts.has_changed(topic, request.partition_index):
        return Refusal(
            ErrorCode.INVALID_REQUEST, f"Partition {request.topic}:{request.partition_index} is named twice."
        )
    intention = (
        _cancel(topic, partition, rules)
        if request.replicas is None
        else _reassign(partition, request.replicas, image, allow_factor_change)
    )
    if isinstance(intention, Refusal):
        return intention
    changed = change_partition(partition, intention, rules.of(topic))
    if changed is not None:
        drafts.add(topic, changed)
    return None


def _reassign(
    partition: PartitionImage, target: tuple[int, ...], image: MetadataImage, allow_factor_change: bool
) -> Intention | Refusal:
    present = len(Reassignment.of(partition).target)
    if not allow_factor_change and len(target) != present:
        return Refusal(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"The replication factor is changed from {present} to {len(target)}",
        )
    refusal = check_assignment(target, image.brokers, None)
    if refusal is not None:
        return refusal
    return Intention(election=ElectionKind.ONLINE, reassignment=Reassignment.to(partition.replicas, target))


def _cancel(topic: TopicImage, partition: PartitionImage, rules: TopicRules) -> Intention | Refusal:
    running = Reassignment.of(partition)
    if not running.is_running:
        return Refusal(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
    original = running.original
    topic_rules = rules.of(topic)
    in_sync = without(partition.in_sync_replicas, running.adding)
    if not in_sync and not partition.eligible_leader_replicas:
        # All replicas in sync are new ones: an old one that leads in their place may lack records.
        if not topic_rules.allows_unclean:
            return Refusal(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"Unable to revert partition assignment for {topic.name}:{partition.index} because it would require "
                "an unclean leader election.",
            )
        in_sync = original[:1]
    return Intention(
        election=topic_rules.automatic_election,
        in_sync=in_sync,
        reassignment=Reassignment(original, (), ()),
    )


def list_reassignments(
    image: MetadataImage, partitions: Mapping[str, Sequence[int]] | None = None
) -> dict[str, list[PartitionImage]]:
    """The partitions of running reassignments by topic; all of them, or those of the named partitions that exist."""
    listed: dict[str, list[PartitionImage]] = {}
    names = image.topics if partitions is None else partitions
    for name in names:
        topic = image.topics.get(name)
        if topic is None:
            continue
        chosen = topic.partitions if partitions is None else _named(topic, partitions[name])
        running = [partition for partition in chosen if Reassignment.of(partition).is_running]
        if running:
            listed[name] = running
    return listed


def _named(topic: TopicImage, indexes: Sequence[int]) -> list[PartitionImage]:
    found = (find_partition(topic, index) for index in indexes)
    return [partition for partition in found if partition is not None]
