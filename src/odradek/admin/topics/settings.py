"""Settings of topics, brokers and groups: read and changed by admin requests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from odradek.admin.kafka_admin import ConfigResource, ConfigSource, ResourceType

if TYPE_CHECKING:
    from odradek.admin.cluster import Cluster
    from odradek.admin.kafka_admin import ConfigEntry

REQUEST_TIMEOUT_S = 15.0


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting and where its value comes from."""

    name: str
    value: str | None
    source: str
    is_default: bool
    is_read_only: bool
    is_sensitive: bool

    def as_object(self) -> dict[str, Any]:
        return {"value": self.value, "source": self.source, "default": self.is_default}


def read_settings(cluster: Cluster, kind: ResourceType, name: str) -> list[Setting]:
    """All settings of a topic, a broker or a group, in the order of their names."""
    futures = cluster.admin().describe_configs([ConfigResource(kind, name)], request_timeout=REQUEST_TIMEOUT_S)
    (future,) = futures.values()
    entries: dict[str, ConfigEntry] = cluster.finish(
        future, f"settings of {kind.name.lower()} {name}", "DescribeConfigs"
    )
    return [
        Setting(key, entry.value, source_name(entry.source), has_default(entry), entry.is_read_only, entry.is_sensitive)
        for key, entry in sorted(entries.items())
    ]


def has_default(entry: ConfigEntry) -> bool:
    """Whether the value is the default, or a broker's own setting with the same value: brokers with eligible leader
    replicas set min.insync.replicas for the cluster."""
    if entry.is_default or source_name(entry.source) == "dynamic topic":
        return bool(entry.is_default)
    return [entry.value] == [each.value for each in entry.synonyms.values() if source_name(each.source) == "default"]


def source_name(source: Any) -> str:
    """`dynamic topic`, `static broker`, `default`, …"""
    try:
        return str(ConfigSource(source).name).removesuffix("_CONFIG").lower().replace("_", " ")
    except ValueError:
        return f"source {source}"  # a kind of source that the client does not name, such as that of a group


def alter_settings(cluster: Cluster, resource: ConfigResource) -> None:
    """Apply the incremental changes of a resource; Failure if the broker refuses them."""
    futures = cluster.admin().incremental_alter_configs([resource], request_timeout=REQUEST_TIMEOUT_S)
    for future in futures.values():
        cluster.finish(future, f"{resource.restype.name.lower()} {resource.name}", "AlterConfigs")
