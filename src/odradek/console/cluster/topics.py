"""Topics: created, configured, grown and deleted, by the requests of `odradek topic`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.admin import topics
from odradek.admin.settings import (
    Change,
    Kind,
    Operation,
    Setting,
    alter_settings,
    read_settings,
    suggesting_names,
)
from odradek.console.cluster.permissions import needs
from odradek.conventions.failures import Failure
from odradek.security import authorizer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.admin.cluster import Cluster

__all__ = ["Setting"]


def create_topic(
    cluster: Cluster, name: str, partitions: int, replication_factor: int, configs: Mapping[str, str]
) -> None:
    """Numbers that are −1 are chosen by the broker."""
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


def check_topic(cluster: Cluster, name: str) -> None:
    """Failure if the user may not see the topic, or if it does not exist."""
    with needs("Describe", f"topic {name}"):
        cluster.describe_topic(name)


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
