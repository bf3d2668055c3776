"""Metadata: all topics, none, some, by name or by id, known or not, made by asking or not."""

from uuid import UUID

import pytest

from odradek.handlers.metadata import _once
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from odradek.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)
from tests.handlers.brokers import AnyBroker, SimulatedBroker
from tests.handlers.requests import create_topic, delete_topic, list_offset
from tests.memory import memory_of

NO_OPERATIONS = -(2**31)
TOPIC_OPERATIONS = sum(1 << operation for operation in (3, 4, 5, 6, 7, 8, 10, 11))
CLUSTER_OPERATIONS = sum(1 << operation for operation in (5, 7, 8, 9, 10, 11, 12))
UNKNOWN_ID = UUID(int=0xABCDEF)


def ask(
    broker: AnyBroker, *names: str, version: int = 13, create: bool = False, operations: bool = False
) -> list[MetadataResponseTopic]:
    topics = [MetadataRequestTopic(name=each) for each in names]
    request = MetadataRequest(
        topics=topics, allow_auto_topic_creation=create, include_topic_authorized_operations=operations
    )
    return broker.call(request, MetadataResponse, version).topics


def ask_by_id(broker: AnyBroker, topic_id: UUID, version: int = 13) -> MetadataResponseTopic:
    request = MetadataRequest(topics=[MetadataRequestTopic(topic_id=topic_id, name=None)])
    return broker.call(request, MetadataResponse, version).topics[0]


# --- which topics


@pytest.mark.parametrize("version", range(14))
def test_all_topics_are_reported(broker: AnyBroker, name: str, version: int) -> None:
    """Null means all; in version 0 an empty list does."""
    names = {name, f"{name}-other"}
    for each in names:
        create_topic(broker, each, 2)
    request = MetadataRequest(topics=None if version else [])
    reported = {topic.name: len(topic.partitions) for topic in broker.call(request, MetadataResponse, version).topics}
    assert {each: reported[each] for each in names} == dict.fromkeys(names, 2)


@pytest.mark.parametrize("version", range(1, 14))
def test_an_empty_list_is_none(broker: AnyBroker, name: str, version: int) -> None:
    create_topic(broker, name)
    answer = broker.call(MetadataRequest(topics=[]), MetadataResponse, version)
    assert answer.topics == []
    assert len(answer.brokers) == 1


def test_a_topic_has_its_leader_replicas_and_epoch(simulated: SimulatedBroker, name: str) -> None:
    topic_id = create_topic(simulated, name, 3)
    simulated.restart()
    topic = ask(simulated, name)[0]
    assert (topic.error_code, topic.name, topic.topic_id, topic.is_internal) == (0, name, topic_id, False)
    for index, partition in enumerate(topic.partitions):
        assert (partition.error_code, partition.partition_index, partition.leader_id) == (0, index, 0)
        assert partition.leader_epoch == 1, "every life of the broker has its own"
        assert (partition.replica_nodes, partition.isr_nodes, partition.offline_replicas) == ([0], [0], [])


def test_topics_are_found_by_id(broker: AnyBroker, name: str) -> None:
    topic_id = create_topic(broker, name, 2)
    for version in (12, 13):
        found = ask_by_id(broker, topic_id, version)
        assert (found.error_code, found.name, found.topic_id) == (ErrorCode.NONE, name, topic_id)
        assert len(found.partitions) == 2
    unknown = ask_by_id(broker, UNKNOWN_ID)
    assert (unknown.error_code, unknown.name, unknown.topic_id) == (ErrorCode.UNKNOWN_TOPIC_ID, None, UNKNOWN_ID)
    delete_topic(broker, name)
    assert ask_by_id(broker, topic_id).error_code == ErrorCode.UNKNOWN_TOPIC_ID


@pytest.mark.parametrize("version", [10, 11])
def test_ids_are_not_for_versions_that_cannot_answer_them(simulated: SimulatedBroker, name: str, version: int) -> None:
    topic_id = create_topic(simulated, name)
    assert ask_by_id(simulated, topic_id, version).error_code == ErrorCode.INVALID_REQUEST


