"""Repairs of partitions that depend on brokers which cannot serve, that have no leader, or whose eligible leader set is
outdated. Pure.

What is to be repaired follows from the image alone: in-sync sets without brokers that are fenced, shutting down or
gone, leaders from among the active brokers, and no eligible leader set where enough replicas are in sync or the feature
is disabled: the leader commits nothing before that set is empty (KIP-966). So a repair that was interrupted is
continued by the next one, under another controller too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from odradek.controller.decisions.partition_change import Intention, change_partition
from odradek.controller.decisions.partition_drafts import PartitionDrafts
from odradek.controller.decisions.partition_rules import TopicRules
from odradek.protocol.sentinels import NO_LEADER

if TYPE_CHECKING:
    from collections.abc import Collection

    from odradek.configuration.broker_configs import BrokerConfig
    from odradek.metadata.changes import Change
    from odradek.metadata.image import MetadataImage

MAX_PARTITIONS_PER_COMMIT = 10_000


class Repairs(NamedTuple):
    """`is_complete` is False when partitions were left for another commit."""

    changes: list[Change]
    is_complete: bool


def decide_repairs(
    image: MetadataImage,
    config: BrokerConfig,
    *,
    unclean_shutdowns: Collection[int] = (),
    limit: int | None = MAX_PARTITIONS_PER_COMMIT,
) -> Repairs:
    """Brokers in `unclean_shutdowns` may have lost records: they leave the in-sync and the eligible sets."""
    rules = TopicRules(image, config)
    active = rules.active_brokers
    lost = frozenset(unclean_shutdowns)
    drafts = PartitionDrafts()
    for topic in image.topics.values():
        topic_rules = None
        for partition in topic.partitions:
            has_lost = lost and not lost.isdisjoint(partition.in_sync_replicas + partition.eligible_leader_replicas)
            is_healthy = partition.leader != NO_LEADER and active.issuperset(partition.in_sync_replicas)
            if is_healthy and not has_lost and not partition.eligible_leader_replicas:
                continue
            topic_rules = topic_rules or rules.of(topic)
            may_stay = topic_rules.may_have_eligible_leaders(partition.in_sync_replicas, partition.replicas)
            if is_healthy and not has_lost and may_stay:
                continue
            serving = tuple(broker for broker in partition.in_sync_replicas if broker in active and broker not in lost)
            intention = Intention(election=topic_rules.automatic_election, in_sync=serving, unclean_shutdowns=lost)
            changed = change_partition(partition, intention, topic_rules)
            if changed is None:
                continue
            # The partitions of a broker that may have lost records are changed before it can serve.
            if limit is not None and drafts.count >= limit and not has_lost:
                return Repairs(drafts.changes(), is_complete=False)
            drafts.add(topic, changed)
    return Repairs(drafts.changes(), is_complete=True)
