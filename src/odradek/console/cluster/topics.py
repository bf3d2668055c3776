"""Topics: created, configured, grown and deleted, by the requests of `odradek topic`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from confluent_kafka import TopicCollection

from odradek.admin.kafka_admin import (
    AclOperation,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    ResourceType,
)
from odradek.admin.topics.setting_names import suggesting_names
from odradek.admin.topics.settings import Setting, alter_settings, read_settings
from odradek.console.cluster.permissions import needs
from odradek.conventions.failures import Failure

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.admin.cluster import Cluster

__all__ = ["Setting"]

REQUEST_TIMEOUT_S = 15.0


def create_topic(
    cluster: Cluster, name: str, partitions: int, replication_factor: int, configs: Mapping[str, str]
) -> None:
    """Numbers that are −1 are chosen by the broker."""
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
