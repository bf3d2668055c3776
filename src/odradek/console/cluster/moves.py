"""Reassignments of replicas: planned, begun and cancelled, by the planner of `odradek partition reassign`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from odradek.admin.broker_requests import BrokerRequests
from odradek.admin.cluster_state import read_state
from odradek.admin.partitions.plan import Move, planned_moves
from odradek.admin.partitions.requests import alter_reassignments
from odradek.admin.partitions.sizes import read_sizes, with_sizes
from odradek.console.cluster.permissions import CLUSTER, needs
from odradek.conventions.failures import Failure

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odradek.admin.cluster import Cluster

__all__ = ["Move"]

Targets = dict[tuple[str, int], tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class MoveGoal:
    """Which topics are spread over which brokers; without topics, everything that the drained brokers have."""

    topics: tuple[str, ...] = ()
    to: tuple[int, ...] = ()
    drain: tuple[int, ...] = ()
    replication_factor: int | None = None


def plan(cluster: Cluster, goal: MoveGoal) -> list[Move]:
    requests = BrokerRequests(cluster)
    with needs("Describe", CLUSTER):
        state = read_state(requests)
    if not state.knows_reassignments:
        raise Failure("no controller answers; wait for an election, and try again")
    if not goal.topics and not goal.drain:
        raise Failure("name topics, or a broker to drain")
    moves = planned_moves(state, goal.topics, (), goal.to or None, goal.drain, goal.replication_factor)
    return with_sizes(moves, read_sizes(requests, state, [move.partition for move in moves]))


def begin(cluster: Cluster, targets: Targets, before: Targets) -> None:
    """Failure if a partition has other replicas than the preview showed."""
    requests = BrokerRequests(cluster)
    present = {(each.topic, each.index): each.replicas for each in read_state(requests).partitions}
    for key in targets:
        if present.get(key) != before[key]:
            raise Failure(f"{key[0]}-{key[1]} has other replicas than the preview shows; look at a new preview")
    with needs("Alter", CLUSTER):
        alter_reassignments(requests, targets)


def cancel(cluster: Cluster, partitions: Sequence[tuple[str, int]]) -> None:
    with needs("Alter", CLUSTER):
        alter_reassignments(BrokerRequests(cluster), dict.fromkeys(partitions))
