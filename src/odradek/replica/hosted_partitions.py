"""The partitions on this broker, as hot paths look them up: by topic name or id, and index."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from uuid import UUID

    from odradek.log.log_directory import LogDirectory
    from odradek.replica.partition import Partition


class HostedTopic(dict[int, "Partition"]):
    """The partitions of one topic on this broker, by index: not every index is here."""

    __slots__ = ("name", "topic_id")

    def __init__(self, name: str, topic_id: UUID) -> None:
        super().__init__()
        self.name = name
        self.topic_id = topic_id


class HostedPartitions:
    def __init__(self, directories: Iterable[LogDirectory]) -> None:
        self._by_name: dict[str, HostedTopic] = {}
        self._by_id: dict[UUID, HostedTopic] = {}
        self._partition_counts = dict.fromkeys(directories, 0)

    def topic(self, name: str) -> HostedTopic | None:
        return self._by_name.get(name)

    def topic_by_id(self, topic_id: UUID) -> HostedTopic | None:
        return self._by_id.get(topic_id)

    def find(self, topic: str, index: int) -> Partition | None:
        partitions = self._by_name.get(topic)
        return None if partitions is None else partitions.get(index)

    def __iter__(self) -> Iterator[Partition]:
        for partitions in self._by_name.values():
            yield from partitions.values()

    def count_move(self, source: LogDirectory, target: LogDirectory) -> None:
        """A replica was moved."""
        self._partition_counts[source] -= 1
        self._partition_counts[target] += 1

    def _insert(self, partition: Partition) -> None:
        partitions = self._by_name.get(partition.topic)
        if partitions is None:
            partitions = HostedTopic(partition.topic, partition.topic_id)
            self._by_name[partition.topic] = self._by_id[partition.topic_id] = partitions
        assert partition.index not in partitions, "a partition was opened twice"
        partitions[partition.index] = partition
        self._partition_counts[partition.directory] += 1

    def _take_out(self, partition: Partition) -> None:
        partitions = self._by_name[partition.topic]
        del partitions[partition.index]
        if not partitions:
            del self._by_name[partitions.name], self._by_id[partitions.topic_id]
        self._partition_counts[partition.directory] -= 1
