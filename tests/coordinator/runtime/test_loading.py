"""From a shard to its partition's log and back: what is written through the journal is what loading finds."""

from __future__ import annotations

import asyncio
from random import Random
from typing import TYPE_CHECKING, cast

import pytest

from odradek.coordinator.groups.group_records import (
    CommittedOffset,
    group_metadata_tombstone,
    offset_commit_record,
    offset_tombstone,
)
from odradek.coordinator.runtime.coordinator_record import CoordinatorRecord
from odradek.coordinator.runtime.loading import replay_log
from odradek.coordinator.runtime.shard_log import PartitionShardLog
from odradek.log.log_config import LogConfig
from odradek.protocol.compression import Compression
from odradek.protocol.errors import ErrorCode
from odradek.protocol.records import Record, build_batch
from tests.coordinator.groups.shard_bench import ShardBench
from tests.log.batches import open_log
from tests.simulation.simulated_host import Simulation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from odradek.coordinator.groups.group_shard import GroupShard
    from odradek.coordinator.runtime.shard import Shard
    from odradek.log.append_result import AppendResult
    from odradek.replica.partition import Partition


class LogPartition:
    """As much of a partition as the log of a shard needs."""

    topic, index = "__consumer_offsets", 0
    is_leader = True
    leader_epoch = 3

    def __init__(self, simulation: Simulation, max_message_bytes: int = 1 << 20) -> None:
        self.log = open_log(simulation.host, "/log", LogConfig(max_message_bytes=max_message_bytes))
        self.workers = simulation.host.workers.for_directory("/log")
        self.error: Exception | None = None
        self.batch_count = 0

    @property
    def high_watermark(self) -> int:
        return self.log.log_end_offset

    def on_high_watermark(self, listener: Callable[[int], None]) -> Callable[[], None]:
        return lambda: None  # no answer waits here: an append is committed at once

    def on_leadership(self, listener: Callable[[], None]) -> Callable[[], None]:
        return lambda: None

    def append(self, batch: memoryview, acks: int, *, is_built_here: bool = False) -> AppendResult:
        if self.error is not None:
            raise self.error
        self.batch_count += 1
        return self.log.append(batch, 3, is_built_here=is_built_here)


@pytest.fixture
def simulation() -> Iterator[Simulation]:
    simulation = Simulation(1)
    simulation.disk.make_directories("/log")
    yield simulation
    simulation.close()


def journal_of(partition: LogPartition, simulation: Simulation) -> PartitionShardLog:
    return PartitionShardLog(cast("Partition", partition), simulation.host.clock)


def new_shard(partition: LogPartition, simulation: Simulation) -> Shard[GroupShard]:
    return ShardBench().make_runtime_shard(journal_of(partition, simulation))


def load(partition: LogPartition, simulation: Simulation) -> tuple[GroupShard, int]:
    shard = new_shard(partition, simulation)
    count = simulation.loop.run_until_complete(replay_log(shard.machine, shard.log))
    return shard.machine, count


def offset(group: str, topic: str, partition: int, number: int) -> CoordinatorRecord:
    return offset_commit_record(group, topic, partition, CommittedOffset(number, -1, "", 0))


def offsets(shard: GroupShard, group: str) -> dict[tuple[str, int], int]:
    return {key: committed.offset for key, committed in shard.offsets.items(group)}


def test_the_latest_of_each_key_counts(simulation: Simulation) -> None:
    partition = LogPartition(simulation)
    journal = journal_of(partition, simulation)
    for records in (
        [offset("g", "t", 0, 1), offset("g", "t", 1, 1)],
        [offset("g", "t", 0, 2)],
        [offset_tombstone("g", "t", 1)],
        [offset("gone", "t", 0, 9)],
        [offset_tombstone("gone", "t", 0), group_metadata_tombstone("gone")],
    ):
        assert journal.append(records) is ErrorCode.NONE
    shard, count = load(partition, simulation)
    assert count == 7
    assert offsets(shard, "g") == {("t", 0): 2}
    assert set(shard.groups) == {"g"}


def test_what_belongs_together_is_one_batch(simulation: Simulation) -> None:
    """A crash or a full disk between two batches would leave half a change in the log."""
    partition = LogPartition(simulation, max_message_bytes=10_000)
    records = [offset("g", "t", index, index) for index in range(500)]
    assert sum(len(key) + len(value or b"") for key, value in records) > 10_000
    assert journal_of(partition, simulation).append(records) is ErrorCode.NONE
    assert partition.batch_count == 1
    shard, _ = load(partition, simulation)
    assert offsets(shard, "g") == {("t", index): index for index in range(500)}


def test_what_stands_for_itself_is_split_into_batches_that_the_topic_takes(simulation: Simulation) -> None:
    partition = LogPartition(simulation, max_message_bytes=2000)
    writer = new_shard(partition, simulation)
    writer.activate()
    records = [offset("g", "t", index, index) for index in range(500)]
    assert writer.write_each(records) is ErrorCode.NONE
    assert partition.batch_count > 10
    assert partition.log.segments[0].size_bytes > sum(len(key) for key, _ in records), "nothing is compressed"
    shard, _ = load(partition, simulation)
    assert offsets(shard, "g") == {("t", index): index for index in range(500)}


def test_one_record_that_is_too_large_keeps_all_out_with_an_error_that_members_know(simulation: Simulation) -> None:
    partition = LogPartition(simulation, max_message_bytes=2000)
    noise = Random(1).randbytes(3000)  # what cannot be compressed
    records = [*(offset("g", "t", index, index) for index in range(50)), CoordinatorRecord(b"\0\2\0\1g", noise)]
    assert journal_of(partition, simulation).append(records) is ErrorCode.UNKNOWN_SERVER_ERROR
    assert partition.log.log_end_offset == 0


def test_a_broken_disk_is_no_coordinator(simulation: Simulation) -> None:
    partition = LogPartition(simulation)
    partition.error = OSError("broken")
    assert journal_of(partition, simulation).append([offset("g", "t", 0, 1)]) is ErrorCode.NOT_COORDINATOR


def append(partition: LogPartition, records: Sequence[tuple[bytes, bytes]], **batch: object) -> None:
    built = build_batch([Record(i, 0, key, value) for i, (key, value) in enumerate(records)], **batch)  # type: ignore[arg-type]
    assert partition.append(memoryview(built), -1).error is ErrorCode.NONE


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
    assert count == 5
    assert offsets(shard, "g") == {("t", 0): 5}


def test_loading_lets_others_run(simulation: Simulation) -> None:
    partition = LogPartition(simulation)
    journal = journal_of(partition, simulation)
    for first in range(0, 5000, 100):
        journal.append([offset("g", "t", index, index) for index in range(first, first + 100)])
    shard = new_shard(partition, simulation)
    turns = 0

    async def scenario() -> None:
        nonlocal turns
        loading = asyncio.ensure_future(replay_log(shard.machine, shard.log))
        while not loading.done():
            turns += 1
            await asyncio.sleep(0)

    simulation.loop.run_until_complete(scenario())
    assert len(offsets(shard.machine, "g")) == 5000
    assert turns >= 15
