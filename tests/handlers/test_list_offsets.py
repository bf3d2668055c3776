"""ListOffsets: special times, times at the borders of records, batches and segments, and who may ask for what."""

from collections.abc import Callable

import pytest

from odradek.protocol.batch import HEADER_SIZE_BYTES, read_batch_header, write_batch
from odradek.protocol.compression import Compression
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from tests.handlers.brokers import AnyBroker, SimulatedBroker
from tests.handlers.requests import NOW_MS, batch, create_topic, delete_records, delete_topic, list_offset, produce

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD = -1, -2, -3, -4, -5, -6


def answer(found: ListOffsetsPartitionResponse) -> tuple[ErrorCode, int, int, int]:
    return ErrorCode(found.error_code), found.timestamp, found.offset, found.leader_epoch


@pytest.fixture
def topic(broker: AnyBroker, name: str) -> str:
    """Offsets 0 to 5 in three batches, with times (from NOW_MS) 10 20 | 50 30 | 40 50."""
    create_topic(broker, name)
    for times in ((10, 20), (50, 30), (40, 50)):
        produce(broker, name, batch(b"a", b"b", timestamps=[NOW_MS + time for time in times]))
    return name


@pytest.mark.parametrize(
    ("time", "expected"),
    [
        (LATEST, (ErrorCode.NONE, -1, 6, 0)),
        (EARLIEST, (ErrorCode.NONE, -1, 0, 0)),
        (MAX_TIMESTAMP, (ErrorCode.NONE, NOW_MS + 50, 2, 0)),
        (EARLIEST_LOCAL, (ErrorCode.NONE, -1, 0, 0)),
        (LATEST_TIERED, (ErrorCode.NONE, -1, -1, -1)),
        (EARLIEST_PENDING_UPLOAD, (ErrorCode.NONE, -1, -1, -1)),
        (-7, (ErrorCode.UNSUPPORTED_VERSION, -1, -1, -1)),
        (-(2**63), (ErrorCode.UNSUPPORTED_VERSION, -1, -1, -1)),
    ],
)
def test_special_times(broker: AnyBroker, topic: str, time: int, expected: tuple[ErrorCode, int, int, int]) -> None:
    assert answer(list_offset(broker, topic, time)) == expected


@pytest.mark.parametrize(
    ("time", "found"),
    [
        (0, (10, 0)),
        (NOW_MS, (10, 0)),
        (NOW_MS + 10, (10, 0)),
        (NOW_MS + 11, (20, 1)),
        (NOW_MS + 20, (20, 1)),
        (NOW_MS + 21, (50, 2)),
        (NOW_MS + 50, (50, 2)),
    ],
)
def test_a_time_finds_the_first_record_that_is_not_older(
    broker: AnyBroker, topic: str, time: int, found: tuple[int, int]
) -> None:
    assert answer(list_offset(broker, topic, time)) == (ErrorCode.NONE, NOW_MS + found[0], found[1], 0)


@pytest.mark.parametrize("time", [NOW_MS + 51, 2**62])
def test_a_time_after_everything_finds_nothing(broker: AnyBroker, topic: str, time: int) -> None:
    assert answer(list_offset(broker, topic, time)) == (ErrorCode.NONE, -1, -1, -1)


@pytest.mark.parametrize(
    ("time", "expected"),
    [
        (LATEST, (-1, 0, 0)),
        (EARLIEST, (-1, 0, 0)),
        (MAX_TIMESTAMP, (-1, -1, -1)),
        (0, (-1, -1, -1)),
        (NOW_MS, (-1, -1, -1)),
    ],
)
def test_an_empty_partition_has_a_start_and_an_end(
    broker: AnyBroker, name: str, time: int, expected: tuple[int, int, int]
) -> None:
    create_topic(broker, name)
    assert answer(list_offset(broker, name, time)) == (ErrorCode.NONE, *expected)


@pytest.mark.parametrize("codec", list(Compression))
def test_times_are_found_inside_compressed_batches(broker: AnyBroker, name: str, codec: Compression) -> None:
    create_topic(broker, name)
    times = [NOW_MS + 10 * number for number in range(5)]
    produce(broker, name, batch(*[b"a"] * 5, timestamps=times, compression=codec))
    assert list_offset(broker, name, NOW_MS + 25).offset == 3
    assert answer(list_offset(broker, name, MAX_TIMESTAMP)) == (ErrorCode.NONE, NOW_MS + 40, 4, 0)


