"""OffsetForLeaderEpoch: where an epoch ended, before and after restarts."""

import pytest

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from tests.handlers.brokers import AnyBroker, SimulatedBroker
from tests.handlers.requests import batch, create_topic, delete_records, end_of_epoch, produce

FIVE = batch(*[b"v"] * 5)


def end(broker: AnyBroker, topic: str, epoch: int, current: int = -1) -> tuple[ErrorCode, int, int]:
    reported = end_of_epoch(broker, topic, epoch, current=current)
    return ErrorCode(reported.error_code), reported.leader_epoch, reported.end_offset


def test_the_present_epoch_ends_with_the_log(broker: AnyBroker, name: str) -> None:
    create_topic(broker, name)
    assert end(broker, name, 0) == (ErrorCode.NONE, 0, 0)
    produce(broker, name, FIVE)
    assert end(broker, name, 0) == (ErrorCode.NONE, 0, 5)


@pytest.mark.parametrize("epoch", [-1, 1, 2**31 - 1])
def test_an_epoch_that_was_not_yet_has_no_end(broker: AnyBroker, name: str, epoch: int) -> None:
    create_topic(broker, name)
    produce(broker, name, FIVE)
    assert end(broker, name, epoch) == (ErrorCode.NONE, -1, -1)


def test_epochs_of_earlier_lives_are_remembered(simulated: SimulatedBroker, name: str) -> None:
    """Epoch 0 has 0 to 4, epoch 1 nothing, epoch 2 has 5 to 9, epoch 3 is the present one."""
    create_topic(simulated, name)
    produce(simulated, name, FIVE)
    simulated.restart()
    simulated.restart()
    produce(simulated, name, FIVE)
    simulated.restart()
    for current in (-1, 3):
        assert end(simulated, name, 0, current) == (ErrorCode.NONE, 0, 5)
        assert end(simulated, name, 1, current) == (ErrorCode.NONE, 0, 5)
        assert end(simulated, name, 2, current) == (ErrorCode.NONE, 2, 10)
        assert end(simulated, name, 3, current) == (ErrorCode.NONE, 3, 10)
        assert end(simulated, name, 4, current) == (ErrorCode.NONE, -1, -1)


def test_epochs_survive_a_crash(simulated: SimulatedBroker, name: str) -> None:
    create_topic(simulated, name)
    produce(simulated, name, FIVE)
    simulated.kill()
    produce(simulated, name, FIVE)
    simulated.kill()
    assert end(simulated, name, 0) == (ErrorCode.NONE, 0, 5)
    assert end(simulated, name, 1) == (ErrorCode.NONE, 1, 10)


def test_the_clients_view_of_the_leader_is_checked(simulated: SimulatedBroker, name: str) -> None:
    create_topic(simulated, name)
    simulated.restart()
    assert end(simulated, name, 0, 0) == (ErrorCode.FENCED_LEADER_EPOCH, -1, -1)
    assert end(simulated, name, 0, 2) == (ErrorCode.UNKNOWN_LEADER_EPOCH, -1, -1)


def test_deleted_epochs_end_where_the_log_starts(simulated: SimulatedBroker, name: str) -> None:
    create_topic(simulated, name)
    produce(simulated, name, FIVE)
    simulated.restart()
    produce(simulated, name, FIVE)
    delete_records(simulated, name, 7)
    assert end(simulated, name, 0) == (ErrorCode.NONE, 0, 7)
    assert end(simulated, name, 1) == (ErrorCode.NONE, 1, 10)


@pytest.mark.parametrize("version", [2, 3, 4])
def test_what_is_not_there_is_unknown(broker: AnyBroker, name: str, version: int) -> None:
    create_topic(broker, name)
    asked = [OffsetForLeaderPartition(partition=index, leader_epoch=0) for index in (0, 1)]
    topics = [
        OffsetForLeaderTopic(topic=name, partitions=asked),
        OffsetForLeaderTopic(topic=f"{name}-not", partitions=asked[:1]),
    ]
    answer = broker.call(
        OffsetForLeaderEpochRequest(replica_id=-1, topics=topics), OffsetForLeaderEpochResponse, version
    )
    reported = {
        (topic.topic, each.partition): (ErrorCode(each.error_code), each.leader_epoch, each.end_offset)
        for topic in answer.topics
        for each in topic.partitions
    }
    assert reported == {
        (name, 0): (ErrorCode.NONE, 0, 0),
        (name, 1): (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1, -1),
        (f"{name}-not", 0): (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1, -1),
    }
