"""The partitions that one decision changes, collected by topic. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.metadata.changes import PartitionsChanged

if TYPE_CHECKING:
    import uuid

    from odradek.metadata.changes import Change
    from odradek.metadata.entities import PartitionImage, TopicImage


class PartitionDrafts:
    """Each partition is changed at most once in a commit: `partition_epoch` rises by one for each change."""

    def __init__(self) -> None:
        self._changed: dict[uuid.UUID, dict[int, PartitionImage]] = {}
        self.count = 0

    def has_changed(self, topic: TopicImage, index: int) -> bool:
        return index in self._changed.get(topic.topic_id, ())

    def add(self, topic: TopicImage, partition: PartitionImage) -> None:
        self._changed.setdefault(topic.topic_id, {})[partition.index] = partition
        self.count += 1

    def changes(self) -> list[Change]:
        return [PartitionsChanged(topic_id, tuple(changed.values())) for topic_id, changed in self._changed.items()]


def find_partition(topic: TopicImage | None, index: int) -> PartitionImage | None:
    if topic is None or not 0 <= index < len(topic.partitions):
        return None
    return topic.partitions[index]
