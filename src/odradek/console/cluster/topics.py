"""Topics and the replicas of their partitions, by the requests of `odradek topic` and `odradek partition reassign`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from confluent_kafka import TopicCollection

from odradek.admin.broker_requests import BrokerRequests
from odradek.admin.cluster_state import read_state
from odradek.admin.kafka_admin import (
    AclOperation,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    ResourceType,
)
from odradek.admin.partitions.plan import Move, planned_moves
from odradek.admin.partitions.requests import alter_reassignments
from odradek.admin.partitions.sizes import read_sizes, with_sizes
from odradek.admin.topics.setting_names import suggesting_names
from odradek.admin.topics.settings import Setting, alter_settings, read_settings
from odradek.console.cluster.connection import CLUSTER, needs
from odradek.conventions.failures import Failure

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from odradek.admin.cluster import Cluster

__all__ = ["Setting"]

REQUEST_TIMEOUT_S = 15.0
__all__ = ["Move"]
Targets = dict[tuple[str, int], tuple[int, ...]]


def create_topic(
    cluster: Cluster, name: str, partitions: int, replication_factor: int, configs: Mapping[str, str]
) -> None:
    """The broker chooses numbers that are −1."""
    with suggesting_names(configs), needs("Create", f"topic {name}"):
        is_created = cluster.create_topic(name, partitions, replication_factor, configs)
    if not is_created:
        raise Failure(f"topic {name} already exists")


def grow_topic(cluster: Cluster, name: str, partitions: int) -> None:
    futures = cluster.admin().create_partitions([NewPartitions(name, partitions)], request_timeout=REQUEST_TIMEOUT_S)
    with needs("Alter", f"topic {name}"):
        cluster.finish(futures[name], f"topic {name}")


def delete_topic(cluster: Cluster, name: str) -> None:
    futures = cluster.admin().delete_topics([name], request_timeout=REQUEST_TIMEOUT_S)
    with needs("Delete", f"topic {name}"):
        cluster.finish(futures[name], f"topic {name}")


def check_topic(cluster: Cluster, name: str) -> None:
    """Failure if the user may not see the topic, or if it does not exist."""
    with needs("Describe", f"topic {name}"):
        cluster.describe_topic(name)


def topic_settings(cluster: Cluster, name: str) -> list[Setting]:
    with needs("DescribeConfigs", f"topic {name}"):
        return read_settings(cluster, ResourceType.TOPIC, name)


def may_alter_settings(cluster: Cluster, name: str) -> bool:
    """Whether the access rules let the user do so; True if the cluster does not say."""
    futures = cluster.admin().describe_topics(
        TopicCollection([name]), include_authorized_operations=True, request_timeout=REQUEST_TIMEOUT_S
    )
    operations = cluster.finish(futures[name], f"topic {name}").authorized_operations
    return not operations or AclOperation.ALTER_CONFIGS in operations


def alter_topic_setting(cluster: Cluster, name: str, setting: str, value: str | None) -> None:
    """Set a setting of the topic, or return it to its default if the value is None."""
    operation = AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET
    change = ConfigEntry(setting, value, incremental_operation=operation)
    with suggesting_names([setting]), needs("AlterConfigs", f"topic {name}"):
        alter_settings(cluster, ConfigResource(ResourceType.TOPIC, name, incremental_configs=[change]))


@dataclass(frozen=True, slots=True)
class MoveGoal:
    """Which topics are spread over which brokers; without topics, everything that the drained brokers have."""

    topics: tuple[str, ...] = ()
    to: tuple[int, ...] = ()
    drain: tuple[int, ...] = ()
    replication_factor: int | None = None


def plan_moves(cluster: Cluster, goal: MoveGoal) -> list[Move]:
    requests = BrokerRequests(cluster)
    with needs("Describe", CLUSTER):
        state = read_state(requests)
    if not state.knows_reassignments:
        raise Failure("no controller answers; wait for an election, and try again")
    if not goal.topics and not goal.drain:
        raise Failure("name topics, or a broker to drain")
    moves = planned_moves(state, goal.topics, (), goal.to or None, goal.drain, goal.replication_factor)
    return with_sizes(moves, read_sizes(requests, state, [move.partition for move in moves]))


def begin_moves(cluster: Cluster, targets: Targets, before: Targets) -> None:
    """Failure if a partition has other replicas than the preview showed."""
    requests = BrokerRequests(cluster)
    present = {(each.topic, each.index): each.replicas for each in read_state(requests).partitions}
    for key in targets:
        if present.get(key) != before[key]:
            raise Failure(f"{key[0]}-{key[1]} has other replicas than the preview shows; look at a new preview")
    with needs("Alter", CLUSTER):
        alter_reassignments(requests, targets)


def cancel_moves(cluster: Cluster, partitions: Sequence[tuple[str, int]]) -> None:
    with needs("Alter", CLUSTER):
        alter_reassignments(BrokerRequests(cluster), dict.fromkeys(partitions))
