"""The committed offsets of one shard's groups, as the log says: changed by replayed records only."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from odradek.coordinator.group_records import CommittedOffset

TopicPartition: TypeAlias = tuple[str, int]

_NOTHING: Mapping[TopicPartition, CommittedOffset] = {}


class CommittedOffsets:
    def __init__(self) -> None:
        self._by_group: dict[str, dict[TopicPartition, CommittedOffset]] = {}

    def __len__(self) -> int:
        return sum(len(offsets) for offsets in self._by_group.values())

    def of_group(self, group_id: str) -> Mapping[TopicPartition, CommittedOffset]:
        return self._by_group.get(group_id, _NOTHING)

    def of_topic(self, topic: str) -> Iterator[tuple[str, int, CommittedOffset]]:
        """Group, partition and offset of everything committed for a topic."""
        for group_id, offsets in self._by_group.items():
            for (name, partition), committed in offsets.items():
                if name == topic:
                    yield group_id, partition, committed

    def is_unstable(self, group_id: str, topic: str, partition: int) -> bool:  # noqa: ARG002 - the seam's shape
        """Whether a transaction that is still open has committed an offset here (KIP-447). There are none yet."""
        return False

    def put(self, group_id: str, topic: str, partition: int, committed: CommittedOffset) -> None:
        offsets = self._by_group.get(group_id)
        if offsets is None:
            offsets = self._by_group[group_id] = {}
        offsets[topic, partition] = committed

    def remove(self, group_id: str, topic: str, partition: int) -> None:
        offsets = self._by_group.get(group_id)
        if offsets is not None:
            offsets.pop((topic, partition), None)
            if not offsets:
                del self._by_group[group_id]
