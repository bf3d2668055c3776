"""The committed offsets of one shard's groups, changed by replayed records only.

They are kept as the bytes of their records and decoded when they are requested: a start replays a million of them, a
commit does not depend on the one before it, and bytes cost the garbage collector nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.coordinator.groups.group_records import check_offset, decode_offset

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, KeysView

    from odradek.coordinator.groups.group_records import CommittedOffset
    from odradek.protocol.topic_partition import TopicPartition


class CommittedOffsets:
    def __init__(self) -> None:
        self._by_group: dict[str, dict[TopicPartition, bytes]] = {}

    def __len__(self) -> int:
        return sum(len(offsets) for offsets in self._by_group.values())

    def get(self, group_id: str, topic: str, partition: int) -> CommittedOffset | None:
        value = self._of_group(group_id).get((topic, partition))
        return None if value is None else decode_offset(value)

    def partitions(self, group_id: str) -> KeysView[TopicPartition]:
        return self._of_group(group_id).keys()

    def items(self, group_id: str) -> Iterator[tuple[TopicPartition, CommittedOffset]]:
        for key, value in self._of_group(group_id).items():
            yield key, decode_offset(value)

    def group_ids(self) -> list[str]:
        return list(self._by_group)

    def of_topics(self, group_id: str, topics: Container[str]) -> Iterator[tuple[str, int, CommittedOffset]]:
        """Topic, partition and offset."""
        for (topic, partition), value in self._of_group(group_id).items():
            if topic in topics:
                yield topic, partition, decode_offset(value)

    def put(self, group_id: str, topic: str, partition: int, value: bytes) -> None:
        """MalformedMessage when the record's value is not a committed offset."""
        check_offset(value)
        offsets = self._by_group.get(group_id)
        if offsets is None:
            offsets = self._by_group[group_id] = {}
        offsets[topic, partition] = value

    def put_all(self, group_id: str, offsets: Iterable[tuple[str, int, bytes]]) -> None:
        """Topic, partition and value of each; the values were made by `group_records`, so they are not checked."""
        known = self._by_group.get(group_id)
        if known is None:
            known = self._by_group[group_id] = {}
        for topic, partition, value in offsets:
            known[topic, partition] = value

    def remove(self, group_id: str, topic: str, partition: int) -> None:
        offsets = self._by_group.get(group_id)
        if offsets is not None:
            offsets.pop((topic, partition), None)
            if not offsets:
                del self._by_group[group_id]

    def _of_group(self, group_id: str) -> dict[TopicPartition, bytes]:
        return self._by_group.get(group_id, {})
