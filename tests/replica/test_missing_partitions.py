"""Partitions whose logs could not be created: tried again in order with following the metadata, leaving no trace."""

import pytest

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from odradek.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from odradek.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from tests.handlers.brokers import SimulatedBroker
from tests.handlers.requests import base_offsets, create_topic, describe_topic, fetch, list_offset, produce
from tests.replica.held_workers import HeldWorkers
from tests.replica.test_housekeeping import pass_time

ROUND_SECONDS = 1.1


@pytest.fixture(autouse=True)
def nothing_fails_unseen() -> None:
    """Every test here provokes errors."""


def create_on_full_disk(broker: SimulatedBroker, name: str, partitions: int = 1) -> None:
    broker.simulation.disk.capacity_bytes = 0
    topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
    answer = broker.call(CreateTopicsRequest(topics=[topic]), CreateTopicsResponse)
    assert answer.topics[0].error_code == ErrorCode.NONE


def make_room_and_hold_the_retry(broker: SimulatedBroker, workers: HeldWorkers) -> None:
    broker.simulation.disk.capacity_bytes = None
    workers.held.add("open_logs")
    pass_time(broker, ROUND_SECONDS)
    assert workers.waiting == ["open_logs"]


def stray_directories(broker: SimulatedBroker) -> list[str]:
    return [each for each in broker.simulation.disk.list_directory("/data") if each.endswith("-stray")]


def test_a_partition_is_served_once_its_log_could_be_created(broker: SimulatedBroker, name: str) -> None:
    create_on_full_disk(broker, name)
    assert produce(broker, name).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert describe_topic(broker, name).partitions[0].leader_id == -1
    broker.simulation.disk.capacity_bytes = None
    pass_time(broker, ROUND_SECONDS)
    assert produce(broker, name).base_offset == 0
    assert describe_topic(broker, name).partitions[0].leader_id == broker.services.config.node_id


def test_partitions_added_during_a_retry_are_not_opened_twice(
    broker: SimulatedBroker, workers: HeldWorkers, name: str
) -> None:
    create_on_full_disk(broker, name)
    make_room_and_hold_the_retry(broker, workers)
    request = CreatePartitionsRequest(topics=[CreatePartitionsTopic(name=name, count=3, assignments=None)])
    adding = broker.begin(request, CreatePartitionsResponse)
    workers.release_all()
    assert adding.result().results[0].error_code == ErrorCode.NONE
    assert [broker.partition(name, index).index for index in range(3)] == [0, 1, 2]
    assert len(list(broker.services.partitions)) == 3
    produce(broker, name, partition=1)
    assert [list_offset(broker, name, -1, partition=index).offset for index in range(3)] == [0, 1, 0]
    broker.restart()
    assert [list_offset(broker, name, -1, partition=index).offset for index in range(3)] == [0, 1, 0]


def test_a_topic_deleted_during_a_retry_stays_deleted(broker: SimulatedBroker, workers: HeldWorkers, name: str) -> None:
    create_on_full_disk(broker, name)
    make_room_and_hold_the_retry(broker, workers)
    deleting = broker.begin(DeleteTopicsRequest(topic_names=[name]), DeleteTopicsResponse, 4)
    workers.release_all()
    assert deleting.result().responses[0].error_code == ErrorCode.NONE
    pass_time(broker, ROUND_SECONDS)
    assert broker.services.partitions.find(name, 0) is None
    assert produce(broker, name).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert not [each for each in broker.simulation.disk.list_directory("/data") if each.startswith(name)]


def test_a_topic_deleted_before_a_retry_is_not_created(broker: SimulatedBroker, name: str) -> None:
    create_on_full_disk(broker, name)
    broker.call(DeleteTopicsRequest(topic_names=[name]), DeleteTopicsResponse, 4)
    broker.simulation.disk.capacity_bytes = None
    pass_time(broker, ROUND_SECONDS)
    assert broker.services.partitions.find(name, 0) is None
    create_topic(broker, name)
    assert produce(broker, name).base_offset == 0


def test_repeated_retries_leave_no_directories(broker: SimulatedBroker, name: str) -> None:
    create_on_full_disk(broker, name, partitions=2)
    pass_time(broker, 30)
    assert stray_directories(broker) == []
    broker.simulation.disk.capacity_bytes = None
    pass_time(broker, ROUND_SECONDS)
    assert stray_directories(broker) == []
    for partition in range(2):
        assert produce(broker, name, partition=partition).base_offset == 0
    broker.restart()
    assert base_offsets(fetch(broker, name).records) == [0]
