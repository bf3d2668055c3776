"""The partitions of an internal topic that this broker leads, as logs of shards."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.coordinator.runtime.shard_log import PartitionShardLog

if TYPE_CHECKING:
    from odradek.host.host import Host
    from odradek.replica.partition_table import PartitionTable


class TopicLogs:
    """Keeps one `PartitionShardLog` for each partition, because a shard is bound to the identity of its log."""

    def __init__(self, topic: str, partitions: PartitionTable, host: Host) -> None:
        self._topic = topic
        self._partitions = partitions
        self._host = host
        self._logs: dict[int, PartitionShardLog] = {}

    def led(self) -> list[PartitionShardLog]:
        hosted = {partition.index: partition for partition in self._partitions.topic(self._topic) or ()}
        self._logs = {
            index: self._logs[index]
            if index in self._logs and self._logs[index].partition is partition
            else PartitionShardLog(partition, self._host)
            for index, partition in hosted.items()
        }
        return [each for each in self._logs.values() if each.is_leader]
