"""DeleteTopics: by name and by id, and what is left of a topic afterwards: nothing."""

from uuid import UUID

import pytest

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse, DeleteTopicState
from tests.handlers.brokers import AnyBroker, SimulatedBroker
from tests.handlers.requests import batch, create_topic, delete_topic, describe_topic, list_offset, produce

UNKNOWN_ID = UUID(int=0xABCDEF)
NO_ID = UUID(int=0)


def delete(broker: AnyBroker, *topics: tuple[str | None, UUID]) -> list[tuple[str | None, UUID, ErrorCode]]:
    states = [DeleteTopicState(name=name, topic_id=topic_id) for name, topic_id in topics]
    answer = broker.call(DeleteTopicsRequest(topics=states, timeout_ms=10_000), DeleteTopicsResponse)
    return [(each.name, each.topic_id, ErrorCode(each.error_code)) for each in answer.responses]


@pytest.mark.parametrize("version", range(1, 6))
def test_topics_go_by_name(broker: AnyBroker, name: str, version: int) -> None:
    create_topic(broker, name)
    request = DeleteTopicsRequest(topic_names=[name, f"{name}-not"], timeout_ms=10_000)
    answer = broker.call(request, DeleteTopicsResponse, version)
    reported = {each.name: ErrorCode(each.error_code) for each in answer.responses}
    assert reported == {name: ErrorCode.NONE, f"{name}-not": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    broker.settle(lambda: describe_topic(broker, name).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def test_topics_go_by_id(broker: AnyBroker, name: str) -> None:
    topic_id = create_topic(broker, name)
    assert delete(broker, (None, topic_id)) == [(name, topic_id, ErrorCode.NONE)]
    assert delete(broker, (None, UNKNOWN_ID)) == [(None, UNKNOWN_ID, ErrorCode.UNKNOWN_TOPIC_ID)]
    broker.settle(lambda: describe_topic(broker, name).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def test_a_topic_is_named_by_name_or_by_id(simulated: SimulatedBroker, name: str) -> None:
    topic_id = create_topic(simulated, name)
    assert delete(simulated, (name, topic_id))[0][2] == ErrorCode.INVALID_REQUEST
    assert delete(simulated, (None, NO_ID))[0][2] == ErrorCode.INVALID_REQUEST
    assert describe_topic(simulated, name).error_code == ErrorCode.NONE


def test_a_topic_named_twice_is_an_invalid_request(broker: AnyBroker, name: str) -> None:
    topic_id = create_topic(broker, name)
    reported = delete(broker, (name, NO_ID), (name, NO_ID))
    assert {error for _, _, error in reported} == {ErrorCode.INVALID_REQUEST}
    reported = delete(broker, (name, NO_ID), (None, topic_id))
    assert ErrorCode.INVALID_REQUEST in {error for _, _, error in reported}
    assert describe_topic(broker, name).error_code == ErrorCode.NONE


@pytest.mark.parametrize(
    ("version", "error"),
    [
        (1, ErrorCode.INVALID_REQUEST),
        (2, ErrorCode.INVALID_REQUEST),
        (3, ErrorCode.TOPIC_DELETION_DISABLED),
        (5, ErrorCode.TOPIC_DELETION_DISABLED),
    ],
)
def test_old_versions_do_not_know_the_error_of_a_forbidden_deletion(name: str, version: int, error: ErrorCode) -> None:
    broker = SimulatedBroker(delete_topic_enable="false")
    create_topic(broker, name)
    (answer,) = broker.call(DeleteTopicsRequest(topic_names=[name]), DeleteTopicsResponse, version).responses
    assert answer.error_code == error
    broker.close()


def test_nothing_is_left_of_a_deleted_topic(simulated: SimulatedBroker, name: str) -> None:
    create_topic(simulated, name, 2, retention_ms="77")
    produce(simulated, name, batch(b"x" * 1000))
    delete_topic(simulated, name)
    simulated.step()
    left = [path for path in simulated.simulation.disk.list_directory("/data") if path.startswith(name)]
    assert left == []
    create_topic(simulated, name)
    assert list_offset(simulated, name, -1).offset == 0
    assert simulated.partition(name).log.config.retention_ms != 77


@pytest.mark.parametrize("how", ["restart", "kill"])
def test_a_deleted_topic_stays_deleted(simulated: SimulatedBroker, name: str, how: str) -> None:
    create_topic(simulated, name)
    delete_topic(simulated, name)
    getattr(simulated, how)()
    assert describe_topic(simulated, name).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_topic_can_be_made_again_at_once(simulated: SimulatedBroker, name: str) -> None:
    for life in range(5):
        create_topic(simulated, name, life + 1)
        for partition in range(life + 1):
            assert produce(simulated, name, partition=partition).base_offset == 0
        delete_topic(simulated, name)
    simulated.kill()
    assert describe_topic(simulated, name).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
