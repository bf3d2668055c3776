"""CreateTopics: what is made, what is refused, and that an answer means that it can be used."""

from uuid import UUID

import pytest

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from tests.handlers.brokers import AnyBroker, SimulatedBroker
from tests.handlers.requests import create_topic, describe_topic, list_offset, produce


def create(
    broker: AnyBroker, *topics: CreatableTopic, validate_only: bool = False, version: int = 7
) -> dict[str, CreatableTopicResult]:
    request = CreateTopicsRequest(topics=list(topics), timeout_ms=10_000, validate_only=validate_only)
    return {topic.name: topic for topic in broker.call(request, CreateTopicsResponse, version).topics}


def new_topic(name: str, partitions: int = 1, replicas: int = 1, **configs: str | None) -> CreatableTopic:
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replicas,
        configs=[CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()],
    )


def error_of(broker: AnyBroker, topic: CreatableTopic) -> ErrorCode:
    return ErrorCode(create(broker, topic)[topic.name].error_code)


@pytest.mark.parametrize("version", range(2, 8))
def test_an_answer_means_that_it_can_be_used(simulated: SimulatedBroker, name: str, version: int) -> None:
    assert create(simulated, new_topic(name, 2), version=version)[name].error_code == ErrorCode.NONE
    assert produce(simulated, name, partition=1).error_code == ErrorCode.NONE


def test_the_answer_tells_id_size_and_settings(broker: AnyBroker, name: str) -> None:
    made = create(broker, new_topic(name, 3, retention_ms="1234"))[name]
    assert made.topic_id != UUID(int=0)
    assert (made.num_partitions, made.replication_factor, made.error_message) == (3, 1, None)
    assert made.configs is not None
    configs = {each.name: (each.value, each.config_source) for each in made.configs}
    assert configs["retention.ms"] == ("1234", 1)
    assert configs["compression.type"] == ("producer", 5)


def test_a_trial_makes_nothing(broker: AnyBroker, name: str) -> None:
    tried = create(broker, new_topic(name, 2), validate_only=True)[name]
    assert (tried.error_code, tried.num_partitions) == (ErrorCode.NONE, 2)
    assert describe_topic(broker, name).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert create(broker, new_topic(name, 0), validate_only=True)[name].error_code == ErrorCode.INVALID_PARTITIONS


@pytest.mark.parametrize(
    ("topic", "error"),
    [
        (new_topic("t", 0), ErrorCode.INVALID_PARTITIONS),
        (new_topic("t", -2), ErrorCode.INVALID_PARTITIONS),
        (new_topic("t", 1, 2), ErrorCode.INVALID_REPLICATION_FACTOR),
        (new_topic("t", 1, 0), ErrorCode.INVALID_REPLICATION_FACTOR),
        (new_topic("t", 1, no_such_setting="1"), ErrorCode.INVALID_CONFIG),
        (new_topic("t", 1, retention_ms="soon"), ErrorCode.INVALID_CONFIG),
        (new_topic("t", 1, cleanup_policy="burn"), ErrorCode.INVALID_CONFIG),
        (new_topic("t", 1, retention_ms=None), ErrorCode.INVALID_CONFIG),
        (new_topic("", 1), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (new_topic("..", 1), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (new_topic("a/b", 1), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (new_topic("a\0b", 1), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (new_topic("x" * 250, 1), ErrorCode.INVALID_TOPIC_EXCEPTION),
    ],
    ids=lambda each: each.name if isinstance(each, ErrorCode) else "",
)
def test_an_invalid_topic_is_refused(broker: AnyBroker, topic: CreatableTopic, error: ErrorCode) -> None:
    refused = create(broker, topic)[topic.name]
    assert (ErrorCode(refused.error_code), refused.topic_id) == (error, UUID(int=0))
    assert refused.error_message


def test_the_longest_name_is_taken(broker: AnyBroker, name: str) -> None:
    longest = name.ljust(249, "x")
    create_topic(broker, longest)
    assert produce(broker, longest).error_code == ErrorCode.NONE


def test_a_topic_that_exists_is_refused(broker: AnyBroker, name: str) -> None:
    create_topic(broker, name)
    assert error_of(broker, new_topic(name)) == ErrorCode.TOPIC_ALREADY_EXISTS


def test_names_that_differ_in_dots_and_underscores_only_collide(broker: AnyBroker, name: str) -> None:
    create_topic(broker, f"{name}.a")
    assert error_of(broker, new_topic(f"{name}_a")) == ErrorCode.INVALID_TOPIC_EXCEPTION


def test_a_name_twice_in_a_request_is_refused_and_harms_no_other(broker: AnyBroker, name: str) -> None:
    other = f"{name}-other"
    made = create(broker, new_topic(name), new_topic(name, 2), new_topic(other))
    assert made[name].error_code == ErrorCode.INVALID_REQUEST
    assert made[other].error_code == ErrorCode.NONE
    assert describe_topic(broker, name).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_replicas_can_be_placed_by_hand(simulated: SimulatedBroker, name: str) -> None:
    def by_hand(*placed: tuple[int, list[int]]) -> CreatableTopic:
        topic = new_topic(name, -1, -1)
        topic.assignments = [
            CreatableReplicaAssignment(partition_index=index, broker_ids=brokers) for index, brokers in placed
        ]
        return topic

    assert error_of(simulated, by_hand((0, [9]))) == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert error_of(simulated, by_hand((1, [0]))) == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert error_of(simulated, by_hand((0, []))) == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert error_of(simulated, by_hand((1, [0]), (0, [0]))) == ErrorCode.NONE
    assert list_offset(simulated, name, -1, partition=1).error_code == ErrorCode.NONE


def test_topics_survive_a_restart_and_a_crash(simulated: SimulatedBroker, name: str) -> None:
    topic_id = create_topic(simulated, name, 2, retention_ms="77")
    for end in (simulated.restart, simulated.kill):
        end()
        assert describe_topic(simulated, name).topic_id == topic_id
        assert simulated.partition(name, 1).log.config.retention_ms == 77
