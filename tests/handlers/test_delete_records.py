"""DeleteRecords: the start of a partition moves forward, never back, and stays where it was put."""

import pytest

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from tests.handlers.brokers import AnyBroker, SimulatedBroker
from tests.handlers.requests import (
    base_offsets,
    batch,
    create_topic,
    delete_records,
    delete_topic,
    fetch,
    list_offset,
    produce,
)

FIVE = batch(*[b"v"] * 5)


@pytest.fixture
def topic(broker: AnyBroker, name: str) -> str:
    """Offsets 0 to 9 in two batches."""
    create_topic(broker, name)
    for _ in range(2):
        produce(broker, name, FIVE)
    return name


def outcome(broker: AnyBroker, topic: str, offset: int, partition: int = 0) -> tuple[ErrorCode, int]:
    reported = delete_records(broker, topic, offset, partition=partition)
    return ErrorCode(reported.error_code), reported.low_watermark


@pytest.mark.parametrize(("offset", "start"), [(0, 0), (3, 3), (5, 5), (10, 10), (-1, 10)])
def test_the_start_moves_to_the_offset(broker: AnyBroker, topic: str, offset: int, start: int) -> None:
    assert outcome(broker, topic, offset) == (ErrorCode.NONE, start)
    assert (list_offset(broker, topic, -2).offset, list_offset(broker, topic, -1).offset) == (start, 10)
    assert produce(broker, topic).log_start_offset == start


def test_the_start_never_moves_back(broker: AnyBroker, topic: str) -> None:
    assert outcome(broker, topic, 7) == (ErrorCode.NONE, 7)
    for earlier in (0, 3, 7):
        assert outcome(broker, topic, earlier) == (ErrorCode.NONE, 7)


@pytest.mark.parametrize("offset", [11, 2**62, -2, -(2**63)])
def test_an_offset_that_is_not_in_the_log_is_out_of_range(broker: AnyBroker, topic: str, offset: int) -> None:
    assert outcome(broker, topic, offset) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1)
    assert list_offset(broker, topic, -2).offset == 0


def test_a_topic_that_is_only_compacted_keeps_its_records(broker: AnyBroker, name: str) -> None:
    create_topic(broker, name, cleanup_policy="compact")
    produce(broker, name, FIVE)
    assert outcome(broker, name, 3) == (ErrorCode.POLICY_VIOLATION, -1)
    both = f"{name}-both"
    create_topic(broker, both, cleanup_policy="compact,delete")
    produce(broker, both, FIVE)
    assert outcome(broker, both, 3) == (ErrorCode.NONE, 3)


@pytest.mark.parametrize("policy", ["compact", "compact,delete", "delete"])
def test_an_internal_topic_keeps_its_records(simulated: SimulatedBroker, policy: str) -> None:
    create_topic(simulated, "__consumer_offsets", cleanup_policy=policy)
    assert outcome(simulated, "__consumer_offsets", 0) == (ErrorCode.INVALID_TOPIC_EXCEPTION, -1)
    assert outcome(simulated, "__consumer_offsets", 0, partition=9) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)


def test_what_is_not_there_is_unknown(broker: AnyBroker, topic: str) -> None:
    assert outcome(broker, f"{topic}-not", 0) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)
    assert outcome(broker, topic, 0, partition=1) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)


@pytest.mark.parametrize("version", [0, 1, 2])
def test_one_request_deletes_in_several_partitions(broker: AnyBroker, name: str, version: int) -> None:
    create_topic(broker, name, 3)
    for partition in range(3):
        produce(broker, name, FIVE, partition=partition)
    asked = [DeleteRecordsPartition(partition_index=index, offset=index + 3) for index in range(3)]
    asked[2].offset = 99
    request = DeleteRecordsRequest(topics=[DeleteRecordsTopic(name=name, partitions=asked)], timeout_ms=10_000)
    reported = broker.call(request, DeleteRecordsResponse, version).topics[0].partitions
    assert {each.partition_index: (ErrorCode(each.error_code), each.low_watermark) for each in reported} == {
        0: (ErrorCode.NONE, 3),
        1: (ErrorCode.NONE, 4),
        2: (ErrorCode.OFFSET_OUT_OF_RANGE, -1),
    }


@pytest.mark.parametrize("how", ["restart", "kill"])
def test_the_start_is_remembered(simulated: SimulatedBroker, name: str, how: str) -> None:
    create_topic(simulated, name)
    produce(simulated, name, FIVE)
    delete_records(simulated, name, 3)
    getattr(simulated, how)()
    assert (list_offset(simulated, name, -2).offset, list_offset(simulated, name, -1).offset) == (3, 5)


@pytest.mark.parametrize("restarts_between", [0, 1])
def test_the_start_of_a_deleted_topic_is_not_inherited_by_the_next_of_its_name(
    simulated: SimulatedBroker, name: str, restarts_between: int
) -> None:
    """A crash soon after: the checkpoint must not cut the new topic to the old one's start."""
    create_topic(simulated, name)
    for _ in range(20):
        produce(simulated, name, FIVE)
    delete_records(simulated, name, 100)
    delete_topic(simulated, name)
    for _ in range(restarts_between):
        simulated.kill()
    create_topic(simulated, name)
    produce(simulated, name, FIVE)
    simulated.kill()
    assert (list_offset(simulated, name, -2).offset, list_offset(simulated, name, -1).offset) == (0, 5)
    assert base_offsets(fetch(simulated, name).records) == [0]


def test_a_stale_checkpoint_from_before_a_crash_cuts_nothing(simulated: SimulatedBroker, name: str) -> None:
    """The broker died after the topic was deleted and before its checkpoints said so."""
    create_topic(simulated, name)
    for _ in range(20):
        produce(simulated, name, FIVE)
    delete_records(simulated, name, 100)
    paths = [f"/data/{file}" for file in ("log-start-offset-checkpoint", "recovery-point-offset-checkpoint")]
    disk = simulated.simulation.disk
    simulated.restart()
    stale = {path: disk.read_file(path) for path in paths}
    delete_topic(simulated, name)
    for path, data in stale.items():
        disk.replace_file(path, data)
    simulated.kill()
    create_topic(simulated, name)
    produce(simulated, name, FIVE)
    simulated.kill()
    assert (list_offset(simulated, name, -2).offset, list_offset(simulated, name, -1).offset) == (0, 5)
