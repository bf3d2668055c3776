"""The partitions of one topic on this broker: a mapping by index, as not every index is here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.replica.partition import Partition

if TYPE_CHECKING:
    from uuid import UUID


class HostedTopic(dict[int, Partition]):
    __slots__ = ("name", "topic_id")

    def __init__(self, name: str, topic_id: UUID) -> None:
        super().__init__()
        self.name = name
        self.topic_id = topic_id
