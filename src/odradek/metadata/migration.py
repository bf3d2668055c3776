"""The changes that bring the metadata of a single broker into a cluster. Pure.

Topics keep their ids, and partitions their replicas and epochs, because the logs stay where they are.
The cluster's levels of features stay as they are, and its default of `min.insync.replicas`, which follows from them:
that of a single broker is written at its first start, and is left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from odradek.configuration.config_types import ConfigResourceType
from odradek.conventions.dataclass import dataclass
from odradek.metadata.changes import (
    AclsAdded,
    ClientQuotaChanged,
    ConfigsChanged,
    ProducerIdsAllocated,
    StreamChanged,
    TopicCreated,
)
from odradek.metadata.image import ConfigResource
from odradek.metadata.topic_names import collision_key
from odradek.metadata.users import decide_user_migration

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from odradek.metadata.changes import Change
    from odradek.metadata.image import MetadataImage

V = TypeVar("V")

MIN_IN_SYNC = "min.insync.replicas"


@dataclass(frozen=True, slots=True)
class Migration:
    """`collisions` name what is in both and differs: nothing may be migrated then. Counts are of what the single broker
    has; `present_topics` of them are in the cluster from an earlier, interrupted migration. `left_out` are settings of
    the single broker that are not migrated, and that the cluster does not have."""

    changes: Sequence[Change]
    collisions: Sequence[str]
    topics: int
    partitions: int
    settings: int
    quotas: int
    users: int
    tokens: int
    rules: int
    present_topics: int
    left_out: Mapping[str, str]


def decide_migration(source: MetadataImage, target: MetadataImage, node_id: int) -> Migration:
    changes: list[Change] = []
    collisions: list[str] = []
    if node_id in target.brokers:
        collisions.append(f"broker {node_id} is registered in the cluster")
    present = _migrate_topics(source, target, changes, collisions)
    settings = _settings_to_migrate(source)
    for resource, values in settings.items():
        merged, differing = _merge(values, target.configs.get(resource, {}))
        name = f"{resource.type.name.lower()} {resource.name or 'defaults'}"
        collisions += [f"setting {setting} of {name}" for setting in differing]
        if merged:
            changes.append(ConfigsChanged(resource.type, resource.name, merged))
    for entity, quotas in source.client_quotas.items():
        limits, differing = _merge(quotas, target.client_quotas.get(entity, {}))
        name = ", ".join(f"{kind} {value or 'default'}" for kind, value in sorted(entity, key=str))
        collisions += [f"quota {quota} of {name}" for quota in differing]
        if limits:
            changes.append(ClientQuotaChanged(entity, limits))
    user_changes, differing = decide_user_migration(source.users, target.users)
    changes += user_changes
    collisions += differing
    new_acls = tuple(binding for binding in source.acls.bindings if binding not in target.acls.bindings)
    if new_acls:
        changes.append(AclsAdded(new_acls))
    if source.next_producer_id > target.next_producer_id:
        changes.append(ProducerIdsAllocated(source.next_producer_id))
    return Migration(
        changes,
        collisions,
        topics=len(source.topics),
        partitions=sum(len(topic.partitions) for topic in source.topics.values()),
        settings=sum(map(len, settings.values())),
        quotas=sum(map(len, source.client_quotas.values())),
        users=len({key.user for key in source.users.scram_credentials}),
        tokens=len(source.users.delegation_tokens),
        rules=len(source.acls.bindings),
        present_topics=present,
        left_out=_left_out(source, target),
    )


def _migrate_topics(source: MetadataImage, target: MetadataImage, changes: list[Change], collisions: list[str]) -> int:
    """Streams and topics. Returns how many of the topics are in the cluster."""
    present = 0
    for stream in source.streams.values():
        theirs = target.streams.get(stream.path)
        taken = target.topic_like_alias(stream.path)
        if theirs is None and taken is not None:
            collisions.append(f"stream {stream.path} (the cluster's topic {taken} would be an alias in it)")
        elif theirs is None:
            changes.append(StreamChanged(stream))
        elif theirs != stream:
            collisions.append(f"stream {stream.path}")
    for topic in source.topics.values():
        existing = target.topics.get(topic.name)
        key = collision_key(topic.name)
        similar = None if key is None else target.topics_by_collision_key.get(key)
        if existing is not None and existing.topic_id == topic.topic_id:
            present += 1
        elif existing is not None:
            collisions.append(f"topic {topic.name}")
        elif target.full_name(topic.name) != topic.name:
            collisions.append(f"topic {topic.name} (the cluster has a stream in which it would be an alias)")
        elif similar is not None:
            collisions.append(f"topic {topic.name} (the cluster has {similar}, which differs in . and _ only)")
        else:
            changes.append(TopicCreated(topic))
    return present


def _left_out(source: MetadataImage, target: MetadataImage) -> dict[str, str]:
    own, theirs = (each.configs_of(ConfigResourceType.BROKER, "").get(MIN_IN_SYNC) for each in (source, target))
    return {} if own is None or own == theirs else {MIN_IN_SYNC: own}


def _settings_to_migrate(source: MetadataImage) -> dict[ConfigResource, Mapping[str, str]]:
    defaults = ConfigResource(ConfigResourceType.BROKER, "")
    kept = {name: value for name, value in source.configs.get(defaults, {}).items() if name != MIN_IN_SYNC}
    return {**source.configs, defaults: kept}


def _merge(ours: Mapping[str, V], theirs: Mapping[str, V]) -> tuple[dict[str, V], list[str]]:
    """Values that only the single broker has, and names with two values."""
    new = {name: value for name, value in ours.items() if name not in theirs}
    return new, sorted(name for name, value in ours.items() if theirs.get(name, value) != value)
