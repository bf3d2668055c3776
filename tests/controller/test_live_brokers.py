"""Which brokers are alive, as changes of the metadata."""

import uuid
from dataclasses import replace

from odradek.configuration.listeners import Endpoint
from odradek.controller.live_brokers import decide_live_brokers
from odradek.metadata.changes import BrokerRegistered, Change, PartitionsChanged, TopicCreated
from odradek.metadata.entities import BrokerImage, PartitionImage, TopicImage
from odradek.metadata.snapshot import empty_image

ONE = BrokerImage(1, {"PLAINTEXT": Endpoint("one", 9092)}, broker_epoch=10)
TWO = BrokerImage(2, {"PLAINTEXT": Endpoint("two", 9092)}, broker_epoch=11)
PARTITIONS = (PartitionImage(0, (1,), (1,), 1, 0, 0), PartitionImage(1, (2,), (2,), 2, 4, 7))
TOPIC = TopicImage("t", uuid.UUID(int=1), PARTITIONS, is_internal=False)
IMAGE = empty_image("cluster").apply_all([BrokerRegistered(ONE), BrokerRegistered(TWO), TopicCreated(TOPIC)])


def test_new_broker_is_registered() -> None:
    image = empty_image("cluster")
    assert decide_live_brokers({2: TWO, 1: ONE}, image) == [BrokerRegistered(ONE), BrokerRegistered(TWO)]


def test_nothing_new_changes_nothing() -> None:
    assert decide_live_brokers({1: ONE, 2: TWO}, IMAGE) == []


def test_broker_that_is_gone_is_fenced_once() -> None:
    changes = decide_live_brokers({1: ONE}, IMAGE)
    assert changes == [BrokerRegistered(replace(TWO, is_fenced=True))]
    assert decide_live_brokers({1: ONE}, IMAGE.apply_all(changes)) == []


def test_broker_that_registers_again_gets_new_leader_epochs() -> None:
    again = replace(TWO, broker_epoch=20)
    led = replace(PARTITIONS[1], leader_epoch=5, partition_epoch=8)
    expected: list[Change] = [BrokerRegistered(again), PartitionsChanged(TOPIC.topic_id, (led,))]
    assert decide_live_brokers({1: ONE, 2: again}, IMAGE) == expected
    IMAGE.apply_all(expected)


def test_registration_that_was_read_late_is_ignored() -> None:
    assert decide_live_brokers({1: replace(ONE, broker_epoch=9), 2: TWO}, IMAGE) == []
