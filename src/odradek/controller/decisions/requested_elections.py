"""Elections that a user asks for (ElectLeaders), and preferred leaders that are given back automatically. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from odradek.controller.decisions.leader_election import ElectionKind
from odradek.controller.decisions.partition_change import Intention, change_partition
from odradek.controller.decisions.partition_drafts import PartitionDrafts, find_partition
from odradek.controller.decisions.partition_rules import TopicRules
from odradek.protocol.errors import ErrorCode
from odradek.protocol.refusal import Refusal
from odradek.protocol.sentinels import NO_LEADER

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odradek.controller.decisions.topics import Cluster
    from odradek.metadata.changes import Change
    from odradek.metadata.entities import PartitionImage

MAX_ELECTIONS_PER_ROUND = 1000  # of the automatic return of preferred leaders


class ElectionResult(NamedTuple):
    topic: str
    partition_index: int
    refusal: Refusal | None = None


def decide_elections(
    kind: ElectionKind, partitions: Sequence[tuple[str, int]] | None, cluster: Cluster
) -> tuple[list[ElectionResult], list[Change]]:
    """None stands for all partitions; those that need no election are then not in the results."""
    rules = TopicRules(cluster.image, cluster.config)
    drafts = PartitionDrafts()
    if partitions is not None:
        results = [ElectionResult(*each, _elect(kind, *each, cluster, rules, drafts)) for each in partitions]
    else:
        everything = [
            (topic.name, partition.index) for topic in cluster.image.topics.values() for partition in topic.partitions
        ]
        outcomes = [ElectionResult(*each, _elect(kind, *each, cluster, rules, drafts)) for each in everything]
        results = [
            each for each in outcomes if each.refusal is None or each.refusal.error is not ErrorCode.ELECTION_NOT_NEEDED
        ]
    return results, drafts.changes()


def _elect(
    kind: ElectionKind, name: str, index: int, cluster: Cluster, rules: TopicRules, drafts: PartitionDrafts
) -> Refusal | None:
    topic = cluster.image.topics.get(name)
    if topic is None:
        return Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such topic as {name}")
    partition = find_partition(topic, index)
    if partition is None:
        return Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such partition as {name}-{index}")
    has_wanted_leader = (
        _has_preferred_leader(partition) if kind is ElectionKind.PREFERRED else partition.leader != NO_LEADER
    )
    if has_wanted_leader or drafts.has_changed(topic, index):
        return Refusal(ErrorCode.ELECTION_NOT_NEEDED, "Leader election not needed for topic partition.")
    changed = change_partition(partition, Intention(election=kind), rules.of(topic))
    if changed is None:
        return _NOT_AVAILABLE[kind]
    drafts.add(topic, changed)
    return None


_NOT_AVAILABLE = {
    ElectionKind.PREFERRED: Refusal(
        ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, "The preferred leader was not available."
    ),
    ElectionKind.UNCLEAN: Refusal(
        ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE, "Eligible topic partition leaders are not available."
    ),
}


def decide_preferred_leaders(cluster: Cluster, *, limit: int = MAX_ELECTIONS_PER_ROUND) -> tuple[int, list[Change]]:
    """Give partitions back to their first replica, where it is in sync and active. The number of partitions that
    change; `limit` when there may be more."""
    rules = TopicRules(cluster.image, cluster.config)
    drafts = PartitionDrafts()
    for topic in cluster.image.topics.values():
        for partition in topic.partitions:
            first = partition.replicas[0]
            if partition.leader == first or first not in partition.in_sync_replicas or not rules.can_lead(first):
                continue
            if drafts.count >= limit:
                return drafts.count, drafts.changes()
            changed = change_partition(partition, Intention(election=ElectionKind.PREFERRED), rules.of(topic))
            if changed is not None:
                drafts.add(topic, changed)
    return drafts.count, drafts.changes()


def _has_preferred_leader(partition: PartitionImage) -> bool:
    return partition.leader == partition.replicas[0]
