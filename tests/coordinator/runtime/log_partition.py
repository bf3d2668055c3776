"""A partition with a real log on the simulated disk, and shards of groups on it."""

from collections.abc import Callable
from typing import cast

from odradek.coordinator.groups.group_records import CommittedOffset
from odradek.coordinator.groups.group_shard import GroupShard
from odradek.coordinator.runtime.coordinator_record import CoordinatorRecord
from odradek.coordinator.runtime.loading import replay_log
from odradek.coordinator.runtime.shard import Shard
from odradek.coordinator.runtime.shard_log import PartitionShardLog
from odradek.log.append_result import AppendResult
from odradek.log.log_config import LogConfig
from odradek.log.transaction_verification import VerificationGuard
from odradek.protocol.control_records import EndTransactionMarker
from odradek.replica.partition import Partition
from tests.coordinator.groups.committed_offsets import offset_commit_record
from tests.coordinator.groups.shard_bench import ShardBench
from tests.log.batches import open_log
from tests.simulation.simulated_host import Simulation


class LogPartition:
    """As much of a partition as the log of a shard needs."""

    topic, index = "__consumer_offsets", 0
    leader_epoch = 3

    def __init__(self, simulation: Simulation, max_message_bytes: int = 1 << 20) -> None:
        self.log = open_log(simulation.host, "/log", LogConfig(max_message_bytes=max_message_bytes))
        self.workers = simulation.host.workers.for_directory("/log")
        self.directory = "/log"
        self.is_leader = True
        self.error: Exception | None = None
        self.batch_count = 0

    @property
    def high_watermark(self) -> int:
        return self.log.log_end_offset

    def on_high_watermark(self, listener: Callable[[int], None]) -> Callable[[], None]:
        return lambda: None  # no answer waits here: an append is committed at once

    def on_leadership(self, listener: Callable[[], None]) -> Callable[[], None]:
        return lambda: None

    def append(
        self,
        batch: memoryview,
        acks: int,
        *,
        is_built_here: bool = False,
        verification: VerificationGuard | None = None,
    ) -> AppendResult:
        if self.error is not None:
            raise self.error
        self.batch_count += 1
        return self.log.append(batch, 3, is_built_here=is_built_here, verification=verification)

    def append_marker(self, marker: EndTransactionMarker, *, transaction_version: int) -> AppendResult:
        return self.log.append_marker(marker, 3, transaction_version=transaction_version)


def shard_log_of(partition: LogPartition, simulation: Simulation) -> PartitionShardLog:
    return PartitionShardLog(cast("Partition", partition), simulation.host.clock)


def new_shard(partition: LogPartition, simulation: Simulation) -> Shard[GroupShard]:
    return ShardBench().make_runtime_shard(shard_log_of(partition, simulation))


def load(partition: LogPartition, simulation: Simulation) -> tuple[GroupShard, int]:
    shard = new_shard(partition, simulation)
    count = simulation.loop.run_until_complete(replay_log(shard.machine, shard.log, shard.pending_transactions))
    return shard.machine, count


def offset(group: str, topic: str, partition: int, number: int) -> CoordinatorRecord:
    return offset_commit_record(group, topic, partition, CommittedOffset(number, -1, "", 0))


def offsets(shard: GroupShard, group: str) -> dict[tuple[str, int], int]:
    return {key: committed.offset for key, committed in shard.offsets.items(group)}
