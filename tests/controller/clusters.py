"""Images of clusters for tests of decisions."""

import itertools
import uuid
from collections.abc import Sequence

from odradek.configuration.broker_configs import BrokerConfig
from odradek.configuration.config_types import ConfigResourceType
from odradek.configuration.listeners import Endpoint
from odradek.controller.decisions.topics import Cluster
from odradek.metadata.changes import BrokerRegistered, Change, ConfigsChanged, TopicCreated
from odradek.metadata.entities import BrokerImage, PartitionImage, TopicImage
from odradek.metadata.image import MetadataImage
from odradek.metadata.snapshot import empty_image

TOPIC_ID = uuid.UUID(int=1)


def broker(node_id: int, *, epoch: int = 1, host: str | None = None, rack: str | None = None) -> BrokerImage:
    return BrokerImage(node_id, {"PLAINTEXT": Endpoint(host or f"host-{node_id}", 9092)}, rack, epoch)


def partition(index: int, replicas: Sequence[int], in_sync: Sequence[int] | None = None) -> PartitionImage:
    members = tuple(replicas if in_sync is None else in_sync)
    return PartitionImage(index, tuple(replicas), members, members[0] if members else -1, 5, 7)


def topic(*partitions: PartitionImage, name: str = "t", topic_id: uuid.UUID = TOPIC_ID) -> TopicImage:
    return TopicImage(name, topic_id, partitions, is_internal=False)


def image_of(brokers: Sequence[BrokerImage], *topics: TopicImage, **settings: str) -> MetadataImage:
    """The settings are those of every topic."""
    changes: list[Change] = [BrokerRegistered(each) for each in brokers]
    changes += [TopicCreated(each) for each in topics]
    if settings:
        values = {name.replace("_", "."): value for name, value in settings.items()}
        changes += [ConfigsChanged(ConfigResourceType.TOPIC, each.name, values) for each in topics]
    return empty_image("cluster").apply_all(changes)


def cluster_of(image: MetadataImage, **properties: str) -> Cluster:
    numbers = itertools.count(1000)
    config = BrokerConfig.from_properties({name.replace("_", "."): value for name, value in properties.items()})
    return Cluster(image, config, lambda _: 0, lambda: uuid.UUID(int=next(numbers)))


def after(cluster: Cluster, changes: Sequence[Change]) -> Cluster:
    image = cluster.image.apply_all(changes)
    return Cluster(image, cluster.config, cluster.random_below, cluster.new_topic_id)
