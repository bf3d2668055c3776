"""The last stable offset of a partition: what holds it, what moves it, and what a read_committed fetch returns."""

import asyncio
from collections.abc import Iterator

import pytest

from odradek.log.aborted_transactions import collect_aborted
from odradek.log.log_config import LogConfig
from odradek.metadata.entities import PartitionImage
from odradek.protocol.control_records import ControlRecordType, EndTransactionMarker
from odradek.protocol.errors import ErrorCode
from odradek.replica.fetch_result import FetchIsolation
from odradek.replica.partition import Partition
from odradek.replica.partition_fetch import needs_disk
from odradek.replica.partition_transactions import ProducerDescription
from odradek.replica.waiting_requests import WaitingFetch
from tests.log.batches import EVERYTHING, NOW_MS
from tests.replica.committed_reading import committed_offsets, fetch
from tests.replica.led_partitions import ALONE, ELSEWHERE, WITH_A_FOLLOWER, LedPartition
from tests.replica.transactions import abort, commit, put
from tests.simulation.simulated_host import Simulation

CONFIG = LogConfig(message_timestamp_after_max_ms=EVERYTHING)


@pytest.fixture
def simulation() -> Iterator[Simulation]:
    simulation = Simulation(0)
    yield simulation
    simulation.close()


@pytest.fixture
def led(simulation: Simulation) -> LedPartition:
    """With a follower, so that the test says when records are committed."""
    return LedPartition(simulation, CONFIG)


@pytest.fixture
def alone(simulation: Simulation) -> LedPartition:
    return LedPartition(simulation, CONFIG, ALONE)


def test_an_open_transaction_holds_it_until_its_marker_is_committed(led: LedPartition) -> None:
    partition = led.partition
    put(partition, 1, b"a")
    put(partition, 2, b"b")
    partition.advance_high_watermark(2)
    assert partition.last_stable_offset == 0
    commit(partition, 1)
    assert partition.last_stable_offset == 0, "the marker is not below the high watermark"
    partition.advance_high_watermark(3)
    assert partition.last_stable_offset == 1
    abort(partition, 2)
    partition.advance_high_watermark(4)
    assert partition.last_stable_offset == 4


def test_it_is_never_past_the_high_watermark(led: LedPartition) -> None:
    put(led.partition, 1, b"a")
    assert led.partition.last_stable_offset == led.partition.high_watermark == 0
    commit(led.partition, 1)
    led.partition.advance_high_watermark(2)
    put(led.partition, 1, b"b")
    assert led.partition.last_stable_offset == 2


def test_a_fetch_ends_there_and_lists_what_was_aborted(alone: LedPartition) -> None:
    partition = alone.partition
    put(partition, 1, b"a", b"b")
    put(partition, 2, b"c")
    abort(partition, 1)
    commit(partition, 2)
    put(partition, 1, b"d")
    result = fetch(partition, 0)
    assert (result.high_watermark, result.last_stable_offset) == (6, 5)
    assert [(each.producer_id, each.first_offset) for each in result.aborted_transactions] == [(1, 0)]
    assert committed_offsets(partition) == [2]
    uncommitted = fetch(partition, 0, isolation=FetchIsolation.HIGH_WATERMARK)
    assert (uncommitted.last_stable_offset, uncommitted.aborted_transactions) == (5, ())
    assert uncommitted.records is not None
    assert result.records is not None
    assert len(uncommitted.records) > len(result.records)
    at_end = fetch(partition, 5)
    assert (at_end.records, at_end.last_stable_offset, at_end.aborted_transactions) == (None, 5, ())


def test_the_list_covers_the_returned_batches_and_no_others(alone: LedPartition) -> None:
    partition = alone.partition
    for _ in range(3):
        put(partition, 1, b"a")
        abort(partition, 1)
    first = fetch(partition, 0, max_bytes=1)
    assert [each.first_offset for each in first.aborted_transactions] == [0]
    later = fetch(partition, 3, max_bytes=1)
    assert [each.first_offset for each in later.aborted_transactions] == [2], "the marker of the second"


def test_the_list_has_transactions_that_end_in_later_segments(alone: LedPartition) -> None:
    partition = alone.partition
    put(partition, 1, b"a")
    for _ in range(2):
        partition.log.roll()
        put(partition, 1, b"b")
    partition.log.roll()
    abort(partition, 1)
    for offset in range(3):
        result = fetch(partition, offset)
        assert [each.first_offset for each in result.aborted_transactions] == [0]
    assert committed_offsets(partition) == []


@pytest.mark.parametrize("is_active", [False, True])
def test_a_damaged_index_is_rebuilt_when_the_log_is_opened(alone: LedPartition, is_active: bool) -> None:
    put(alone.partition, 1, b"a")
    alone.log.roll()
    put(alone.partition, 2, b"b")
    abort(alone.partition, 1)
    path = alone.log.segments[-1].transaction_index.path
    if not is_active:
        alone.log.roll()
    alone.log.close()
    before = alone.simulation.disk.read_file(path)
    alone.simulation.disk.replace_file(path, before[:-1])
    alone.open(clean_shutdown=True)
    assert [each.first_offset for each in collect_aborted(alone.log.segments, 0, 3)] == [0]
    alone.log.close()
    assert alone.simulation.disk.read_file(path) == before


