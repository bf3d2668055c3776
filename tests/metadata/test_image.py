"""The image: each change gives a new one, and the old one stays as it was."""

import uuid

import pytest

from odradek.configuration.config_types import ConfigResourceType
from odradek.configuration.listeners import Endpoint
from odradek.metadata.changes import (
    BrokerRegistered,
    BrokerRemoved,
    Change,
    ClientQuotaChanged,
    ConfigsChanged,
    ControllerElected,
    PartitionsAdded,
    PartitionsChanged,
    ProducerIdsAllocated,
    TopicCreated,
    TopicDeleted,
)
from odradek.metadata.client_quotas import QuotaEntity
from odradek.metadata.entities import BrokerImage, PartitionImage, TopicImage
from odradek.metadata.image import InvalidChange, MetadataImage

EMPTY = MetadataImage(version=0, cluster_id="c", controller_id=0)
TOPIC_ID = uuid.UUID(int=1)
ALICE: QuotaEntity = frozenset({("user", "alice")})


def partition(index: int, leader_epoch: int = 0, partition_epoch: int = 0) -> PartitionImage:
    return PartitionImage(index, (0,), (0,), 0, leader_epoch, partition_epoch)


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
        [
            PartitionsAdded(TOPIC_ID, (partition(1),)),
            PartitionsChanged(TOPIC_ID, (partition(1, leader_epoch=5, partition_epoch=1),)),
        ]
    )
    assert image.version == 2
    assert image.topics["t.1"].partitions == (partition(0), partition(1, leader_epoch=5, partition_epoch=1))
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


def broker(broker_epoch: int, node_id: int = 0) -> BrokerImage:
    return BrokerImage(node_id, {"PLAINTEXT": Endpoint("localhost", 9092)}, "rack", broker_epoch)


def test_brokers_are_registered_replaced_and_removed() -> None:
    image = EMPTY.apply(BrokerRegistered(broker(1))).apply(BrokerRegistered(broker(2, node_id=1)))
    assert list(image.brokers) == [0, 1]
    image = image.apply(BrokerRegistered(broker(3)))
    assert image.brokers[0] == broker(3)
    gone = image.apply(BrokerRemoved(0, 3))
    assert list(gone.brokers) == [1]
    assert list(image.brokers) == [0, 1]


def test_controller_epoch_rises() -> None:
    image = EMPTY.apply(ControllerElected(4, 1)).apply(ControllerElected(5, 7))
    assert (image.controller_id, image.controller_epoch) == (5, 7)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (TopicCreated(TopicImage("t.1", uuid.UUID(int=2), (), is_internal=False)), "topic t.1 .* exists"),
        (TopicCreated(TopicImage("u", TOPIC_ID, (), is_internal=False)), "topic u .* exists"),
        (TopicDeleted(uuid.UUID(int=2)), "no topic with the id"),
        (PartitionsAdded(uuid.UUID(int=2), ()), "no topic with the id"),
        (PartitionsAdded(TOPIC_ID, (partition(2),)), "partition 2 of t.1 is added where 1 comes next"),
        (PartitionsChanged(TOPIC_ID, (partition(1),)), "t.1 has no partition 1"),
        (PartitionsChanged(TOPIC_ID, (partition(-1),)), "t.1 has no partition -1"),
        (PartitionsChanged(TOPIC_ID, (partition(0),)), "at partition epoch 0, which 0 does not follow"),
        (PartitionsChanged(TOPIC_ID, (partition(0, partition_epoch=2),)), "at partition epoch 0, which 2 does not"),
        (PartitionsChanged(TOPIC_ID, (partition(0, partition_epoch=1),) * 2), "epoch 1, which 1 does not follow"),
        (BrokerRegistered(broker(4)), "broker 0 is registered with epoch 5, above 4"),
        (BrokerRemoved(0, 4), "broker 0 is not registered with epoch 4"),
        (BrokerRemoved(1, 5), "broker 1 is not registered with epoch 5"),
        (ControllerElected(1, 3), "controller epoch 3 is not above 3"),
    ],
)
def test_change_that_contradicts_the_image_is_refused(change: Change, reason: str) -> None:
    image = with_topic().apply_all([BrokerRegistered(broker(5)), ControllerElected(0, 3)])
    with pytest.raises(InvalidChange, match=reason):
        image.apply(change)


def test_what_does_not_change_is_shared() -> None:
    image = with_topic()
    after = image.apply(ProducerIdsAllocated(5))
    assert after.topics is image.topics
    assert after.configs is image.configs
