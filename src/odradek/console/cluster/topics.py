"""Topics and the replicas of their partitions, by the requests of `odradek topic` and `odradek partition reassign`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from odradek.admin import topics
from odradek.admin.cluster_state import read_state
from odradek.admin.log_directories import read_sizes
from odradek.admin.partitions.plan import Move, planned_moves, with_sizes
from odradek.admin.partitions.requests import alter_reassignments
from odradek.admin.settings import Change, Kind, Operation, Setting, alter_settings, read_settings, suggesting_names
from odradek.console.cluster.connection import CLUSTER, NoSuchTopic, needs
from odradek.conventions.failures import Failure
from odradek.security import authorizer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from odradek.admin.cluster import Cluster

__all__ = ["Move", "Setting"]


def create_topic(
    cluster: Cluster, name: str, partitions: int, replication_factor: int, configs: Mapping[str, str]
) -> None:
    """The broker chooses numbers that are −1."""
    with suggesting_names(configs), needs("Create", f"topic {name}"):
        is_created = cluster.create_topic(name, partitions, replication_factor, configs)
    if not is_created:
        raise Failure(f"topic {name} already exists")


def grow_topic(cluster: Cluster, name: str, partitions: int) -> None:
    with needs("Alter", f"topic {name}"):
        topics.grow_topic(cluster, name, partitions)


def delete_topic(cluster: Cluster, name: str) -> None:
    with needs("Delete", f"topic {name}"):
        for failure in topics.delete_topics(cluster, [name]).values():
            if failure is not None:
                raise failure


def has_topic(cluster: Cluster, name: str) -> bool:
    """Failure if the user may not see the topic."""
    try:
        with needs("Describe", f"topic {name}"):
            cluster.describe_topic(name)
    except NoSuchTopic:
        return False
    return True


def topic_settings(cluster: Cluster, name: str) -> list[Setting]:
    with needs("DescribeConfigs", f"topic {name}"):
        return read_settings(cluster, Kind.TOPIC, name)


def may_alter_settings(cluster: Cluster, name: str) -> bool:
    """Whether the access rules let the user do so; True if the cluster does not say."""
    operations = cluster.describe_topic(name, with_operations=True).operations
    return not operations or authorizer.Operation.ALTER_CONFIGS in operations


def alter_topic_setting(cluster: Cluster, name: str, setting: str, value: str | None) -> None:
    """Set a setting of the topic, or return it to its default if the value is None."""
    change = Change(setting, value, Operation.DELETE if value is None else Operation.SET)
    with suggesting_names([setting]), needs("AlterConfigs", f"topic {name}"):
        alter_settings(cluster, Kind.TOPIC, name, [change])


@dataclass(frozen=True, slots=True)
class MoveGoal:
    """Which topics are spread over which brokers; without topics, everything that the drained brokers have."""

    topics: tuple[str, ...] = ()
    to: tuple[int, ...] = ()
    drain: tuple[int, ...] = ()
    replication_factor: int | None = None


def plan_moves(cluster: Cluster, goal: MoveGoal) -> list[Move]:
    with needs("Describe", CLUSTER):
        state = read_state(cluster.requests)
    if not state.knows_reassignments:
        raise Failure("no controller answers; wait for an election, and try again")
    if not goal.topics and not goal.drain:
        raise Failure("name topics, or a broker to drain")
    moves = planned_moves(state, goal.topics, (), goal.to or None, goal.drain, goal.replication_factor)
    return with_sizes(moves, read_sizes(cluster.requests, state, [move.partition for move in moves]))


class PlannedMove(NamedTuple):
    """A partition with its replicas before and after, as a preview has shown them."""

    key: tuple[str, int]
    before: tuple[int, ...]
    after: tuple[int, ...]


def begin_moves(cluster: Cluster, moves: Sequence[PlannedMove]) -> None:
    """Failure if a partition has other replicas than the preview showed."""
    present = {(each.topic, each.index): each.replicas for each in read_state(cluster.requests).partitions}
    for each in moves:
        if present.get(each.key) != each.before:
            topic, index = each.key
            raise Failure(f"{topic}-{index} has other replicas than the preview shows; look at a new preview")
    with needs("Alter", CLUSTER):
        alter_reassignments(cluster.requests, {each.key: each.after for each in moves})


def cancel_moves(cluster: Cluster, partitions: Sequence[tuple[str, int]]) -> None:
    with needs("Alter", CLUSTER):
        alter_reassignments(cluster.requests, dict.fromkeys(partitions))
