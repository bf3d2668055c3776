"""Replicas of brokers that stay away for long are made on other brokers. Pure.

A replica that was on such a broker is reassigned to an active one, as a user's reassignment would do it: the partition
keeps its other replicas, and the absent one is removed when the new one is in sync. Nothing is replaced while a
partition is being reassigned, has no leader, or when all active brokers have a replica already.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from odradek.controller.decisions.leader_election import ElectionKind
from odradek.controller.decisions.partition_change import Intention, change_partition
from odradek.controller.decisions.partition_drafts import PartitionDrafts
from odradek.controller.decisions.partition_rules import TopicRules
from odradek.controller.decisions.placement import usable_brokers
from odradek.controller.decisions.reassignment import Reassignment
from odradek.protocol.sentinels import NO_LEADER

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from odradek.controller.decisions.placement import UsableBroker
    from odradek.controller.decisions.topics import Cluster
    from odradek.metadata.changes import Change

MAX_RUNNING = 100  # reassignments at a time, so that new replicas do not all fetch at once


def decide_replacements(
    absent_brokers: Collection[int], cluster: Cluster, *, limit: int = MAX_RUNNING
) -> tuple[int, list[Change]]:
    """The number of partitions that get a new replica. `absent_brokers` are those that have been away long enough; one
    that is active has returned and keeps its replicas."""
    image = cluster.image
    rules = TopicRules(image, cluster.config)
    absent = frozenset(absent_brokers) - rules.active_brokers
    if not absent:
        return 0, []
    load = Counter(
        broker for topic in image.topics.values() for partition in topic.partitions for broker in partition.replicas
    )
    brokers = {
        each.node_id: each
        for each in usable_brokers(image.brokers, cluster.config.inter_broker_listener_name)
        if each.is_active
    }
    running = sum(
        Reassignment.of(partition).is_running for topic in image.topics.values() for partition in topic.partitions
    )
    drafts = PartitionDrafts()
    for topic in image.topics.values():
        for partition in topic.partitions:
            if running + drafts.count >= limit:
                return drafts.count, drafts.changes()
            if Reassignment.of(partition).is_running or partition.leader == NO_LEADER:
                continue
            if absent.isdisjoint(partition.replicas):
                continue
            target = _replace(partition.replicas, absent, brokers, load)
            if target == partition.replicas:
                continue
            reassignment = Reassignment.to(partition.replicas, target)
            changed = change_partition(
                partition, Intention(election=ElectionKind.ONLINE, reassignment=reassignment), rules.of(topic)
            )
            if changed is not None:
                drafts.add(topic, changed)
                load.update(reassignment.adding)
    return drafts.count, drafts.changes()


def _replace(
    replicas: tuple[int, ...], absent: Collection[int], brokers: Mapping[int, UsableBroker], load: Mapping[int, int]
) -> tuple[int, ...]:
    """Each absent replica gives way to the active broker that is on another machine and rack than the other replicas,
    if there is one, and has the fewest replicas."""
    target = list(replicas)
    for position, replica in enumerate(replicas):
        if replica not in absent:
            continue
        others = [brokers[each] for each in target if each in brokers]
        machines = {each.machine for each in others} - {None}
        racks = {each.rack for each in others} - {None}
        candidates = [each for each in brokers.values() if each.node_id not in target]
        if candidates:
            target[position] = min(
                candidates,
                key=lambda each: (each.machine in machines, each.rack in racks, load[each.node_id], each.node_id),
            ).node_id
    return tuple(target)
