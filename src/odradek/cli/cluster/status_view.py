"""The state of a cluster as an object and as lines of text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from odradek.cli.framework.output import column_lines, faint, strong
from odradek.conventions.figures import count_text

if TYPE_CHECKING:
    from odradek.admin.cluster_state import ClusterState, PartitionState

SHOWN_PARTITIONS = 10
RESTRICTED = "this user may not see other topics"  # without Describe on the cluster
NO_TOPICS = "no topics that this user may describe; an admin allows it with `odradek acl add`"
PROBLEMS = ("offline", "under min ISR", "under-replicated", "not on the preferred leader")


def status_object(state: ClusterState) -> dict[str, Any]:
    counts = state.counts()
    return {
        "cluster_id": state.cluster.cluster_id,
        "controller": state.cluster.controller_id,
        "healthy": state.is_healthy,
        "brokers": [
            {
                "id": broker.broker_id,
                "host": broker.host,
                "port": broker.port,
                "rack": broker.rack,
                "state": "fenced" if broker.is_fenced else "running",
                "controller": broker.broker_id == state.cluster.controller_id,
                "leads": counts.leads[broker.broker_id],
                "preferred": counts.preferred[broker.broker_id],
                "replicas": counts.replicas[broker.broker_id],
                "in_sync": counts.in_sync[broker.broker_id],
            }
            for broker in state.brokers.values()
        ],
        "topics": len({each.topic for each in state.partitions}),
        "partitions": len(state.partitions),
        "offline": [partition_object(each) for each in state.partitions if each.is_offline],
        "under_min_isr": [partition_object(each) for each in state.partitions if each.is_under_min_in_sync],
        "under_replicated": [partition_object(each) for each in state.partitions if each.is_under_replicated],
        "not_on_preferred_leader": [partition_object(each) for each in state.partitions if each.has_other_leader],
        "reassignments": None
        if not state.knows_reassignments
        else [partition_object(each) for each in state.partitions if each.is_reassigned],
    }


def partition_object(partition: PartitionState) -> dict[str, Any]:
    found: dict[str, Any] = {
        "topic": partition.topic,
        "partition": partition.index,
        "leader": None if partition.is_offline else partition.leader,
        "replicas": list(partition.replicas),
        "in_sync": list(partition.in_sync),
        "min_in_sync": partition.min_in_sync,
    }
    if partition.is_reassigned:
        found |= {"adding": list(partition.adding), "removing": list(partition.removing)}
    return found


def status_lines(state: ClusterState, shown_partitions: int | None = SHOWN_PARTITIONS) -> list[str]:
    """`shown_partitions` limits each table of partitions; None shows all."""
    topics = len({each.topic for each in state.partitions})
    running = sum(not broker.is_fenced for broker in state.brokers.values())
    total = len(state.brokers)
    brokers = count_text(total, "broker") if running == total else f"{running} of {count_text(total, 'broker')} running"
    facts = [brokers, count_text(topics, "topic"), count_text(len(state.partitions), "partition")]
    facts += [RESTRICTED] if state.is_restricted else []
    lines = [f"{strong(state.cluster.cluster_id or 'cluster')}  {' · '.join(facts)}", _summary(state), ""]
    lines += _broker_lines(state)
    lines += _problem_lines([each for each in state.partitions if each.problems], shown_partitions)
    if not state.knows_reassignments:
        reason = "this user lacks Describe on the cluster" if state.is_restricted else "no controller answers"
        lines += ["", click.style(f"running reassignments are not known: {reason}", fg="red")]
    lines += _reassignment_lines([each for each in state.partitions if each.is_reassigned], shown_partitions)
    return lines


def _summary(state: ClusterState) -> str:
    counts = [(name, sum(name in each.problems for each in state.partitions)) for name in PROBLEMS]
    found = [
        click.style(f"{count_text(count, 'partition')} {name}", fg="yellow" if name == PROBLEMS[-1] else "red")
        for name, count in counts
        if count
    ]
    moving = sum(each.is_reassigned for each in state.partitions)
    found += [f"{count_text(moving, 'partition')} being reassigned"] if moving else []
    if found:
        return ", ".join(found)
    if state.is_restricted and not state.partitions:
        return NO_TOPICS
    return click.style("all partitions have a leader and all their replicas in sync", fg="green")


def _broker_lines(state: ClusterState) -> list[str]:
    counts = state.counts()
    rows = []
    unknown = set(counts.replicas) - set(state.brokers)
    for broker_id in sorted(set(state.brokers) | unknown):
        broker = state.brokers.get(broker_id)
        is_controller = broker_id == state.cluster.controller_id
        rows.append(
            (
                broker_id,
                "-" if broker is None else f"{broker.host}:{broker.port}",
                "-" if broker is None else broker.rack or "-",
                "not registered" if broker is None else "fenced" if broker.is_fenced else "running",
                counts.leads[broker_id],
                counts.replicas[broker_id],
                counts.in_sync[broker_id],
                "controller" if is_controller else "",
            )
        )
    return column_lines(["BROKER", "ADDRESS", "RACK", "STATE", "LEADS", "REPLICAS", "IN SYNC", "ROLE"], rows)


def _problem_lines(partitions: list[PartitionState], limit: int | None) -> list[str]:
    if not partitions:
        return []
    # The worst first.
    partitions = sorted(partitions, key=lambda each: (PROBLEMS.index(each.problems[0]), each.topic, each.index))
    rows = [
        (
            each.name,
            "none" if each.is_offline else str(each.leader),
            brokers_text(each.replicas),
            brokers_text(each.in_sync) or "-",
            each.min_in_sync,
            ", ".join(each.problems),
        )
        for each in partitions[:limit]
    ]
    titles = ["PARTITION", "LEADER", "REPLICAS", "IN SYNC", "MIN ISR", "PROBLEM"]
    return ["", *column_lines(titles, rows), *_rest(len(partitions), limit)]


def _reassignment_lines(partitions: list[PartitionState], limit: int | None) -> list[str]:
    if not partitions:
        return []
    rows = [
        (each.name, brokers_text(each.target), brokers_text(each.adding) or "-", brokers_text(each.removing) or "-")
        for each in partitions[:limit]
    ]
    return ["", *column_lines(["REASSIGNED", "TO", "ADDING", "REMOVING"], rows), *_rest(len(partitions), limit)]


def _rest(count: int, limit: int | None) -> list[str]:
    return [] if limit is None or count <= limit else [faint(f"and {count - limit:,} more; --all shows them")]


def brokers_text(brokers: tuple[int, ...]) -> str:
    return ",".join(map(str, brokers))
