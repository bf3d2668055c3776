"""Replication throttles, as Kafka has them: `leader.replication.throttled.rate` and
`follower.replication.throttled.rate` of a broker bound what it sends to, and fetches as, replicas that are named in
`….replication.throttled.replicas` of their topics. Replicas in the in-sync set are counted and never delayed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.configuration.config_types import ConfigResourceType

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from odradek.metadata.image import MetadataImage

LEADER = "leader"
FOLLOWER = "follower"
SLOT_COUNT = 11  # Kafka's replication.quota.window.num and replication.quota.window.size.seconds
SLOT_MS = 1000.0
ALL_REPLICAS = "*"


def rate_name(side: str) -> str:
    return f"{side}.replication.throttled.rate"


def throttled_partitions(image: MetadataImage, side: str, node_id: int) -> dict[str, frozenset[int] | None]:
    """The partitions of each topic whose replica on this broker is throttled; None for all of them."""
    name = f"{side}.replication.throttled.replicas"
    found: dict[str, frozenset[int] | None] = {}
    for resource, values in image.configs.items():
        text = values.get(name, "").strip() if resource.type is ConfigResourceType.TOPIC else ""
        if text == ALL_REPLICAS:
            found[resource.name] = None
        elif text:
            pairs = [entry.strip().partition(":") for entry in text.split(",")]
            indexes = frozenset(int(index) for index, _, broker in pairs if broker == str(node_id))
            if indexes:
                found[resource.name] = indexes
    return found


class ReplicationThrottle:
    """Limits what a broker sends as leader, or fetches as follower. The rate is the mean over the last eleven seconds,
    as in Kafka, so that a burst may pass at the beginning."""

    __slots__ = ("_monotonic_ms", "_partitions", "_rate", "_slots")

    def __init__(self, rate: Callable[[], float | None], monotonic_ms: Callable[[], float]) -> None:
        """`rate` is in bytes per second; None for no bound."""
        self._rate = rate
        self._monotonic_ms = monotonic_ms
        self._partitions: Mapping[str, frozenset[int] | None] = {}
        self._slots: dict[int, int] = {}  # bytes in each second, of the last eleven

    def set_partitions(self, partitions: Mapping[str, frozenset[int] | None]) -> None:
        self._partitions = partitions

    @property
    def has_partitions(self) -> bool:
        return bool(self._partitions)

    def covers(self, topic: str, index: int) -> bool:
        """Whether the replica of this broker is named in the topic's list."""
        if not self._partitions or topic not in self._partitions:
            return False
        indexes = self._partitions[topic]
        return indexes is None or index in indexes

    def record(self, size_bytes: int) -> None:
        """Bytes of a partition that it covers have passed."""
        slot = self._expire()
        self._slots[slot] = self._slots.get(slot, 0) + size_bytes

    @property
    def is_exceeded(self) -> bool:
        rate = self._rate()
        if rate is None:
            return False
        self._expire()
        return sum(self._slots.values()) > rate * (SLOT_COUNT - 1) * SLOT_MS / 1000

    def _expire(self) -> int:
        slot = int(self._monotonic_ms() // SLOT_MS)
        for each in [each for each in self._slots if each <= slot - SLOT_COUNT]:
            del self._slots[each]
        return slot