def test_one_unknown_topic_harms_no_other(broker: AnyBroker, name: str) -> None:
    create_topic(broker, name)
    reported = {topic.name: topic.error_code for topic in ask(broker, name, f"{name}-not")}
    assert reported == {name: ErrorCode.NONE, f"{name}-not": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


def test_a_topic_asked_for_twice_is_reported_once(broker: AnyBroker, name: str) -> None:
    create_topic(broker, name)
    assert [topic.name for topic in ask(broker, name, name)] == [name]


# --- making topics by asking


@pytest.mark.parametrize(
    ("enabled", "allowed", "is_made"), [("true", True, True), ("true", False, False), ("false", True, False)]
)
def test_a_topic_is_made_only_if_broker_and_client_want_it(
    name: str, enabled: str, allowed: bool, is_made: bool
) -> None:
    broker = SimulatedBroker(auto_create_topics_enable=enabled, num_partitions="3")
    error = ErrorCode.NONE if is_made else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    topic = ask(broker, name, create=allowed)[0]
    assert (topic.error_code, len(topic.partitions)) == (error, 3 if is_made else 0)
    assert (list_offset(broker, name, -1).error_code == ErrorCode.NONE) == is_made
    broker.close()


@pytest.mark.parametrize("version", range(4))
def test_old_versions_always_allow_it(name: str, version: int) -> None:
    broker = SimulatedBroker(auto_create_topics_enable="true")
    assert len(ask(broker, name, version=version)[0].partitions) == 1
    broker.close()


def test_finding_repeated_names_takes_less_memory_than_the_request() -> None:
    topics = [MetadataRequestTopic(name=f"none-{number}") for number in range(MetadataRequest.element_limit())]

    def find() -> None:
        assert len([*_once([*topics, *topics])]) == len(topics)

    assert memory_of(find).peak_bytes < 100 * len(topics)


def test_many_who_ask_at_once_make_one_topic(name: str) -> None:
    broker = SimulatedBroker(auto_create_topics_enable="true")
    request = MetadataRequest(
        topics=[MetadataRequestTopic(name=name), MetadataRequestTopic(name=name)], allow_auto_topic_creation=True
    )
    waiting = [broker.begin(request, MetadataResponse) for _ in range(5)]
    ids = {topic.topic_id for each in waiting for topic in each.result().topics}
    assert len(ids) == 1
    assert len(broker.services.image.topics) == 1
    broker.close()


def test_nothing_is_made_by_asking_for_all_or_by_id(name: str) -> None:
    broker = SimulatedBroker(auto_create_topics_enable="true")
    broker.call(MetadataRequest(topics=None), MetadataResponse)
    assert ask_by_id(broker, UNKNOWN_ID).error_code == ErrorCode.UNKNOWN_TOPIC_ID
    assert not broker.services.image.topics
    broker.close()


# --- who and where


def test_the_cluster_is_reported(simulated: SimulatedBroker) -> None:
    answer = simulated.call(MetadataRequest(topics=[]), MetadataResponse)
    assert [(each.node_id, each.host, each.port, each.rack) for each in answer.brokers] == [
        (0, "simulated", 9092, None)
    ]
    assert answer.controller_id == 0
    cluster_id = answer.cluster_id
    simulated.restart()
    assert simulated.call(MetadataRequest(topics=[]), MetadataResponse).cluster_id == cluster_id


@pytest.mark.parametrize("version", range(8, 14))
def test_authorized_operations_are_reported_when_asked_for(broker: AnyBroker, name: str, version: int) -> None:
    create_topic(broker, name)
    reported = ask(broker, name, version=version, operations=True)[0].topic_authorized_operations
    assert reported == TOPIC_OPERATIONS
    assert ask(broker, name, version=version)[0].topic_authorized_operations == NO_OPERATIONS


@pytest.mark.parametrize("version", [8, 9, 10])
def test_operations_on_the_cluster_are_reported_in_three_versions(broker: AnyBroker, version: int) -> None:
    asked = MetadataRequest(topics=[], include_cluster_authorized_operations=True)
    assert broker.call(asked, MetadataResponse, version).cluster_authorized_operations == CLUSTER_OPERATIONS
    plain = MetadataRequest(topics=[])
    assert broker.call(plain, MetadataResponse, version).cluster_authorized_operations == NO_OPERATIONS


def test_a_topic_made_by_hand_is_reported_alike(simulated: SimulatedBroker, name: str) -> None:
    assignments = [CreatableReplicaAssignment(partition_index=index, broker_ids=[0]) for index in (1, 0)]
    requested = CreatableTopic(name=name, num_partitions=-1, replication_factor=-1, assignments=assignments)
    made = simulated.call(CreateTopicsRequest(topics=[requested]), CreateTopicsResponse).topics[0]
    assert made.error_code == ErrorCode.NONE
    assert [each.partition_index for each in ask(simulated, name)[0].partitions] == [0, 1]