def test_times_are_found_over_segment_borders(broker: AnyBroker, name: str) -> None:
    create_topic(broker, name, segment_index_bytes="24", index_interval_bytes="0")
    for number in range(20):
        produce(broker, name, batch(b"a", timestamps=[NOW_MS + 10 * number]))
    for number in range(20):
        for time in (10 * number - 9, 10 * number):
            found = answer(list_offset(broker, name, NOW_MS + time))
            assert found == (ErrorCode.NONE, NOW_MS + 10 * number, number, 0)
    assert answer(list_offset(broker, name, MAX_TIMESTAMP)) == (ErrorCode.NONE, NOW_MS + 190, 19, 0)


def test_append_time_is_what_is_searched(broker: AnyBroker, name: str) -> None:
    create_topic(broker, name, message_timestamp_type="LogAppendTime")
    stamped = produce(broker, name, batch(b"a", b"b", timestamps=[5, 9])).log_append_time_ms
    assert answer(list_offset(broker, name, 5)) == (ErrorCode.NONE, stamped, 0, 0)
    found = list_offset(broker, name, MAX_TIMESTAMP)
    assert (found.timestamp, found.offset) == (stamped, 0)


def test_deleted_records_are_not_found(broker: AnyBroker, topic: str) -> None:
    delete_records(broker, topic, 3)
    assert answer(list_offset(broker, topic, EARLIEST)) == (ErrorCode.NONE, -1, 3, 0)
    assert list_offset(broker, topic, NOW_MS + 10).offset == 3
    delete_records(broker, topic, 6)
    assert answer(list_offset(broker, topic, EARLIEST)) == (ErrorCode.NONE, -1, 6, 0)
    assert answer(list_offset(broker, topic, 0)) == (ErrorCode.NONE, -1, -1, -1)


@pytest.mark.parametrize(
    ("time", "first"), [(MAX_TIMESTAMP, 7), (EARLIEST_LOCAL, 8), (LATEST_TIERED, 9), (EARLIEST_PENDING_UPLOAD, 11)]
)
def test_special_times_came_with_their_versions(broker: AnyBroker, topic: str, time: int, first: int) -> None:
    for version in range(1, 12):
        error = ErrorCode.NONE if version >= first else ErrorCode.UNSUPPORTED_VERSION
        assert list_offset(broker, topic, time, version=version).error_code == error


@pytest.mark.parametrize("version", range(1, 12))
def test_every_version_tells_start_end_and_times(broker: AnyBroker, topic: str, version: int) -> None:
    found = [list_offset(broker, topic, time, version=version).offset for time in (EARLIEST, LATEST, NOW_MS + 15)]
    assert found == [0, 6, 1]


def test_a_partition_asked_for_twice_is_an_invalid_request(broker: AnyBroker, name: str) -> None:
    create_topic(broker, name, 2)
    for times in ((LATEST, LATEST), (NOW_MS, EARLIEST), (NOW_MS, NOW_MS)):
        asked = [ListOffsetsPartition(partition_index=0, timestamp=time) for time in times]
        asked.append(ListOffsetsPartition(partition_index=1, timestamp=LATEST))
        request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=name, partitions=asked)])
        reported = broker.call(request, ListOffsetsResponse).topics[0].partitions
        by_index = {(each.partition_index, ErrorCode(each.error_code)) for each in reported}
        assert by_index == {(0, ErrorCode.INVALID_REQUEST), (1, ErrorCode.NONE)}


@pytest.mark.parametrize("time", [LATEST, EARLIEST, MAX_TIMESTAMP, NOW_MS])
def test_what_is_not_there_is_unknown(broker: AnyBroker, topic: str, time: int) -> None:
    unknown = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1, -1, -1)
    assert answer(list_offset(broker, topic, time, partition=1)) == unknown
    assert answer(list_offset(broker, topic, time, partition=-1)) == unknown
    assert answer(list_offset(broker, f"{topic}-not", time)) == unknown


@pytest.mark.parametrize("time", [LATEST, EARLIEST, MAX_TIMESTAMP, NOW_MS])
def test_epochs_are_checked(simulated: SimulatedBroker, name: str, time: int) -> None:
    create_topic(simulated, name)
    produce(simulated, name)
    simulated.restart()
    fenced = list_offset(simulated, name, time, epoch=0)
    assert answer(fenced) == (ErrorCode.FENCED_LEADER_EPOCH, -1, -1, -1)
    assert list_offset(simulated, name, time, epoch=1).error_code == ErrorCode.NONE
    assert list_offset(simulated, name, time, epoch=2).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH


