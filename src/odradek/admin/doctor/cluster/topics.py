"""Rules on topics: replication factors and settings that lose records or stop writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.admin.doctor.finding import problem, warning

if TYPE_CHECKING:
    from collections.abc import Iterator

    from odradek.admin.doctor.cluster.facts import ClusterFacts
    from odradek.admin.doctor.finding import Finding

INTERNAL_TOPICS = ("__consumer_offsets", "__transaction_state", "__share_group_state", "__cluster_metadata")
ENOUGH_REPLICAS = 3
SETTINGS = (
    "min.insync.replicas",
    "unclean.leader.election.enable",
    "retention.ms",
    "retention.bytes",
    "cleanup.policy",
)


def replication_factor_one(facts: ClusterFacts) -> Iterator[Finding]:
    """In a cluster of several brokers. Internal topics have a finding of their own."""
    replicas = _replicas(facts)
    if _brokers(facts) < 2:
        return
    found = [topic for topic, count in replicas.items() if count == 1 and topic not in INTERNAL_TOPICS]
    if found:
        yield warning(
            "topics have one replica: they are unavailable without its broker, and lost with its disk",
            found,
            f"odradek partition reassign {found[0]} --replication-factor {min(ENOUGH_REPLICAS, _brokers(facts))}",
        )


def internal_topics(facts: ClusterFacts) -> Iterator[Finding]:
    wanted = min(ENOUGH_REPLICAS, _brokers(facts))
    found = {topic: count for topic, count in _replicas(facts).items() if topic in INTERNAL_TOPICS and count < wanted}
    if found:
        yield problem(
            "internal topics have too few replicas: without them groups and transactions stop",
            [f"{topic}: {count} of {wanted} replicas" for topic, count in found.items()],
            f"odradek partition reassign {' '.join(found)} --replication-factor {wanted}",
        )


def no_spare_replica(facts: ClusterFacts) -> Iterator[Finding]:
    """min.insync.replicas of all replicas: the loss of any one of them stops writes with acks=all."""
    assert facts.topic_settings is not None
    found = []
    for topic, count in _replicas(facts).items():
        minimum = _number(facts.topic_settings.get(topic, {}).get("min.insync.replicas"))
        if count > 1 and minimum is not None and minimum >= count:
            found.append((topic, count, minimum))
    if found:
        topic, count, _minimum = found[0]
        yield warning(
            "topics need all of their replicas in sync: a restart of one broker stops writes with acks=all",
            [f"{name}: min.insync.replicas {minimum}, {count} replicas" for name, count, minimum in found],
            f"odradek config alter topic {topic} --set min.insync.replicas={max(count - 1, 1)}, or add a replica",
        )


def unclean_elections(facts: ClusterFacts) -> Iterator[Finding]:
    assert facts.topic_settings is not None
    found = [
        topic
        for topic, settings in facts.topic_settings.items()
        if settings.get("unclean.leader.election.enable") == "true"
    ]
    if found:
        yield warning(
            "topics allow unclean leader elections, which lose acknowledged records",
            found,
            f"odradek config alter topic {found[0]} --set unclean.leader.election.enable=false",
        )


def _brokers(facts: ClusterFacts) -> int:
    assert facts.state is not None
    return len(facts.state.brokers)


def _replicas(facts: ClusterFacts) -> dict[str, int]:
    """The smallest number of replicas of a partition, by topic. Replicas that are added do not count."""
    assert facts.state is not None
    smallest: dict[str, int] = {}
    for each in facts.state.partitions:
        count = len(each.target) if each.is_reassigned else len(each.replicas)
        smallest[each.topic] = min(smallest.get(each.topic, count), count)
    return smallest


def _number(text: str | None) -> int | None:
    try:
        return int(text) if text is not None else None
    except ValueError:
        return None
