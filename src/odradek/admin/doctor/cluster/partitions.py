"""Rules on partitions: leaders, in-sync replicas, and how they are spread over the brokers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.admin.doctor.finding import problem, warning

if TYPE_CHECKING:
    from collections.abc import Iterator

    from odradek.admin.cluster_state import PartitionState
    from odradek.admin.doctor.cluster.facts import ClusterFacts
    from odradek.admin.doctor.finding import Finding

IMBALANCE_RATIO = 0.1  # leader.imbalance.per.broker.percentage of Kafka
SMALLEST_IMBALANCE = 3


def offline(facts: ClusterFacts) -> Iterator[Finding]:
    assert facts.state is not None
    found = [each for each in facts.state.partitions if each.is_offline]
    if found:
        yield problem(
            "partitions have no leader: they cannot be read or written",
            [_place(each) for each in found],
            "Start the brokers of the in-sync replicas. If they are lost for good, and with them the newest records: "
            f"odradek partition elect {found[0].topic} --unclean",
        )


def under_min_in_sync(facts: ClusterFacts) -> Iterator[Finding]:
    assert facts.state is not None
    found = [each for each in facts.state.partitions if each.is_under_min_in_sync and not each.is_offline]
    if found:
        yield problem(
            "partitions have fewer replicas in sync than min.insync.replicas: writes with acks=all are refused",
            [f"{_place(each)}, min.insync.replicas {each.min_in_sync}" for each in found],
            "Start the brokers whose replicas are missing, then: odradek cluster status --wait 120",
        )


def under_replicated(facts: ClusterFacts) -> Iterator[Finding]:
    assert facts.state is not None
    found = [
        each
        for each in facts.state.partitions
        if each.is_under_replicated and not each.is_offline and not each.is_under_min_in_sync
    ]
    if found:
        yield warning(
            "partitions are under-replicated: not all of their replicas are in sync",
            [_place(each) for each in found],
            "Start the missing brokers, or find out why their replicas are slow; then: odradek cluster status --watch",
        )


def preferred_leaders(facts: ClusterFacts) -> Iterator[Finding]:
    """As Kafka: when more than a tenth of the partitions that a broker should lead are led by others."""
    assert facts.state is not None
    counts = facts.state.counts()
    elsewhere: dict[int, int] = {}
    for each in facts.state.partitions:
        if each.has_other_leader:
            elsewhere[each.replicas[0]] = elsewhere.get(each.replicas[0], 0) + 1
    found = {
        broker_id: count
        for broker_id, count in sorted(elsewhere.items())
        if count >= SMALLEST_IMBALANCE and count > IMBALANCE_RATIO * counts.preferred[broker_id]
    }
    if found:
        yield warning(
            "leaders are not on their preferred brokers, so that the load is uneven",
            [
                f"broker {broker_id} leads {counts.preferred[broker_id] - count} of the {counts.preferred[broker_id]} "
                "partitions that it should lead"
                for broker_id, count in found.items()
            ],
            "When all replicas are in sync: odradek partition elect",
        )


def partitions_per_broker(facts: ClusterFacts) -> Iterator[Finding]:
    assert facts.state is not None
    most = facts.limits.most_partitions_per_broker
    found = {broker_id: count for broker_id, count in sorted(facts.state.counts().replicas.items()) if count > most}
    if found:
        yield warning(
            f"brokers have more than {most:,} replicas: restarts and failovers take long",
            [f"broker {broker_id}: {count:,} replicas" for broker_id, count in found.items()],
            "Add brokers and move replicas to them (odradek partition reassign TOPIC --to ID,ID,…), or delete topics "
            "that nobody uses",
        )


def running_reassignments(facts: ClusterFacts) -> Iterator[Finding]:
    """Replicas that a reassignment adds and that are on a fenced broker never come into sync."""
    assert facts.state is not None
    brokers = facts.state.brokers
    stuck = [
        each
        for each in facts.state.partitions
        if any(replica not in brokers or brokers[replica].is_fenced for replica in each.adding)
    ]
    if stuck:
        yield warning(
            "reassignments wait for brokers that do not run",
            [f"{each.name} to {', '.join(map(str, each.adding))}" for each in stuck],
            "Start these brokers, or cancel: odradek partition reassign --cancel",
        )


def _place(partition: PartitionState) -> str:
    replicas, in_sync = (",".join(map(str, each)) or "none" for each in (partition.replicas, partition.in_sync))
    return f"{partition.name} (replicas {replicas}; in sync {in_sync})"