def test_a_deletion_beyond_the_begin_of_a_transaction_moves_it(alone: LedPartition) -> None:
    partition = alone.partition
    put(partition, 1, b"a")
    put(partition, 1, b"b", b"c")
    assert partition.delete_records_before(2) is ErrorCode.NONE
    assert (partition.log.log_start_offset, partition.last_stable_offset) == (2, 2)
    assert fetch(partition, 2).records is None
    abort(partition, 1)
    result = fetch(partition, 2)
    assert [each.first_offset for each in result.aborted_transactions] == [0]
    assert committed_offsets(partition) == []


def test_producers_are_described(alone: LedPartition) -> None:
    partition = alone.partition
    put(partition, 7, b"a")
    abort(partition, 7)
    put(partition, 7, b"b", b"c")
    assert partition.log.producers.transactions.open == {7: 2}
    assert partition.transactions.describe_producers() == [ProducerDescription(7, 1, 1, NOW_MS, 0, 2)]


def test_a_marker_needs_the_leader_and_enough_replicas(simulation: Simulation) -> None:
    led = LedPartition(simulation, LogConfig(min_insync_replicas=2), ALONE)
    marker = EndTransactionMarker(1, 0, ControlRecordType.ABORT, 0)
    assert led.partition.append_marker(marker, transaction_version=1).error is ErrorCode.NOT_ENOUGH_REPLICAS
    led.partition.become_follower(PartitionImage(0, WITH_A_FOLLOWER, ALONE, ELSEWHERE, 9, 9))
    assert led.partition.append_marker(marker, transaction_version=1).error is ErrorCode.NOT_LEADER_OR_FOLLOWER
    refused = led.partition.transactions.begin_verification(1, 0, 0, supports_epoch_bump=True, now_ms=0)
    assert refused is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert led.log.log_end_offset == 0


# --- waiting fetches


class Waiting:
    def __init__(self, led: LedPartition, missing_bytes: int, *, is_committed_only: bool) -> None:
        self.simulation = led.simulation
        self.task = self.simulation.loop.run_until_complete(self._begin(led, missing_bytes, is_committed_only))

    async def _begin(self, led: LedPartition, missing_bytes: int, is_committed_only: bool) -> asyncio.Task[None]:
        waiting = WaitingFetch(
            [led.partition], missing_bytes, 60_000, self.simulation.clock, is_committed_only=is_committed_only
        )
        return asyncio.ensure_future(waiting.wait())

    @property
    def is_over(self) -> bool:
        self.simulation.loop.run_until_complete(asyncio.sleep(0))
        self.simulation.loop.run_until_complete(asyncio.sleep(0))
        return self.task.done()


def stop(*fetches: Waiting) -> None:
    for each in fetches:
        each.task.cancel()
        assert each.is_over


def test_records_of_an_open_transaction_wake_only_who_may_read_them(alone: LedPartition) -> None:
    committed = Waiting(alone, 1, is_committed_only=True)
    uncommitted = Waiting(alone, 1, is_committed_only=False)
    put(alone.partition, 1, b"a")
    assert (committed.is_over, uncommitted.is_over) == (False, True)
    commit(alone.partition, 1)
    assert committed.is_over


def test_a_marker_wakes_for_all_that_it_makes_readable(alone: LedPartition) -> None:
    partition = alone.partition
    few = Waiting(alone, 150, is_committed_only=True)
    many = Waiting(alone, 1000, is_committed_only=True)
    put(partition, 1, b"a" * 60)
    put(partition, 2, b"b" * 60)
    commit(partition, 2)
    assert not few.is_over, "another transaction is open"
    commit(partition, 1)
    assert (few.is_over, many.is_over) == (True, False)
    stop(many)


def test_a_marker_wakes_when_it_is_committed(led: LedPartition) -> None:
    partition: Partition = led.partition
    put(partition, 1, b"a")
    partition.advance_high_watermark(1)
    waiting = Waiting(led, 1, is_committed_only=True)
    abort(partition, 1)
    assert not waiting.is_over
    partition.advance_high_watermark(2)
    assert waiting.is_over


def test_a_reader_at_the_last_stable_offset_needs_no_disk(alone: LedPartition) -> None:
    partition = alone.partition
    put(partition, 1, b"a")
    for _ in range(3):
        put(partition, 2, b"b")
        partition.log.roll()
    isolation = FetchIsolation.TRANSACTION_COMMITTED
    assert needs_disk(partition, 0), "for a reader who reads everything"
    assert not needs_disk(partition, 0, isolation)
    commit(partition, 1)
    assert needs_disk(partition, 0, isolation)
    assert not needs_disk(partition, 1, isolation)
