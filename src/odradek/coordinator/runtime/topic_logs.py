"""The partitions of an internal topic that this broker leads, as logs of shards."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.coordinator.runtime.shard_log import PartitionShardLog

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.host.clock import Clock
    from odradek.replica.partition import Partition
    from odradek.replica.partition_table import PartitionTable


class TopicLogs:
    """Keeps one `PartitionShardLog` for each partition, because a shard is bound to the identity of its log."""

    def __init__(self, topic: str, partitions: PartitionTable, clock: Clock) -> None:
        self._topic = topic
        self._partitions = partitions
        self._clock = clock
        self._logs: dict[int, PartitionShardLog] = {}

    def led(self) -> list[PartitionShardLog]:
        hosted: Mapping[int, Partition] = self._partitions.topic(self._topic) or {}
        self._logs = {
            index: self._logs[index]
            if index in self._logs and self._logs[index].partition is partition
            else PartitionShardLog(partition, self._clock)
            for index, partition in hosted.items()
        }
        return [each for each in self._logs.values() if each.is_leader]
