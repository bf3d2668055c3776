"""Fetch and ListOffsets by isolation level, of partitions with open, committed and aborted transactions."""

import pytest

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.fetch import PartitionData
from odradek.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from odradek.replica.partition import Partition
from tests.handlers.brokers import SimulatedBroker
from tests.handlers.requests import (
    NOW_MS,
    base_offsets,
    begin_fetch,
    create_topic,
    fetch_all,
    fetch_request,
    partitions_of,
    wanted,
)
from tests.replica.committed_reading import committed_offsets
from tests.replica.transactions import abort, commit, put

UNCOMMITTED, COMMITTED = 0, 1
LONG_MS = 10_000


@pytest.fixture
def partition(simulated: SimulatedBroker, name: str) -> Partition:
    """Committed at 0, aborted at 2, open at 4."""
    create_topic(simulated, name, index_interval_bytes="0")
    partition = simulated.partition(name)
    put(partition, 1, b"committed", timestamp=NOW_MS)
    commit(partition, 1)
    put(partition, 2, b"aborted", timestamp=NOW_MS + 10)
    abort(partition, 2)
    put(partition, 3, b"open", timestamp=NOW_MS + 20)
    return partition


def read(
    broker: SimulatedBroker, topic: str, offset: int = 0, *, level: int = COMMITTED, version: int = 12
) -> PartitionData:
    request = fetch_request([wanted(topic, offset)], isolation_level=level)
    return partitions_of(fetch_all(broker, request, version))[0]


@pytest.mark.parametrize("version", [4, 11, 12])
def test_a_fetch_ends_at_the_last_stable_offset(
    simulated: SimulatedBroker, name: str, partition: Partition, version: int
) -> None:
    reported = read(simulated, name, version=version)
    assert base_offsets(reported.records) == [0, 1, 2, 3]
    assert (reported.high_watermark, reported.last_stable_offset) == (5, 4)
    aborted = reported.aborted_transactions
    assert aborted is not None
    assert [(each.producer_id, each.first_offset) for each in aborted] == [(2, 2)]


@pytest.mark.parametrize("version", [4, 12])
def test_a_reader_of_everything_gets_everything_and_no_list(
    simulated: SimulatedBroker, name: str, partition: Partition, version: int
) -> None:
    reported = read(simulated, name, level=UNCOMMITTED, version=version)
    assert base_offsets(reported.records) == [0, 1, 2, 3, 4]
    assert (reported.high_watermark, reported.last_stable_offset, reported.aborted_transactions) == (5, 4, None)


def test_the_list_is_empty_without_records_and_null_with_an_error(
    simulated: SimulatedBroker, name: str, partition: Partition
) -> None:
    reported = read(simulated, name, 4)
    assert (reported.error_code, reported.aborted_transactions, reported.last_stable_offset) == (ErrorCode.NONE, [], 4)
    reported = read(simulated, name, 99)
    assert reported.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert (reported.aborted_transactions, reported.last_stable_offset) == (None, -1)


def test_a_session_mentions_a_partition_when_a_marker_makes_it_readable(
    simulated: SimulatedBroker, name: str, partition: Partition
) -> None:
    began = fetch_all(simulated, fetch_request([wanted(name, 4)], isolation_level=COMMITTED, session=(0, 0)))
    session = began.session_id
    quiet = fetch_all(simulated, fetch_request([], isolation_level=COMMITTED, session=(session, 1)), 12)
    assert quiet.responses == []
    abort(partition, 3)
    (reported,) = partitions_of(
        fetch_all(simulated, fetch_request([], isolation_level=COMMITTED, session=(session, 2)), 12)
    )
    assert base_offsets(reported.records) == [4, 5]
    assert [each.first_offset for each in reported.aborted_transactions or ()] == [4]


def test_a_waiting_fetch_is_answered_by_the_marker(simulated: SimulatedBroker, name: str, partition: Partition) -> None:
    request = fetch_request([wanted(name, 4)], isolation_level=COMMITTED, max_wait_ms=LONG_MS)
    waiting = begin_fetch(simulated, request)
    began_ms = simulated.elapsed_ms()
    put(partition, 3, b"more")
    simulated.step()
    assert not waiting.task.done()  # type: ignore[attr-defined]  # simulated
    commit(partition, 3)
    (reported,) = partitions_of(waiting.result())
    assert (base_offsets(reported.records), reported.aborted_transactions) == ([4, 5, 6], [])
    assert simulated.elapsed_ms() - began_ms < LONG_MS


def latest(broker: SimulatedBroker, topic: str, timestamp: int, level: int) -> int:
    asked = ListOffsetsPartition(partition_index=0, timestamp=timestamp, current_leader_epoch=-1)
    topics = [ListOffsetsTopic(name=topic, partitions=[asked])]
    request = ListOffsetsRequest(replica_id=-1, isolation_level=level, topics=topics, timeout_ms=1000)
    reported = broker.call(request, ListOffsetsResponse).topics[0].partitions[0]
    assert reported.error_code == ErrorCode.NONE
    return reported.offset


def test_the_latest_offset_is_the_last_stable_one(simulated: SimulatedBroker, name: str, partition: Partition) -> None:
    assert (latest(simulated, name, -1, COMMITTED), latest(simulated, name, -1, UNCOMMITTED)) == (4, 5)
    commit(partition, 3)
    assert latest(simulated, name, -1, COMMITTED) == 6


def test_a_record_of_an_open_transaction_is_not_found_by_time(
    simulated: SimulatedBroker, name: str, partition: Partition
) -> None:
    at_ms = NOW_MS + 15
    partition.log.segments[-1].max_timestamp = NOW_MS + 20  # markers have the clock's time, far earlier here
    assert latest(simulated, name, at_ms, UNCOMMITTED) in (1, 3, 4)
    assert latest(simulated, name, NOW_MS + 20, COMMITTED) in (-1, 1, 3)


@pytest.mark.parametrize("is_killed", [False, True])
def test_transactions_are_known_after_a_restart(
    simulated: SimulatedBroker, name: str, partition: Partition, is_killed: bool
) -> None:
    partition.log.roll()
    put(partition, 4, b"aborted too")
    abort(partition, 4)
    if is_killed:
        simulated.kill()
    else:
        simulated.restart()
    again = simulated.partition(name)
    assert (again.high_watermark, again.last_stable_offset) == (7, 4)
    assert again.log.producers.transactions.open == {3: 4}
    commit(again, 3)
    assert committed_offsets(again) == [0, 4]
