"""What the controller decides about topics, in Kafka's order and words."""

import uuid
from collections.abc import Sequence
from dataclasses import replace

import pytest

from odradek.configuration.broker_configs import BrokerConfig
from odradek.configuration.config_types import ConfigResourceType
from odradek.controller.decisions.topics import (
    Assignment,
    Cluster,
    NewPartitions,
    NewTopic,
    check_request_size,
    decide_new_leader_epochs,
    decide_partitions,
    decide_topic,
    decide_topics,
    duplicates,
)
from odradek.metadata.changes import BrokerRegistered, ConfigsChanged, PartitionsAdded, PartitionsChanged, TopicCreated
from odradek.metadata.entities import BrokerImage, PartitionImage, TopicImage
from odradek.metadata.image import MetadataImage
from odradek.protocol.errors import ErrorCode
from odradek.protocol.refusal import Refusal

TOPIC_ID = uuid.UUID(int=7)


def partition(index: int, leader: int = 0, leader_epoch: int = 0) -> PartitionImage:
    return PartitionImage(index, (leader,), (leader,), leader, leader_epoch, 0)


def topic(name: str, *partitions: PartitionImage) -> TopicImage:
    return TopicImage(name, uuid.uuid5(uuid.NAMESPACE_DNS, name), partitions or (partition(0),), is_internal=False)


def cluster(*topics: TopicImage, brokers: Sequence[int] = (0,), **properties: str) -> Cluster:
    image = MetadataImage(version=0, cluster_id="c", controller_id=0)
    for each in topics:
        image = image.apply(TopicCreated(each))
    for broker in brokers:
        image = image.apply(BrokerRegistered(BrokerImage(broker, {})))
    config = BrokerConfig.from_properties({name.replace("_", "."): value for name, value in properties.items()})
    return Cluster(image, config, lambda bound: 0, lambda: TOPIC_ID)


def test_new_topic_gets_the_brokers_defaults() -> None:
    decision = decide_topic(NewTopic(name="t"), cluster(num_partitions="3"))
    assert not isinstance(decision, Refusal)
    created, changes = decision
    assert created == TopicImage("t", TOPIC_ID, (partition(0), partition(1), partition(2)), is_internal=False)
    assert changes == [TopicCreated(created)]


def test_settings_come_with_the_topic() -> None:
    decision = decide_topic(NewTopic(name="__consumer_offsets", configs={"retention.ms": "5"}), cluster())
    assert not isinstance(decision, Refusal)
    created, changes = decision
    assert created.is_internal
    assert changes[1] == ConfigsChanged(ConfigResourceType.TOPIC, "__consumer_offsets", {"retention.ms": "5"})


def test_partitions_by_hand() -> None:
    request = NewTopic(name="t", assignments=[Assignment(1, (1, 0)), Assignment(0, (0, 1))])
    decision = decide_topic(request, cluster(brokers=[0, 1]))
    assert not isinstance(decision, Refusal)
    assert [(each.replicas, each.leader) for each in decision[0].partitions] == [((0, 1), 0), ((1, 0), 1)]


@pytest.mark.parametrize(
    ("request_", "error", "message"),
    [
        (NewTopic(name="old"), ErrorCode.TOPIC_ALREADY_EXISTS, "Topic 'old' already exists."),
        (NewTopic(name=".."), ErrorCode.INVALID_TOPIC_EXCEPTION, "Topic name is invalid: '..' is not allowed"),
        (
            NewTopic(name="dotted_name"),
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            "Topic 'dotted_name' collides with existing topic: dotted.name",
        ),
        (
            NewTopic(name="__cluster_metadata"),
            ErrorCode.INVALID_REQUEST,
            "Creation of internal topic __cluster_metadata is prohibited.",
        ),
        (
            NewTopic(name="t", configs={"retention.ms": None, "a": None}),
            ErrorCode.INVALID_CONFIG,
            "Null value not supported for topic configs: retention.ms,a",
        ),
        (NewTopic(name="t", configs={"invalid": "2"}), ErrorCode.INVALID_CONFIG, "Unknown topic config name: invalid"),
        (
            NewTopic(name="t", partition_count=0),
            ErrorCode.INVALID_PARTITIONS,
            "Number of partitions was set to an invalid non-positive value.",
        ),
        (
            NewTopic(name="t", replication_factor=0),
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "Replication factor must be larger than 0, or -1 to use the default value.",
        ),
        (
            NewTopic(name="t", replication_factor=3),
            ErrorCode.INVALID_REPLICATION_FACTOR,
            (
                "Unable to replicate the partition 3 time(s): The target replication factor of 3 cannot be reached "
                "because only 1 broker(s) are registered or some brokers have all their log directories cordoned."
            ),
        ),
        (
            NewTopic(name="t", partition_count=1, assignments=[Assignment(0, (0,))]),
            ErrorCode.INVALID_REQUEST,
            "A manual partition assignment was specified, but numPartitions was not set to -1.",
        ),
        (
            NewTopic(name="t", replication_factor=1, assignments=[Assignment(0, (0,))]),
            ErrorCode.INVALID_REQUEST,
            "A manual partition assignment was specified, but replication factor was not set to -1.",
        ),
        (
            NewTopic(name="t", assignments=[Assignment(0, (0,)), Assignment(0, (0,))]),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "Found multiple manual partition assignments for partition 0",
        ),
        (
            NewTopic(name="t", assignments=[Assignment(1, (0,))]),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "partitions should be a consecutive 0-based integer sequence",
        ),
        (
            NewTopic(name="t", assignments=[Assignment(0, (9,))]),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "The manual partition assignment includes broker 9, but no such broker is registered.",
        ),
    ],
    ids=lambda value: value.name if isinstance(value, NewTopic | ErrorCode) else "",
)
def test_topics_that_cannot_be(request_: NewTopic, error: ErrorCode, message: str) -> None:
    assert decide_topic(request_, cluster(topic("old"), topic("dotted.name"))) == Refusal(error, message)


