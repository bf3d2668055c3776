"""How long each broker has been away, as the present controller has seen it. Pure: the caller gives the time.

A controller that takes over counts from its first look, so a change of controller can only delay a replacement.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from odradek.metadata.image import MetadataImage


class AbsentBrokers:
    def __init__(self) -> None:
        self._since_ms: dict[int, float] = {}

    def observe(self, image: MetadataImage, now_ms: float) -> None:
        """A broker that shuts down is away as well. One that is unregistered is away only while it has replicas."""
        active = {broker.node_id for broker in image.brokers.values() if broker.is_active}
        known = set(image.brokers)
        known.update(
            replica
            for topic in image.topics.values()
            for partition in topic.partitions
            for replica in partition.replicas
        )
        away = known - active
        self._since_ms = {node_id: self._since_ms.get(node_id, now_ms) for node_id in away}

    def longer_than(self, duration_ms: float, now_ms: float) -> frozenset[int]:
        return frozenset(node_id for node_id, since_ms in self._since_ms.items() if now_ms - since_ms >= duration_ms)
