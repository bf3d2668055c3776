"""What is written through the log of a shard is what loading finds."""

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any, cast

import pytest

from odradek.coordinator.groups.group_records import group_metadata_tombstone, offset_tombstone
from odradek.coordinator.groups.offset_operations import expire_offsets
from odradek.coordinator.runtime.coordinator_record import CoordinatorRecord
from odradek.coordinator.runtime.loading import replay_log
from odradek.coordinator.runtime.pending_transactions import PendingTransactions
from odradek.coordinator.runtime.record_batches import BatchProducer, build_coordinator_batch
from odradek.coordinator.runtime.shard import Shard
from odradek.protocol.compression import Compression
from odradek.protocol.control_records import ControlRecordType, EndTransactionMarker
from odradek.protocol.errors import ErrorCode
from odradek.protocol.records import Record, build_batch
from tests.coordinator.runtime.counter import Counters, record
from tests.coordinator.runtime.fake_shard_log import FakeShardLog
from tests.coordinator.runtime.log_partition import LogPartition, load, new_shard, offset, offsets, shard_log_of
from tests.log.batches import append as append_to_log
from tests.simulation.simulated_host import Simulation


@pytest.fixture
def simulation() -> Iterator[Simulation]:
    simulation = Simulation(1)
    simulation.disk.make_directories("/log")
    yield simulation
    simulation.close()


def test_the_latest_of_each_key_counts(simulation: Simulation) -> None:
    partition = LogPartition(simulation)
    shard_log = shard_log_of(partition, simulation)
    for records in (
        [offset("g", "t", 0, 1), offset("g", "t", 1, 1)],
        [offset("g", "t", 0, 2)],
        [offset_tombstone("g", "t", 1)],
        [offset("gone", "t", 0, 9)],
        [offset_tombstone("gone", "t", 0), group_metadata_tombstone("gone")],
    ):
        assert shard_log.append(records) is ErrorCode.NONE
    shard, count = load(partition, simulation)
    assert count == 7
    assert offsets(shard, "g") == {("t", 0): 2}
    assert set(shard.groups) == {"g"}


def append(partition: LogPartition, records: Sequence[tuple[bytes, bytes]], **batch: Any) -> None:
    built = build_batch([Record(i, 0, key, value) for i, (key, value) in enumerate(records)], **batch)
    append_to_log(partition.log, memoryview(built))


def test_what_cannot_be_read_is_left_out_and_the_rest_is_loaded(simulation: Simulation) -> None:
    partition = LogPartition(simulation)
    good = offset("g", "t", 0, 5)
    assert good.value is not None
    append(partition, [(b"", b""), (b"\0\1\0", b"?"), (good.key[:-1] + b"\1", b"\0\x63"), (b"\0\x63x", b"later kind")])
    append(partition, [(good.key, good.value)], compression=Compression.ZSTD)
    append(
        partition,
        [(good.key, good.value)],
        transactional=True,
        producer_id=1,
        producer_epoch=0,
        base_sequence=0,
    )
    shard, count = load(partition, simulation)
    assert count == 6
    assert offsets(shard, "g") == {("t", 0): 5}


def test_loading_lets_others_run(simulation: Simulation) -> None:
    partition = LogPartition(simulation)
    shard_log = shard_log_of(partition, simulation)
    for first in range(0, 5000, 100):
        shard_log.append([offset("g", "t", index, index) for index in range(first, first + 100)])
    shard = new_shard(partition, simulation)
    turns = 0

    async def scenario() -> None:
        nonlocal turns
        loading = asyncio.ensure_future(replay_log(shard.machine, shard.log, shard.pending_transactions))
        while not loading.done():
            turns += 1
            await asyncio.sleep(0)

    simulation.loop.run_until_complete(scenario())
    assert len(offsets(shard.machine, "g")) == 5000
    assert turns >= 15


def test_loading_fails_when_a_read_has_no_whole_batch() -> None:
    log = FakeShardLog()
    log.append([record("a", 1)])

    async def read_nothing(offset: int, end_offset: int) -> bytes:
        return b""

    log.read = read_nothing  # type: ignore[method-assign]  # a log that returns no bytes
    with pytest.raises(OSError, match="no whole batch"):
        asyncio.run(replay_log(Counters(cast("Shard[Counters]", None)), log, PendingTransactions()))


