"""The image: each change gives a new one, and the old one stays as it was."""

import uuid

from odradek.configuration.config_types import ConfigResourceType
from odradek.configuration.listeners import Endpoint
from odradek.metadata.changes import (
    ClientQuotaChanged,
    ConfigsChanged,
    PartitionsAdded,
    PartitionsChanged,
    ProducerIdsAllocated,
    TopicCreated,
    TopicDeleted,
)
from odradek.metadata.client_quotas import QuotaEntity
from odradek.metadata.image import BrokerImage, MetadataImage, PartitionImage, TopicImage

EMPTY = MetadataImage(version=0, cluster_id="c", controller_id=0)
TOPIC_ID = uuid.UUID(int=1)
ALICE: QuotaEntity = frozenset({("user", "alice")})


def partition(index: int, leader_epoch: int = 0) -> PartitionImage:
    return PartitionImage(index, (0,), (0,), 0, leader_epoch, 0)


def with_topic(name: str = "t.1") -> MetadataImage:
    return EMPTY.apply(TopicCreated(TopicImage(name, TOPIC_ID, (partition(0),), is_internal=False)))


def test_topic_is_found_by_name_and_by_id() -> None:
    image = with_topic()
    assert image.version == 1
    assert image.topics["t.1"] is image.topic_by_id(TOPIC_ID)
    assert image.topics_by_collision_key == {"t_1": "t.1"}
    assert EMPTY.topics == {}
    assert EMPTY.topic_by_id(TOPIC_ID) is None


def test_deleted_topic_takes_its_settings_along() -> None:
    image = with_topic().apply(ConfigsChanged(ConfigResourceType.TOPIC, "t.1", {"retention.ms": "1"}))
    assert image.configs_of(ConfigResourceType.TOPIC, "t.1") == {"retention.ms": "1"}
    gone = image.apply(TopicDeleted(TOPIC_ID))
    assert not any((gone.topics, gone.topics_by_id, gone.topics_by_collision_key, gone.configs))
    assert "t.1" in image.topics


def test_partitions_are_added_and_replaced() -> None:
    image = with_topic().apply_all(
        [PartitionsAdded(TOPIC_ID, (partition(1),)), PartitionsChanged(TOPIC_ID, (partition(1, leader_epoch=5),))]
    )
    assert image.version == 2
    assert image.topics["t.1"].partitions == (partition(0), partition(1, leader_epoch=5))
    assert image.topic_by_id(TOPIC_ID) is image.topics["t.1"]


def test_settings_are_merged_and_empty_resources_vanish() -> None:
    group = ConfigResourceType.GROUP
    image = EMPTY.apply(ConfigsChanged(group, "g", {"a": "1", "b": "2"}))
    image = image.apply(ConfigsChanged(group, "g", {"a": None}))
    assert image.configs_of(group, "g") == {"b": "2"}
    assert image.apply(ConfigsChanged(group, "g", {"b": None})).configs == {}
    assert EMPTY.configs_of(group, "g") == {}


def test_quotas_are_merged_and_empty_entities_vanish() -> None:
    image = EMPTY.apply(ClientQuotaChanged(ALICE, {"x": 1.0, "y": 2.0}))
    image = image.apply(ClientQuotaChanged(ALICE, {"x": None, "y": 3.0}))
    assert image.client_quotas == {ALICE: {"y": 3.0}}
    assert image.apply(ClientQuotaChanged(ALICE, {"y": None})).client_quotas == {}


def test_producer_ids() -> None:
    assert EMPTY.apply(ProducerIdsAllocated(1000)).next_producer_id == 1000


def test_registering_a_broker_is_no_commit() -> None:
    image = EMPTY.with_broker(BrokerImage(0, {"PLAINTEXT": Endpoint("localhost", 9092)}))
    assert image.version == 0
    assert list(image.brokers) == [0]


def test_what_does_not_change_is_shared() -> None:
    image = with_topic()
    after = image.apply(ProducerIdsAllocated(5))
    assert after.topics is image.topics
    assert after.configs is image.configs
