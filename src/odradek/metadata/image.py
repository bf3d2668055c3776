"""The cluster's metadata as one immutable value: brokers, controller, topics, streams, settings, quotas, access control
lists, levels of features, the next producer id.

Applying changes gives a new image that shares every unchanged part, so a reader that keeps an old image keeps a
consistent view. A change that contradicts the image is a bug of its author and raises `InvalidChange`.
"""

from __future__ import annotations

from dataclasses import field, replace
from typing import TYPE_CHECKING, NamedTuple, TypeVar, assert_never

from odradek.configuration.config_types import ConfigResourceType
from odradek.conventions.dataclass import dataclass
from odradek.metadata.changes import (
    AclsAdded,
    AclsRemoved,
    BrokerRegistered,
    BrokerRemoved,
    ClientQuotaChanged,
    ConfigsChanged,
    ControllerElected,
    FeatureLevelChanged,
    PartitionsAdded,
    PartitionsChanged,
    ProducerIdsAllocated,
    StreamChanged,
    StreamDeleted,
    TopicCreated,
    TopicDeleted,
    UserChange,
)
from odradek.metadata.features import SUPPORTED_FEATURES
from odradek.metadata.streams import TOPIC_SEPARATOR, alias_prefix, split_alias, split_name
from odradek.metadata.topic_names import collision_key
from odradek.metadata.users import UserDraft, UserImage
from odradek.security.acls.index import AclDraft, AclIndex

if TYPE_CHECKING:
    import uuid
    from collections.abc import Iterable, Iterator, Mapping

    from odradek.metadata.changes import Change
    from odradek.metadata.client_quotas import QuotaEntity
    from odradek.metadata.entities import BrokerImage, PartitionImage, TopicImage
    from odradek.metadata.streams import StreamImage
    from odradek.security.acls.bindings import AclBinding

V = TypeVar("V")


class InvalidChange(ValueError):
    """A change does not fit the image it is applied to; the text names the mismatch."""


class ConfigResource(NamedTuple):
    type: ConfigResourceType
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataImage:
    """`version` is the number of commits so far."""

    version: int
    cluster_id: str
    controller_id: int
    controller_epoch: int = 0
    brokers: Mapping[int, BrokerImage] = field(default_factory=dict)
    topics: Mapping[str, TopicImage] = field(default_factory=dict)
    topics_by_id: Mapping[uuid.UUID, TopicImage] = field(default_factory=dict)
    topics_by_collision_key: Mapping[str, str] = field(default_factory=dict)
    streams: Mapping[str, StreamImage] = field(default_factory=dict)
    """By their paths."""
    configs: Mapping[ConfigResource, Mapping[str, str]] = field(default_factory=dict)
    client_quotas: Mapping[QuotaEntity, Mapping[str, float]] = field(default_factory=dict)
    acls: AclIndex = field(default_factory=AclIndex)
    next_producer_id: int = 0
    users: UserImage = field(default_factory=UserImage)
    changed_feature_levels: Mapping[str, int] = field(default_factory=dict)
    """Levels that were set; the others are those of `metadata/features`."""

    def topic_by_id(self, topic_id: uuid.UUID) -> TopicImage | None:
        return self.topics_by_id.get(topic_id)

    def topic_ids(self, names: Iterable[str]) -> frozenset[uuid.UUID]:
        """Ids of the named topics that exist."""
        topics = self.topics
        return frozenset(topics[name].topic_id for name in names if name in topics)

    def configs_of(self, resource_type: ConfigResourceType, name: str) -> Mapping[str, str]:
        """The settings of this resource itself, without defaults; empty when it has none."""
        return self.configs.get(ConfigResource(resource_type, name), {})

    def stream_of(self, topic: str) -> StreamImage | None:
        """The stream that the topic with this name belongs to, or would belong to."""
        return self.streams.get(split_name(topic).path) if self.streams else None

    def full_name(self, name: str) -> str:
        """The full name that a name stands for if it is the alias of a topic in a stream."""
        found = split_alias(name) if self.streams else None
        return name if found is None or found.path not in self.streams else found.name

    def topics_of(self, path: str) -> Iterator[TopicImage]:
        """The topics of a stream."""
        prefix = path + TOPIC_SEPARATOR
        return (topic for name, topic in self.topics.items() if name.startswith(prefix))

    def topic_like_alias(self, path: str) -> str | None:
        """An ordinary topic whose name would be an alias if there were a stream with this path."""
        prefix = alias_prefix(path)
        return next((name for name in self.topics if name.startswith(prefix)), None)

    def with_inherited(self, topic: str, own: Mapping[str, str]) -> Mapping[str, str]:
        """These settings of a topic over those of its stream."""
        inherited = self.inherited_settings(topic)
        return {**inherited, **own} if inherited else own

    def inherited_settings(self, topic: str) -> Mapping[str, str]:
        stream = self.stream_of(topic)
        return {} if stream is None else stream.settings

    def topic_overrides(self, name: str) -> Mapping[str, str]:
        """The settings of a topic over the defaults of brokers: those of its stream, and its own over them."""
        return self.with_inherited(name, self.configs_of(ConfigResourceType.TOPIC, name))

    def feature_level(self, name: str) -> int:
        """The level of a supported feature that the cluster uses."""
        return self.changed_feature_levels.get(name, SUPPORTED_FEATURES[name].default_level)

    def apply(self, change: Change) -> MetadataImage:
        return self.apply_all((change,))

    def apply_all(self, changes: Iterable[Change]) -> MetadataImage:
        """The image after one commit of these changes, in order."""
        draft = _Draft(self)
        for change in changes:
            draft.apply(change)
        return draft.finish()


