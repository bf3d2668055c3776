"""Replicas on failed log directories: their broker reports them, and other replicas take over. Pure.

The replica leaves the in-sync and the eligible set, because its records cannot be read. Where no other replica has the
records, the partition stays as it is: a restart with the repaired disk serves it again.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from odradek.controller.decisions.partition_change import Intention, change_partition
from odradek.controller.decisions.partition_drafts import PartitionDrafts, find_partition
from odradek.controller.decisions.partition_rules import TopicRules
from odradek.protocol.errors import ErrorCode
from odradek.protocol.sentinels import NO_LEADER

if TYPE_CHECKING:
    import uuid
    from collections.abc import Sequence

    from odradek.controller.decisions.topics import Cluster
    from odradek.metadata.changes import Change
    from odradek.metadata.entities import PartitionImage

MAX_OFFLINE_REPLICAS = 1_000  # in one request


class OfflineReplica(NamedTuple):
    topic_id: uuid.UUID
    partition_index: int


def counts_on(partition: PartitionImage, node_id: int) -> bool:
    """Whether the partition depends on the broker's replica: it leads, may be elected, or is waited for."""
    return node_id in (partition.leader, *partition.in_sync_replicas, *partition.eligible_leader_replicas)


def decide_offline_replicas(
    node_id: int, broker_epoch: int, replicas: Sequence[OfflineReplica], cluster: Cluster
) -> tuple[ErrorCode, list[Change]]:
    """Replicas of partitions that do not exist any more are ignored."""
    broker = cluster.image.brokers.get(node_id)
    if broker is None or broker.broker_epoch != broker_epoch:
        return ErrorCode.STALE_BROKER_EPOCH, []
    if len(replicas) > MAX_OFFLINE_REPLICAS:
        return ErrorCode.INVALID_REQUEST, []
    rules = TopicRules(cluster.image, cluster.config)
    others = rules.active_brokers - {node_id}
    drafts = PartitionDrafts()
    for topic_id, index in replicas:
        topic = cluster.image.topic_by_id(topic_id)
        partition = find_partition(topic, index)
        if topic is None or partition is None or drafts.has_changed(topic, index) or not counts_on(partition, node_id):
            continue
        topic_rules = replace(rules.of(topic), can_lead=others.__contains__)
        intention = Intention(
            election=topic_rules.automatic_election,
            in_sync=tuple(each for each in partition.in_sync_replicas if each != node_id),
            unclean_shutdowns=(node_id,),
        )
        changed = change_partition(partition, intention, topic_rules)
        if changed is None:
            continue
        has_records = {*changed.in_sync_replicas, *changed.eligible_leader_replicas} - {node_id}
        if has_records or changed.leader != NO_LEADER:
            drafts.add(topic, changed)
    return ErrorCode.NONE, drafts.changes()