def test_records_of_a_transaction_count_once_it_is_committed(simulation: Simulation) -> None:
    partition = LogPartition(simulation)
    shard_log = shard_log_of(partition, simulation)
    shard_log.append([offset("g", "t", 0, 1)])
    in_transaction(partition, 1, offset("g", "t", 0, 5))
    in_transaction(partition, 2, offset("g", "t", 1, 6))
    in_transaction(partition, 3, offset("g", "t", 2, 7))
    assert shard_log.append_marker(EndTransactionMarker(1, 0, ControlRecordType.COMMIT, 0), 0) is ErrorCode.NONE
    assert shard_log.append_marker(EndTransactionMarker(2, 0, ControlRecordType.ABORT, 0), 0) is ErrorCode.NONE
    shard = new_shard(partition, simulation)
    simulation.loop.run_until_complete(replay_log(shard.machine, shard.log, shard.pending_transactions))
    assert offsets(shard.machine, "g") == {("t", 0): 5}
    assert shard.machine.is_unstable("g", "t", 2)
    assert not shard.machine.is_unstable("g", "t", 0)
    assert shard.machine.has_unstable_offsets("g")
    assert not shard.machine.has_unstable_offsets("")
    shard.activate()
    assert shard.end_transaction(EndTransactionMarker(3, 0, ControlRecordType.COMMIT, 0), 0) is ErrorCode.NONE
    assert offsets(shard.machine, "g") == {("t", 0): 5, ("t", 2): 7}


@pytest.mark.parametrize("is_loaded", [False, True])
def test_the_record_that_was_appended_last_counts(simulation: Simulation, is_loaded: bool) -> None:
    partition = LogPartition(simulation)
    shard_log = shard_log_of(partition, simulation)
    in_transaction(partition, 1, offset("g", "t", 0, 1), offset("g", "t", 1, 1))
    in_transaction(partition, 2, offset("g", "t", 0, 2))
    shard_log.append([offset("g", "t", 1, 3)])
    ends = [EndTransactionMarker(producer, 0, ControlRecordType.COMMIT, 0) for producer in (2, 1)]
    if is_loaded:
        for marker in ends:
            shard_log.append_marker(marker, 0)
    shard = new_shard(partition, simulation)
    simulation.loop.run_until_complete(replay_log(shard.machine, shard.log, shard.pending_transactions))
    shard.activate()
    for marker in ends if not is_loaded else ():
        shard.end_transaction(marker, 0)
    assert offsets(shard.machine, "g") == {("t", 0): 2, ("t", 1): 3}


@pytest.mark.parametrize("is_loaded", [False, True])
def test_a_tombstone_removes_the_pending_records_of_its_key(simulation: Simulation, is_loaded: bool) -> None:
    """Compaction keeps the tombstone and drops the record before it: a load must find the same with both."""
    partition = LogPartition(simulation)
    shard_log = shard_log_of(partition, simulation)
    in_transaction(partition, 1, offset("g", "t", 0, 5), offset("g", "t", 1, 6))
    tombstone = offset_tombstone("g", "t", 0)
    marker = EndTransactionMarker(1, 0, ControlRecordType.COMMIT, 0)
    if is_loaded:
        shard_log.append([tombstone])
        shard_log.append_marker(marker, 0)
    shard = new_shard(partition, simulation)
    simulation.loop.run_until_complete(replay_log(shard.machine, shard.log, shard.pending_transactions))
    shard.activate()
    if not is_loaded:
        assert shard.write([tombstone]) is ErrorCode.NONE
        assert shard.end_transaction(marker, 0) is ErrorCode.NONE
    assert offsets(shard.machine, "g") == {("t", 1): 6}


def test_a_record_that_cannot_be_read_does_not_stop_the_others_of_its_transaction(simulation: Simulation) -> None:
    partition = LogPartition(simulation)
    of_later_version = offset("g", "t", 0, 5)._replace(value=b"\0\x63")
    in_transaction(partition, 1, of_later_version, offset("g", "t", 1, 6), CoordinatorRecord(b"\0\1?", b"?"))
    shard = new_shard(partition, simulation)
    simulation.loop.run_until_complete(replay_log(shard.machine, shard.log, shard.pending_transactions))
    shard.activate()
    assert shard.end_transaction(EndTransactionMarker(1, 0, ControlRecordType.COMMIT, 0), 0) is ErrorCode.NONE
    assert offsets(shard.machine, "g") == {("t", 1): 6}


def in_transaction(partition: LogPartition, producer_id: int, *records: CoordinatorRecord) -> None:
    guard = partition.log.producers.begin_verification(producer_id, 0, -1, supports_epoch_bump=False, now_ms=0)
    assert not isinstance(guard, ErrorCode)
    batch = build_coordinator_batch(records, 0, producer=BatchProducer(producer_id, 0))
    assert partition.append(memoryview(batch), -1, is_built_here=True, verification=guard).error is ErrorCode.NONE


def test_a_group_that_only_an_open_transaction_names_exists_until_the_transaction_ends(simulation: Simulation) -> None:
    partition = LogPartition(simulation)
    in_transaction(partition, 1, offset("g", "t", 0, 5))
    shard = new_shard(partition, simulation)
    simulation.loop.run_until_complete(replay_log(shard.machine, shard.log, shard.pending_transactions))
    shard.activate()
    assert set(shard.machine.groups) == {"g"}
    assert expire_offsets(shard.machine, "g") is ErrorCode.NONE
    assert set(shard.machine.groups) == {"g"}
    assert shard.end_transaction(EndTransactionMarker(1, 0, ControlRecordType.ABORT, 0), 0) is ErrorCode.NONE
    assert expire_offsets(shard.machine, "g") is ErrorCode.NONE
    assert not shard.machine.groups