def test_too_many_partitions_at_once_are_refused_before_anything_is_made() -> None:
    image, config = cluster().image, cluster().config
    assert check_request_size([NewTopic(name="a", partition_count=9999), NewTopic(name="b")], image, config) is None
    assert check_request_size(
        [NewTopic(name="a", partition_count=10000), NewTopic(name="b")], image, config
    ) == Refusal(ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request.")
    assert check_request_size([NewTopic(name="a", partition_count=-7)], image, config) is None


def test_new_topics_must_not_collide_with_each_other() -> None:
    requests = [NewTopic(name=name) for name in ("a.b", "a_b", "ab")]
    decisions = [decision for _, decision in decide_topics(requests, cluster())]
    assert [isinstance(decision, Refusal) for decision in decisions] == [False, True, False]
    assert decisions[1] == Refusal(ErrorCode.INVALID_TOPIC_EXCEPTION, "Topic 'a_b' collides with existing topic: a.b")


def test_duplicates() -> None:
    assert duplicates(["c", "a", "b", "a", "c"]) == {"c": 2, "a": 2}


def test_partitions_are_added_behind_the_old_ones() -> None:
    grown = topic("t")
    assert decide_partitions(NewPartitions(name="t", count=3), cluster(grown)) == [
        PartitionsAdded(grown.topic_id, (partition(1), partition(2)))
    ]
    assert decide_partitions(NewPartitions(name="t", count=2, assignments=[(1,)]), cluster(grown, brokers=[0, 1])) == [
        PartitionsAdded(grown.topic_id, (partition(1, leader=1),))
    ]


@pytest.mark.parametrize(
    ("request_", "error", "message"),
    [
        (NewPartitions(name="x", count=3), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None),
        (NewPartitions(name="t", count=2), ErrorCode.INVALID_PARTITIONS, "Topic already has 2 partition(s)."),
        (
            NewPartitions(name="t", count=1),
            ErrorCode.INVALID_PARTITIONS,
            "The topic t currently has 2 partition(s); 1 would not be an increase.",
        ),
        (
            NewPartitions(name="t", count=4, assignments=[(0,)]),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "Attempted to add 2 additional partition(s), but only 1 assignment(s) were specified.",
        ),
        (
            NewPartitions(name="t", count=3, assignments=[()]),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "The manual partition assignment includes an empty replica list.",
        ),
    ],
    ids=lambda value: value.name if isinstance(value, ErrorCode) else "",
)
def test_partitions_that_cannot_be_added(request_: NewPartitions, error: ErrorCode, message: str | None) -> None:
    two = topic("t", partition(0), partition(1))
    assert decide_partitions(request_, cluster(two)) == Refusal(error, message)


def test_partitions_added_during_a_reassignment_have_as_many_replicas_as_it_ends_with() -> None:
    moving = PartitionImage(0, (0, 1, 3, 2), (0, 1), 0, 0, 0, adding_replicas=(3,), removing_replicas=(2,))
    brokers = cluster(topic("t", moving), brokers=[0, 1, 2, 3])
    added = decide_partitions(NewPartitions(name="t", count=2), brokers)
    assert not isinstance(added, Refusal)
    (change,) = added
    assert isinstance(change, PartitionsAdded)
    assert [len(each.replicas) for each in change.partitions] == [3]
    assert not isinstance(
        decide_partitions(NewPartitions(name="t", count=2, assignments=[(0, 1, 2)]), brokers), Refusal
    )


def test_restart_bumps_the_epochs_of_led_partitions_only() -> None:
    mixed = topic("t", partition(0, leader=0, leader_epoch=4), partition(1, leader=1, leader_epoch=9))
    assert decide_new_leader_epochs(cluster(mixed, topic("u", partition(0, leader=1))).image, 0) == [
        PartitionsChanged(mixed.topic_id, (PartitionImage(0, (0,), (0,), 0, 5, 1),))
    ]


def test_restart_keeps_reassignment_and_eligible_leaders() -> None:
    before = PartitionImage(0, (0, 1), (0,), 0, 4, 7, (2,), (1,), (1,), (3,))
    (change,) = decide_new_leader_epochs(cluster(topic("t", before)).image, 0)
    assert change == PartitionsChanged(
        topic("t").topic_id, (PartitionImage(0, (0, 1), (0,), 0, 5, 8, (2,), (1,), (1,), (3,)),)
    )


def test_fenced_brokers_get_new_replicas_only_when_no_other_is_left() -> None:
    present = cluster(brokers=[0, 1])
    fenced = replace(present, image=present.image.apply(BrokerRegistered(BrokerImage(0, {}, is_fenced=True))))
    decision = decide_topic(NewTopic(name="t", partition_count=3), fenced)
    assert not isinstance(decision, Refusal)
    assert {partition.replicas for partition in decision[0].partitions} == {(1,)}
    decision = decide_topic(NewTopic(name="t", replication_factor=2), fenced)
    assert not isinstance(decision, Refusal)
    (partition,) = decision[0].partitions
    assert (partition.replicas, partition.in_sync_replicas, partition.leader) == ((1, 0), (1,), 1)
    refusal = decide_topic(NewTopic(name="t", assignments=[Assignment(0, (0,))]), fenced)
    assert isinstance(refusal, Refusal)
    assert refusal.error is ErrorCode.INVALID_REPLICA_ASSIGNMENT
