"""Numbers that need a look at every partition, group and transaction.

They are counted on request, in slices that let other work run between them, and not more than once a second: the answer
may be a second old.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, TypeVar

from odradek.metrics.samples import Sample
from odradek.protocol.sentinels import NO_LEADER
from odradek.replica.leadership import LogState

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Collection, Iterable

    from odradek.coordinator.groups.group_coordinator import GroupCoordinator
    from odradek.coordinator.transactions.transaction_coordinator import TransactionCoordinator
    from odradek.host.clock import Clock
    from odradek.metadata.image import MetadataImage
    from odradek.metrics.topic_traffic import TopicTraffic
    from odradek.replica.partition import Partition
    from odradek.replica.partition_table import PartitionTable

T = TypeVar("T")
SLICE = 500  # looked at on the event loop before other work gets a turn
MAX_AGE_MS = 1_000.0


async def in_slices(items: Collection[T]) -> AsyncIterator[T]:
    for number, item in enumerate(items):
        if number % SLICE == SLICE - 1:
            await asyncio.sleep(0)
        yield item


class PartitionCounts:
    """The partitions of a broker at one moment."""

    def __init__(self, now_ms: float, began_ms: float) -> None:
        self._now_ms = now_ms
        self._began_ms = began_ms
        self.total = self.led = self.under_replicated = self.under_min_in_sync = self.failed = 0
        self.lag_records = 0
        self.lag_ms = 0.0
        self.by_directory: Counter[str] = Counter()
        self.by_topic: Counter[str] = Counter()

    def add(self, partition: Partition) -> None:
        self.total += 1
        self.failed += partition.log_state is LogState.FAILED
        size_bytes = partition.log.size_bytes
        self.by_directory[partition.directory.path] += size_bytes
        self.by_topic[partition.topic] += size_bytes
        if partition.is_leader:
            self.led += 1
            self._add_led(partition)

    def _add_led(self, partition: Partition) -> None:
        image, followers = partition.image, partition.followers
        if image is not None and len(image.in_sync_replicas) < len(image.replicas):
            self.under_replicated += 1
        if followers is None:
            return
        self.under_min_in_sync += followers.has_too_few
        log = partition.log
        end_offset = log.log_end_offset
        for progress in followers.in_sync.followers.values():
            missing = end_offset - max(progress.fetch_offset, log.log_start_offset)
            if missing > 0:
                self.lag_records = max(self.lag_records, missing)
                self.lag_ms = max(self.lag_ms, self._now_ms - max(progress.caught_up_ms, self._began_ms))


class Census:
    def __init__(
        self,
        table: PartitionTable,
        groups: GroupCoordinator,
        transactions: TransactionCoordinator,
        image: Callable[[], MetadataImage],
        is_controller: Callable[[], bool],
        traffic: TopicTraffic,
        clock: Clock,
    ) -> None:
        self._table = table
        self._groups = groups
        self._transactions = transactions
        self._image = image
        self._is_controller = is_controller
        self._traffic = traffic
        self._clock = clock
        self._began_ms = clock.monotonic_ms()
        self._taken_ms = float("-inf")
        self._samples: list[Sample] = []
        self._running: asyncio.Task[None] | None = None

    def samples(self) -> Iterable[Sample]:
        """Those of the last `refresh`."""
        return self._samples

    async def refresh(self) -> None:
        """Callers that come while it runs wait for the same census."""
        if self._clock.monotonic_ms() - self._taken_ms < MAX_AGE_MS:
            return
        if self._running is None or self._running.done():
            self._running = asyncio.ensure_future(self._take())
        await asyncio.shield(self._running)

    async def _take(self) -> None:
        image, now_ms = self._image(), self._clock.monotonic_ms()
        self._traffic.retain(image.topics.keys())
        counts = PartitionCounts(now_ms, self._began_ms)
        async for partition in in_slices(tuple(self._table)):
            counts.add(partition)
        offline = 0
        if self._is_controller():
            async for topic in in_slices(tuple(image.topics.values())):
                offline += sum(each.leader == NO_LEADER for each in topic.partitions)
        samples = [*self._partition_samples(counts, offline), *await self._coordinator_samples()]
        self._samples, self._taken_ms = samples, now_ms

    def _partition_samples(self, counts: PartitionCounts, offline: int) -> Iterable[Sample]:
        for name, value in (
            ("odradek_partitions", counts.total),
            ("odradek_leader_partitions", counts.led),
            ("odradek_under_replicated_partitions", counts.under_replicated),
            ("odradek_under_min_isr_partitions", counts.under_min_in_sync),
            ("odradek_failed_partitions", counts.failed),
            ("odradek_offline_partitions", offline),
            ("odradek_replication_lag_records", counts.lag_records),
            ("odradek_replication_lag_seconds", max(counts.lag_ms, 0.0) / 1000),
        ):
            yield Sample(name, (), value)
        for directory in self._table.directories:
            yield Sample("odradek_log_size_bytes", (directory.path,), counts.by_directory[directory.path])
        for topic, size_bytes in self._traffic.by_label(counts.by_topic).items():
            yield Sample("odradek_topic_size_bytes", (topic,), size_bytes)

    async def _coordinator_samples(self) -> list[Sample]:
        groups: Counter[tuple[str, str]] = Counter()
        transactions: Counter[str] = Counter()
        shards: Counter[tuple[str, str]] = Counter()
        for group_shard in self._groups.present_shards():
            shards["group", group_shard.state.value] += 1
            async for group in in_slices(tuple(group_shard.machine.groups.values())):
                groups[group.kind.value, group.state_name] += 1
        for shard in self._transactions.present_shards():
            shards["transaction", shard.state.value] += 1
            async for transaction in in_slices(tuple(shard.machine.transactions.values())):
                transactions[transaction.state.label] += 1
        return [
            *(Sample("odradek_groups", labels, count) for labels, count in groups.items()),
            *(Sample("odradek_transactions", (state,), count) for state, count in transactions.items()),
            *(Sample("odradek_coordinator_shards", labels, count) for labels, count in shards.items()),
        ]
