"""Fetch, ListOffsets and OffsetForLeaderEpoch by hand: limits, waiting, sessions and epochs, on both brokers."""

import threading
import time

import pytest

from tests.clients.conftest import Target
from tests.clients.wire.batches import Batch, seen_batches
from tests.clients.wire.connection import Connection
from tests.clients.wire.fetching import Fetched, FetchedPartition, FetchPartition, fetch
from tests.clients.wire.requests import delete_records, list_offset, offset_for_leader_epoch, produce

FIVE = Batch(values=[b"value" * 20] * 5).encode()
SIZE = len(FIVE)
LONG_MS = 60_000  # longer than a connection waits for an answer


@pytest.fixture
def filled(connection: Connection, topic: str) -> str:
    """Partition 0 has offsets 0–19 in four batches of five; partition 1 is empty."""
    for _ in range(4):
        assert produce(connection, topic, FIVE).error == "NONE"
    return topic


def bases(partition: FetchedPartition) -> list[int]:
    return [each.base_offset for each in seen_batches(partition.records)]


def fetch_one(connection: Connection, topic: str, offset: int = 0, **limits: int) -> FetchedPartition:
    return fetch(connection, [FetchPartition(topic=topic, offset=offset, **limits)]).only


@pytest.mark.parametrize(
    ("offset", "expected"),
    [(0, [0, 5, 10, 15]), (5, [5, 10, 15]), (7, [5, 10, 15]), (19, [15]), (20, [])],
)
def test_fetch_starts_with_the_batch_that_holds_the_offset(
    connection: Connection, filled: str, offset: int, expected: list[int]
) -> None:
    partition = fetch_one(connection, filled, offset)
    assert bases(partition) == expected
    assert (partition.error, partition.high_watermark, partition.last_stable_offset) == ("NONE", 20, 20)
    assert partition.log_start_offset == 0


@pytest.mark.parametrize("offset", [21, 1000, -1])
def test_offset_outside_the_log_is_refused(connection: Connection, filled: str, offset: int) -> None:
    partition = fetch_one(connection, filled, offset)
    assert (partition.error, partition.high_watermark, partition.records) == ("OFFSET_OUT_OF_RANGE", -1, b"")


@pytest.mark.parametrize("limit", [0, 1, SIZE - 1, SIZE])
def test_first_batch_is_whole_however_small_the_limit(connection: Connection, filled: str, limit: int) -> None:
    assert len(fetch_one(connection, filled, max_bytes=limit).records) == SIZE
    whole = fetch(connection, [FetchPartition(topic=filled)], max_bytes=limit)
    assert len(whole.only.records) == SIZE