class _Draft:
    """A writable copy of an image while one commit is applied; each map is copied once, and only if it changes."""

    def __init__(self, image: MetadataImage) -> None:
        self._image = image
        self._topics: dict[str, TopicImage] | None = None
        self._topics_by_id: dict[uuid.UUID, TopicImage] = {}
        self._collision_keys: dict[str, str] = {}
        self._streams: dict[str, StreamImage] | None = None
        self._configs: dict[ConfigResource, Mapping[str, str]] | None = None
        self._quotas: dict[QuotaEntity, Mapping[str, float]] | None = None
        self._brokers: dict[int, BrokerImage] | None = None
        self._users: UserDraft | None = None
        self._acls: AclDraft | None = None
        self._feature_levels: dict[str, int] | None = None
        self._next_producer_id = image.next_producer_id
        self._controller_id = image.controller_id
        self._controller_epoch = image.controller_epoch

    def apply(self, change: Change) -> None:  # noqa: C901, PLR0912 - one case for each kind of change
        match change:
            case TopicCreated(topic):
                self._create_topic(topic)
            case TopicDeleted(topic_id):
                self._delete_topic(topic_id)
            case PartitionsAdded(topic_id, partitions):
                self._add_partitions(self._topic(topic_id), partitions)
            case PartitionsChanged(topic_id, partitions):
                self._change_partitions(self._topic(topic_id), partitions)
            case StreamChanged(stream):
                self._change_stream(stream)
            case StreamDeleted(stream_id):
                self._delete_stream(stream_id)
            case ConfigsChanged(resource_type, name, values):
                resource = ConfigResource(resource_type, name)
                self._set_or_delete_configs(resource, merge(self._writable_configs().get(resource, {}), values))
            case ClientQuotaChanged(entity, quota_values):
                self._change_quota(entity, quota_values)
            case ProducerIdsAllocated(next_producer_id):
                self._next_producer_id = next_producer_id
            case BrokerRegistered(broker):
                self._register_broker(broker)
            case BrokerRemoved(node_id, broker_epoch):
                self._remove_broker(node_id, broker_epoch)
            case ControllerElected(controller_id, controller_epoch):
                self._elect_controller(controller_id, controller_epoch)
            case AclsAdded(bindings):
                self._add_acls(bindings)
            case AclsRemoved(bindings):
                self._remove_acls(bindings)
            case FeatureLevelChanged(name, level):
                if self._feature_levels is None:
                    self._feature_levels = dict(self._image.changed_feature_levels)
                self._feature_levels[name] = level
            case _ if isinstance(change, UserChange):
                self._change_users(change)
            case _:
                assert_never(change)

    def finish(self) -> MetadataImage:
        image = self._image
        if self._topics is not None:
            image = replace(
                image,
                topics=self._topics,
                topics_by_id=self._topics_by_id,
                topics_by_collision_key=self._collision_keys,
            )
        if self._streams is not None:
            image = replace(image, streams=self._streams)
        if self._configs is not None:
            image = replace(image, configs=self._configs)
        if self._quotas is not None:
            image = replace(image, client_quotas=self._quotas)
        if self._brokers is not None:
            image = replace(image, brokers=self._brokers)
        if self._users is not None:
            image = replace(image, users=self._users.finish())
        if self._acls is not None:
            image = replace(image, acls=self._acls.finish())
        if self._feature_levels is not None:
            image = replace(image, changed_feature_levels=self._feature_levels)
        return replace(
            image,
            version=image.version + 1,
            next_producer_id=self._next_producer_id,
            controller_id=self._controller_id,
            controller_epoch=self._controller_epoch,
        )

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
        topic = self._topics_by_id.get(topic_id)
        if topic is None:
            raise InvalidChange(f"there is no topic with the id {topic_id}")
        return topic

    def _put_topic(self, topic: TopicImage) -> None:
        self._writable_topics()[topic.name] = topic
        self._topics_by_id[topic.topic_id] = topic

    def _create_topic(self, topic: TopicImage) -> None:
        if topic.name in self._writable_topics() or topic.topic_id in self._topics_by_id:
            raise InvalidChange(f"topic {topic.name} with the id {topic.topic_id} exists")
        self._put_topic(topic)
        key = collision_key(topic.name)
        if key is not None:
            self._collision_keys[key] = topic.name

    def _add_partitions(self, topic: TopicImage, added: tuple[PartitionImage, ...]) -> None:
        for index, partition in enumerate(added, len(topic.partitions)):
            if partition.index != index:
                raise InvalidChange(f"partition {partition.index} of {topic.name} is added where {index} comes next")
        self._put_topic(replace(topic, partitions=topic.partitions + added))

    def _change_partitions(self, topic: TopicImage, changed: tuple[PartitionImage, ...]) -> None:
        """The partition epoch guards every change: it must follow the one that the change was decided on."""
        partitions = list(topic.partitions)
        for partition in changed:
            if not 0 <= partition.index < len(partitions):
                raise InvalidChange(f"{topic.name} has no partition {partition.index}")
            current_epoch = partitions[partition.index].partition_epoch
            if partition.partition_epoch != current_epoch + 1:
                raise InvalidChange(
                    f"partition {partition.index} of {topic.name} is at partition epoch {current_epoch}, "
                    f"which {partition.partition_epoch} does not follow"
                )
            partitions[partition.index] = partition
        self._put_topic(replace(topic, partitions=tuple(partitions)))

    def _delete_topic(self, topic_id: uuid.UUID) -> None:
        topic = self._topic(topic_id)
        del self._writable_topics()[topic.name]
        del self._topics_by_id[topic_id]
        key = collision_key(topic.name)
        if key is not None and self._collision_keys.get(key) == topic.name:
            del self._collision_keys[key]
        self._set_or_delete_configs(ConfigResource(ConfigResourceType.TOPIC, topic.name), {})

    def _writable_streams(self) -> dict[str, StreamImage]:
        if self._streams is None:
            self._streams = dict(self._image.streams)
        return self._streams

    def _change_stream(self, stream: StreamImage) -> None:
        streams = self._writable_streams()
        present = streams.get(stream.path)
        if present is not None and present.stream_id != stream.stream_id:
            raise InvalidChange(f"there is another stream {stream.path}, with the id {present.stream_id}")
        streams[stream.path] = stream

    def _delete_stream(self, stream_id: uuid.UUID) -> None:
        streams = self._writable_streams()
        stream = next((each for each in streams.values() if each.stream_id == stream_id), None)
        if stream is None:
            raise InvalidChange(f"there is no stream with the id {stream_id}")
        del streams[stream.path]
        prefix = stream.path + TOPIC_SEPARATOR
        for topic in [each for name, each in self._writable_topics().items() if name.startswith(prefix)]:
            self._delete_topic(topic.topic_id)

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

    def _elect_controller(self, controller_id: int, controller_epoch: int) -> None:
        if controller_epoch <= self._controller_epoch:
            raise InvalidChange(f"controller epoch {controller_epoch} is not above {self._controller_epoch}")
        self._controller_id, self._controller_epoch = controller_id, controller_epoch

    def _change_users(self, change: UserChange) -> None:
        if self._users is None:
            self._users = UserDraft(self._image.users)
        try:
            self._users.apply(change)
        except ValueError as problem:
            raise InvalidChange(str(problem)) from None

    def _writable_brokers(self) -> dict[int, BrokerImage]:
        if self._brokers is None:
            self._brokers = dict(self._image.brokers)
        return self._brokers

    def _register_broker(self, broker: BrokerImage) -> None:
        present = self._writable_brokers().get(broker.node_id)
        if present is not None and broker.broker_epoch < present.broker_epoch:
            raise InvalidChange(
                f"broker {broker.node_id} is registered with epoch {present.broker_epoch}, above {broker.broker_epoch}"
            )
        self._writable_brokers()[broker.node_id] = broker

    def _remove_broker(self, node_id: int, broker_epoch: int) -> None:
        present = self._writable_brokers().get(node_id)
        if present is None or present.broker_epoch != broker_epoch:
            raise InvalidChange(f"broker {node_id} is not registered with epoch {broker_epoch}")
        del self._writable_brokers()[node_id]

    def _writable_acls(self) -> AclDraft:
        if self._acls is None:
            self._acls = AclDraft(self._image.acls)
        return self._acls

    def _add_acls(self, bindings: tuple[AclBinding, ...]) -> None:
        draft = self._writable_acls()
        for binding in bindings:
            if not draft.add(binding):
                raise InvalidChange(f"{binding} exists")

    def _remove_acls(self, bindings: tuple[AclBinding, ...]) -> None:
        draft = self._writable_acls()
        for binding in bindings:
            if not draft.remove(binding):
                raise InvalidChange(f"{binding} does not exist")


def merge(current: Mapping[str, V], changes: Mapping[str, V | None]) -> dict[str, V]:
    """The values after the changes; a change to None removes a value."""
    merged = {**current, **changes}
    return {name: value for name, value in merged.items() if value is not None}