def test_every_offset_has_the_epoch_it_was_written_in(simulated: SimulatedBroker, name: str) -> None:
    create_topic(simulated, name)
    for life in range(3):
        if life:
            simulated.restart()
        produce(simulated, name, batch(b"a", timestamps=[NOW_MS + 10 * life]))
    reported = [answer(list_offset(simulated, name, NOW_MS + 10 * life)) for life in range(3)]
    assert reported == [(ErrorCode.NONE, NOW_MS + 10 * life, life, life) for life in range(3)]
    assert answer(list_offset(simulated, name, LATEST)) == (ErrorCode.NONE, -1, 3, 2)
    assert answer(list_offset(simulated, name, EARLIEST)) == (ErrorCode.NONE, -1, 0, 0)
    delete_records(simulated, name, 2)
    assert answer(list_offset(simulated, name, EARLIEST)) == (ErrorCode.NONE, -1, 2, 2)


# --- look-ups run on a worker while the world goes on


def test_a_partition_that_is_repeated_is_not_looked_up(
    simulated: SimulatedBroker, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_topic(simulated, name)
    produce(simulated, name)

    async def run(function: Callable[..., object], *args: object) -> object:
        pytest.fail(f"{function} was run")

    monkeypatch.setattr(simulated.host.workers, "run", run)
    asked = [ListOffsetsPartition(partition_index=0, timestamp=time) for time in (NOW_MS, NOW_MS, MAX_TIMESTAMP)]
    request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=name, partitions=asked)])
    reported = simulated.call(request, ListOffsetsResponse).topics[0].partitions
    assert {ErrorCode(each.error_code) for each in reported} == {ErrorCode.INVALID_REQUEST}


@pytest.mark.parametrize("time", [NOW_MS, MAX_TIMESTAMP])
def test_a_look_up_in_files_that_go_meanwhile_is_a_retriable_error(
    simulated: SimulatedBroker, name: str, time: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_topic(simulated, name)
    produce(simulated, name)

    async def vanish(function: Callable[..., object], *args: object) -> object:
        raise FileNotFoundError(2, "No such file or directory", "a segment that was removed")

    monkeypatch.setattr(simulated.host.workers, "run", vanish)
    reported = list_offset(simulated, name, time)
    assert reported.error_code == ErrorCode.KAFKA_STORAGE_ERROR


def test_a_batch_around_invalid_records_is_corrupt_when_it_is_decoded(simulated: SimulatedBroker, name: str) -> None:
    """Of a batch with several records, the first is checked: what follows shows when a time is looked up."""
    create_topic(simulated, name, 2)
    valid = bytes(batch(b"a", b"b"))
    second_record = HEADER_SIZE_BYTES + 1 + valid[HEADER_SIZE_BYTES] // 2
    records = valid[HEADER_SIZE_BYTES:second_record] + b"\xff" * (len(valid) - second_record)
    nonsense = write_batch(read_batch_header(valid), records)
    assert produce(simulated, name, nonsense).error_code == ErrorCode.NONE
    for time in (NOW_MS + 1, MAX_TIMESTAMP):
        assert list_offset(simulated, name, time).error_code == ErrorCode.CORRUPT_MESSAGE
    assert list_offset(simulated, name, LATEST).offset == 2


def test_a_topic_deleted_during_a_look_up_is_unknown(
    simulated: SimulatedBroker, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_topic(simulated, name)
    produce(simulated, name)
    workers = simulated.host.workers
    run = workers.run

    async def delete_first(function: Callable[..., object], *args: object) -> object:
        monkeypatch.setattr(workers, "run", run)
        from odradek.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse

        await simulated._call(DeleteTopicsRequest(topic_names=[name]), DeleteTopicsResponse, 4)
        return await run(function, *args)

    monkeypatch.setattr(workers, "run", delete_first)
    assert list_offset(simulated, name, NOW_MS).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_deleted_topic_has_no_offsets(broker: AnyBroker, topic: str) -> None:
    delete_topic(broker, topic)
    assert list_offset(broker, topic, LATEST).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