def test_partition_limit_may_cut_a_later_batch(connection: Connection, filled: str) -> None:
    assert len(fetch_one(connection, filled, max_bytes=SIZE * 5 // 2).records) == SIZE * 5 // 2


def test_total_limit_leaves_nothing_for_the_second_partition(connection: Connection, filled: str) -> None:
    produce(connection, filled, FIVE, partition=1)
    both = [FetchPartition(topic=filled), FetchPartition(topic=filled, partition=1)]
    answer = fetch(connection, both, max_bytes=SIZE)
    assert [len(each.records) for each in answer.partitions] == [SIZE, 0]


def test_whole_batch_goes_to_the_first_partition_that_has_one(connection: Connection, filled: str) -> None:
    produce(connection, filled, FIVE, partition=1)
    both = [FetchPartition(topic=filled, offset=20), FetchPartition(topic=filled, partition=1, max_bytes=1)]
    answer = fetch(connection, both, max_bytes=1)
    assert [len(each.records) for each in answer.partitions] == [0, SIZE]


@pytest.mark.parametrize(("epoch", "error"), [(-1, "NONE"), (0, "NONE"), (5, "UNKNOWN_LEADER_EPOCH")])
def test_leader_epoch_of_the_client_is_checked(connection: Connection, filled: str, epoch: int, error: str) -> None:
    assert fetch_one(connection, filled, current_leader_epoch=epoch).error == error
    assert list_offset(connection, filled, -1, leader_epoch=epoch)[0] == error
    assert offset_for_leader_epoch(connection, filled, 0, current_leader_epoch=epoch)[0] == error


def test_what_is_not_there_is_refused(connection: Connection, filled: str) -> None:
    unknown = "UNKNOWN_TOPIC_OR_PARTITION"
    assert fetch_one(connection, f"{filled}-not").error == unknown
    assert fetch_one(connection, filled, partition=9).error == unknown
    assert list_offset(connection, f"{filled}-not", -1)[0] == unknown
    assert list_offset(connection, filled, -1, partition=9)[0] == unknown
    assert offset_for_leader_epoch(connection, f"{filled}-not", 0)[0] == unknown
    assert delete_records(connection, f"{filled}-not", 0)[0] == unknown
    assert delete_records(connection, filled, 0, partition=9)[0] == unknown


def test_end_of_a_leader_epoch_is_reported(connection: Connection, filled: str) -> None:
    assert offset_for_leader_epoch(connection, filled, 0) == ("NONE", 0, 20)
    assert offset_for_leader_epoch(connection, filled, 7) == ("NONE", -1, -1)


def test_special_times_need_their_version(connection: Connection, filled: str) -> None:
    """Max timestamp came with version 7 of ListOffsets; this is version 5."""
    assert list_offset(connection, filled, -1) == ("NONE", -1, 20, 0)
    assert list_offset(connection, filled, -2) == ("NONE", -1, 0, 0)
    assert list_offset(connection, filled, -3)[0] == "UNSUPPORTED_VERSION"


# ---- waiting


def elapsed_ms(began: float) -> float:
    return (time.monotonic() - began) * 1000


def test_empty_fetch_waits_as_long_as_it_may(connection: Connection, filled: str) -> None:
    began = time.monotonic()
    end = [FetchPartition(topic=filled, offset=20)]
    assert fetch(connection, end, max_wait_ms=300, min_bytes=1).only.records == b""
    assert elapsed_ms(began) >= 290


def test_too_few_bytes_are_given_when_the_wait_is_over(connection: Connection, filled: str) -> None:
    began = time.monotonic()
    answer = fetch(connection, [FetchPartition(topic=filled)], max_wait_ms=300, min_bytes=100 * SIZE)
    assert len(answer.only.records) == 4 * SIZE
    assert elapsed_ms(began) >= 290


@pytest.mark.parametrize(("offset", "min_bytes"), [(20, 0), (0, 1), (99, 1)])
def test_fetch_with_an_answer_does_not_wait(connection: Connection, filled: str, offset: int, min_bytes: int) -> None:
    began = time.monotonic()
    fetch(connection, [FetchPartition(topic=filled, offset=offset)], max_wait_ms=LONG_MS, min_bytes=min_bytes)
    assert elapsed_ms(began) < LONG_MS / 2


def test_record_that_arrives_ends_the_wait(target: Target, connection: Connection, filled: str) -> None:
    answers: list[Fetched] = []
    end = [FetchPartition(topic=filled, offset=20)]

    def wait() -> None:
        with Connection(target.bootstrap_servers) as waiting:
            answers.append(fetch(waiting, end, max_wait_ms=LONG_MS, min_bytes=1))

    began = time.monotonic()
    waiter = threading.Thread(target=wait)
    waiter.start()
    produce(connection, filled, FIVE)
    waiter.join(LONG_MS / 1000)
    assert [bases(each.only) for each in answers] == [[20]]
    assert elapsed_ms(began) < LONG_MS / 2


# ---- sessions


def summary(answer: Fetched) -> list[tuple[int, list[int]]]:
    return sorted((each.partition, bases(each)) for each in answer.partitions)


def test_session_tells_only_what_changed(connection: Connection, filled: str) -> None:
    both = [FetchPartition(topic=filled, offset=15), FetchPartition(topic=filled, partition=1)]
    first = fetch(connection, both, session_epoch=0)
    session = first.session_id
    assert session != 0
    assert summary(first) == [(0, [15]), (1, [])]
    moved = [FetchPartition(topic=filled, offset=20)]
    assert summary(fetch(connection, moved, session_id=session, session_epoch=1)) == []
    assert summary(fetch(connection, [], session_id=session, session_epoch=2)) == []
    produce(connection, filled, FIVE)
    assert summary(fetch(connection, [], session_id=session, session_epoch=3)) == [(0, [20])]
    dropped = [(filled, 0)]
    assert summary(fetch(connection, [], session_id=session, session_epoch=4, forgotten=dropped)) == []
    produce(connection, filled, FIVE, partition=1)
    assert summary(fetch(connection, [], session_id=session, session_epoch=5)) == [(1, [0])]


def test_session_errors_have_their_names(connection: Connection, filled: str) -> None:
    session = fetch(connection, [FetchPartition(topic=filled)], session_epoch=0).session_id
    wrong_epoch = fetch(connection, [], session_id=session, session_epoch=9)
    unknown = fetch(connection, [], session_id=session ^ 0x55555, session_epoch=1)
    closed = fetch(connection, [], session_id=session, session_epoch=-1)
    gone = fetch(connection, [], session_id=session, session_epoch=2)
    assert [each.error for each in (wrong_epoch, unknown, closed, gone)] == [
        "INVALID_FETCH_SESSION_EPOCH",
        "FETCH_SESSION_ID_NOT_FOUND",
        "NONE",
        "FETCH_SESSION_ID_NOT_FOUND",
    ]


def test_session_keeps_telling_of_a_topic_that_is_not_there(connection: Connection, filled: str) -> None:
    wanted = [FetchPartition(topic=filled, offset=20), FetchPartition(topic=f"{filled}-not")]
    session = fetch(connection, wanted, session_epoch=0).session_id
    again = fetch(connection, [], session_id=session, session_epoch=1)
    assert [each.error for each in again.partitions] == ["UNKNOWN_TOPIC_OR_PARTITION"]
