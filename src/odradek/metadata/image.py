"""What the cluster agrees on, as one immutable value: brokers, topics, settings, quotas, and the next producer id.

A change gives a new image that shares all that did not change; whoever holds an old one keeps a consistent view.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from odradek.configuration.config_types import ConfigResourceType
from odradek.metadata.changes import (
    ClientQuotaChanged,
    ConfigsChanged,
    PartitionsAdded,
    PartitionsChanged,
    ProducerIdsAllocated,
    TopicCreated,
    TopicDeleted,
)
from odradek.metadata.topic_names import collision_key

if TYPE_CHECKING:
    import uuid
    from collections.abc import Iterable, Mapping

    from odradek.configuration.listeners import Endpoint
    from odradek.metadata.changes import Change
    from odradek.metadata.client_quotas import QuotaEntity

V = TypeVar("V")


class ConfigResource(NamedTuple):
    type: ConfigResourceType
    name: str


@dataclass(frozen=True, slots=True)
class PartitionImage:
    index: int
    replicas: tuple[int, ...]
    in_sync_replicas: tuple[int, ...]
    leader: int
    leader_epoch: int
    partition_epoch: int


@dataclass(frozen=True, slots=True)
class TopicImage:
    name: str
    topic_id: uuid.UUID
    partitions: tuple[PartitionImage, ...]
    is_internal: bool


@dataclass(frozen=True, slots=True)
class BrokerImage:
    node_id: int
    endpoints: Mapping[str, Endpoint]
    rack: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataImage:
    version: int
    cluster_id: str
    controller_id: int
    brokers: Mapping[int, BrokerImage] = field(default_factory=dict)
    topics: Mapping[str, TopicImage] = field(default_factory=dict)
    topics_by_id: Mapping[uuid.UUID, TopicImage] = field(default_factory=dict)
    topics_by_collision_key: Mapping[str, str] = field(default_factory=dict)
    configs: Mapping[ConfigResource, Mapping[str, str]] = field(default_factory=dict)
    client_quotas: Mapping[QuotaEntity, Mapping[str, float]] = field(default_factory=dict)
    next_producer_id: int = 0

    def topic_by_id(self, topic_id: uuid.UUID) -> TopicImage | None:
        return self.topics_by_id.get(topic_id)

    def topic_ids(self, names: Iterable[str]) -> frozenset[uuid.UUID]:
        """Of those of them that exist."""
        topics = self.topics
        return frozenset(topics[name].topic_id for name in names if name in topics)

    def configs_of(self, resource_type: ConfigResourceType, name: str) -> Mapping[str, str]:
        """What was set for this resource itself; nothing when it has no settings of its own."""
        return self.configs.get(ConfigResource(resource_type, name), {})

    def with_broker(self, broker: BrokerImage) -> MetadataImage:
        """Who is alive is not stored: a restarted broker registers anew. The version stays."""
        return replace(self, brokers={**self.brokers, broker.node_id: broker})

    def apply(self, change: Change) -> MetadataImage:
        return self.apply_all((change,))

    def apply_all(self, changes: Iterable[Change]) -> MetadataImage:
        """The image after one commit of these changes, in order."""
        draft = _Draft(self)
        for change in changes:
            draft.apply(change)
        return draft.finish()


class _Draft:
    """A copy that may be written to while one commit is applied; each map is copied once, and only if it changes."""

    def __init__(self, image: MetadataImage) -> None:
        self._image = image
        self._topics: dict[str, TopicImage] | None = None
        self._topics_by_id: dict[uuid.UUID, TopicImage] = {}
        self._collision_keys: dict[str, str] = {}
        self._configs: dict[ConfigResource, Mapping[str, str]] | None = None
        self._quotas: dict[QuotaEntity, Mapping[str, float]] | None = None
        self._next_producer_id = image.next_producer_id

    def apply(self, change: Change) -> None:
        match change:
            case TopicCreated(topic):
                self._put_topic(topic)
                key = collision_key(topic.name)
                if key is not None:
                    self._collision_keys[key] = topic.name
            case TopicDeleted(topic_id):
                self._delete_topic(topic_id)
            case PartitionsAdded(topic_id, partitions):
                topic = self._topic(topic_id)
                self._put_topic(replace(topic, partitions=topic.partitions + partitions))
            case PartitionsChanged(topic_id, partitions):
                topic = self._topic(topic_id)
                changed = {partition.index: partition for partition in partitions}
                self._put_topic(
                    replace(topic, partitions=tuple(changed.get(each.index, each) for each in topic.partitions))
                )
            case ConfigsChanged(resource_type, name, values):
                resource = ConfigResource(resource_type, name)
                self._set_or_delete_configs(resource, merge(self._writable_configs().get(resource, {}), values))
            case ClientQuotaChanged(entity, quota_values):
                self._change_quota(entity, quota_values)
            case ProducerIdsAllocated(next_producer_id):
                self._next_producer_id = next_producer_id

    def finish(self) -> MetadataImage:
        image = self._image
        if self._topics is not None:
            image = replace(
                image,
                topics=self._topics,
                topics_by_id=self._topics_by_id,
                topics_by_collision_key=self._collision_keys,
            )
        if self._configs is not None:
            image = replace(image, configs=self._configs)
        if self._quotas is not None:
            image = replace(image, client_quotas=self._quotas)
        return replace(image, version=image.version + 1, next_producer_id=self._next_producer_id)

    def _writable_topics(self) -> dict[str, TopicImage]:
        if self._topics is None:
            self._topics = dict(self._image.topics)
            self._topics_by_id = dict(self._image.topics_by_id)
            self._collision_keys = dict(self._image.topics_by_collision_key)
        return self._topics

    def _writable_configs(self) -> dict[ConfigResource, Mapping[str, str]]:
        if self._configs is None:
            self._configs = dict(self._image.configs)
        return self._configs

    def _topic(self, topic_id: uuid.UUID) -> TopicImage:
        self._writable_topics()
        return self._topics_by_id[topic_id]

    def _put_topic(self, topic: TopicImage) -> None:
        self._writable_topics()[topic.name] = topic
        self._topics_by_id[topic.topic_id] = topic

    def _delete_topic(self, topic_id: uuid.UUID) -> None:
        topic = self._topic(topic_id)
        del self._writable_topics()[topic.name]
        del self._topics_by_id[topic_id]
        key = collision_key(topic.name)
        if key is not None and self._collision_keys.get(key) == topic.name:
            del self._collision_keys[key]
        self._set_or_delete_configs(ConfigResource(ConfigResourceType.TOPIC, topic.name), {})

    def _set_or_delete_configs(self, resource: ConfigResource, values: Mapping[str, str]) -> None:
        if values:
            self._writable_configs()[resource] = values
        elif resource in (self._image.configs if self._configs is None else self._configs):
            del self._writable_configs()[resource]

    def _change_quota(self, entity: QuotaEntity, values: Mapping[str, float | None]) -> None:
        if self._quotas is None:
            self._quotas = dict(self._image.client_quotas)
        merged = merge(self._quotas.get(entity, {}), values)
        if merged:
            self._quotas[entity] = merged
        else:
            self._quotas.pop(entity, None)


def merge(current: Mapping[str, V], changes: Mapping[str, V | None]) -> dict[str, V]:
    """The values after the changes, of which None removes one."""
    merged = {**current, **changes}
    return {name: value for name, value in merged.items() if value is not None}
