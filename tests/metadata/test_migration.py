"""What a single broker's metadata becomes in a cluster, and what must not be in both."""

import uuid

from odradek.configuration.config_types import ConfigResourceType
from odradek.metadata.changes import (
    AclsAdded,
    BrokerRegistered,
    Change,
    ClientQuotaChanged,
    ConfigsChanged,
    ProducerIdsAllocated,
    TopicCreated,
)
from odradek.metadata.entities import BrokerImage, PartitionImage, TopicImage
from odradek.metadata.image import MetadataImage
from odradek.metadata.migration import decide_migration
from odradek.metadata.snapshot import empty_image
from odradek.security.acls.bindings import AclBinding, PatternType, Permission
from odradek.security.authorizer import Operation, ResourceType

ENTITY = frozenset({("user", "alice")})


def topic(name: str, number: int) -> TopicImage:
    partition = PartitionImage(0, (1,), (1,), 1, leader_epoch=7, partition_epoch=9)
    return TopicImage(name, uuid.UUID(int=number), (partition,), is_internal=False)


def image(*changes: Change) -> MetadataImage:
    return empty_image("id").apply_all(changes)


RULE = AclBinding(ResourceType.TOPIC, "a", PatternType.LITERAL, "User:alice", "*", Operation.READ, Permission.ALLOW)
SOURCE = image(
    TopicCreated(topic("a", 1)),
    TopicCreated(topic("b.c", 2)),
    ConfigsChanged(ConfigResourceType.TOPIC, "a", {"retention.ms": "5"}),
    ClientQuotaChanged(ENTITY, {"producer_byte_rate": 10.0}),
    AclsAdded((RULE,)),
    ProducerIdsAllocated(3000),
)


def test_the_minimum_of_in_sync_replicas_is_that_of_the_cluster() -> None:
    """The one of a single broker was written at its first start."""
    name = "min.insync.replicas"
    source = SOURCE.apply_all([ConfigsChanged(ConfigResourceType.BROKER, "", {name: "1", "message.max.bytes": "9"})])
    target = image(ConfigsChanged(ConfigResourceType.BROKER, "", {name: "2"}))
    migration = decide_migration(source, target, 1)
    assert (migration.collisions, migration.settings) == ([], 2)
    after = target.apply_all(migration.changes)
    assert after.configs_of(ConfigResourceType.BROKER, "") == {name: "2", "message.max.bytes": "9"}
    assert migration.left_out == {name: "1"}
    assert decide_migration(source, source, 1).left_out == {}
    assert decide_migration(SOURCE, target, 1).left_out == {}


def test_everything_arrives_in_an_empty_cluster_as_it_was() -> None:
    migration = decide_migration(SOURCE, empty_image("other"), 1)
    assert not migration.collisions
    assert (migration.topics, migration.partitions, migration.settings, migration.quotas) == (2, 2, 1, 1)
    after = empty_image("other").apply_all(migration.changes)
    assert (after.topics, after.configs, after.client_quotas) == (SOURCE.topics, SOURCE.configs, SOURCE.client_quotas)
    assert after.acls == SOURCE.acls
    assert after.next_producer_id == 3000
    assert not after.brokers


def test_a_repeated_migration_changes_nothing() -> None:
    target = empty_image("other").apply_all(decide_migration(SOURCE, empty_image("other"), 1).changes)
    again = decide_migration(SOURCE, target, 1)
    assert (again.changes, again.collisions, again.present_topics) == ([], [], 2)


def test_another_clusters_topics_stay_beside_those_of_the_broker() -> None:
    target = image(TopicCreated(topic("z", 9)), ProducerIdsAllocated(9000))
    after = target.apply_all(decide_migration(SOURCE, target, 1).changes)
    assert set(after.topics) == {"a", "b.c", "z"}
    assert after.next_producer_id == 9000


def test_names_in_both_are_named() -> None:
    target = image(
        BrokerRegistered(BrokerImage(1, {})),
        TopicCreated(topic("a", 8)),
        TopicCreated(topic("b_c", 9)),
        ConfigsChanged(ConfigResourceType.TOPIC, "a", {"retention.ms": "6"}),
        ClientQuotaChanged(ENTITY, {"producer_byte_rate": 20.0}),
    )
    assert decide_migration(SOURCE, target, 1).collisions == [
        "broker 1 is registered in the cluster",
        "topic a",
        "topic b.c (the cluster has b_c, which differs in . and _ only)",
        "setting retention.ms of topic a",
        "quota producer_byte_rate of user alice",
    ]
