"""What a broker does at intervals: fsync by `flush.ms`, checkpoints, expiry and limit of producers, removal of files,
and the periodic tasks of features (retention, compaction).

One timer for all partitions, none per partition. A round begins work and does not wait for it: each log directory and
each periodic task has a task of its own, so a disk that hangs delays only its own partitions.
"""

from __future__ import annotations

import asyncio
import functools
from typing import TYPE_CHECKING

from odradek.host.logs import get_logger
from odradek.log import producer_limits
from odradek.replica.periodic_tasks import SingleTasks

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from odradek.configuration.broker_configs import BrokerConfig
    from odradek.host.clock import Timer
    from odradek.host.host import Host
    from odradek.log.log_directory import LogDirectory
    from odradek.log.producer_state import ProducerState
    from odradek.replica.clock_skew_guard import ClockSkewGuard
    from odradek.replica.partition import Partition
    from odradek.replica.partition_table import PartitionTable
    from odradek.replica.periodic_tasks import PeriodicTask

log = get_logger(__name__)

ROUND_MS = 1_000
PARTITIONS_PER_SLICE = 500  # looked at on the event loop before other work gets a turn
PRODUCERS_PER_SLICE = 5_000  # a millisecond or two
PACKED_PER_SLICE = 500  # about as long


class Housekeeping:
    def __init__(
        self, table: PartitionTable, host: Host, broker_config: Callable[[], BrokerConfig], time: ClockSkewGuard
    ) -> None:
        self._table = table
        self._host = host
        self._time = time
        self._broker_config = broker_config
        self._timer: Timer | None = None
        self._is_stopped = False
        self._tasks = SingleTasks()
        now_ms = host.clock.monotonic_ms()
        self._last_checkpoint_ms = dict.fromkeys(table.directories, now_ms)
        self._last_expiry_ms = self._last_limit_ms = now_ms
        self._removed_files: dict[LogDirectory, list[tuple[float, str]]] = {each: [] for each in table.directories}
        self._periodic: list[PeriodicTask] = []
        self._last_run_ms: dict[PeriodicTask, float] = {}

    def add(self, task: PeriodicTask) -> None:
        """The task runs for the first time after one interval."""
        self._periodic.append(task)
        self._last_run_ms[task] = self._host.clock.monotonic_ms()

    def start(self) -> None:
        self._timer = self._host.clock.call_after(ROUND_MS, self._run_round)

    async def stop(self) -> None:
        """No work of housekeeping is running when this returns, and none begins after it."""
        self._is_stopped = True
        if self._timer is not None:
            self._timer.cancel()
        await self._tasks.settle()
        for task in self._periodic:
            await task.stop()
        for partition in self._table:
            self._collect_removed_files(partition, 0)
        await asyncio.gather(*(self._remove_files(each, float("inf")) for each in self._table.directories))

    def _run_round(self) -> None:
        now_ms, guarded_ms = self._host.clock.monotonic_ms(), self._time.now_ms()
        config = self._broker_config()
        partitions: dict[LogDirectory, list[Partition]] = {each: [] for each in self._table.directories}
        for partition in self._table:
            partitions[partition.directory].append(partition)
        for directory in self._table.directories:
            maintain = functools.partial(self._maintain_directory, directory, partitions[directory], now_ms, config)
            self._tasks.begin(directory, maintain, "maintenance of a log directory")
        self._tasks.begin("open", self._table.open_missing, "opening of missing partitions")
        if now_ms - self._last_expiry_ms >= config.producer_id_expiration_check_interval_ms:
            self._last_expiry_ms = now_ms
            expire = functools.partial(self._expire_producers, guarded_ms, config.producer_id_expiration_ms)
            self._tasks.begin("producers", expire, "expiry of producers")
        if now_ms - self._last_limit_ms >= producer_limits.CHECK_INTERVAL_MS:
            self._tasks.begin("producer limit", self._limit_producers, "limit of producers")
        for task in self._periodic:
            if now_ms - self._last_run_ms[task] >= task.interval_ms(config):
                self._last_run_ms[task] = now_ms
                self._tasks.begin(task.name, functools.partial(task.run, guarded_ms), task.name)
        self.start()

    async def _maintain_directory(
        self, directory: LogDirectory, partitions: Sequence[Partition], now_ms: float, config: BrokerConfig
    ) -> None:
        for number, partition in enumerate(partitions):
            if self._is_stopped:
                return
            if number % PARTITIONS_PER_SLICE == PARTITIONS_PER_SLICE - 1:
                await asyncio.sleep(0)
            if not partition.is_online:
                continue
            self._collect_removed_files(partition, now_ms)
            if self._must_flush(partition, now_ms):
                await self._flush(partition)
        await self._remove_files(directory, now_ms)
        if now_ms - self._last_checkpoint_ms[directory] >= config.log_flush_offset_checkpoint_interval_ms:
            self._last_checkpoint_ms[directory] = now_ms
            await self._checkpoint(directory)

    async def _expire_producers(self, now_ms: int, expiration_ms: int) -> None:
        async for producers in self._producers_in_slices():
            producers.remove_expired(now_ms, expiration_ms)

    async def _limit_producers(self) -> None:
        """At most one line is logged for each check."""
        counts = [len(each.log.producers.entries) for each in self._table]
        if producer_limits.must_pack_idle(counts):
            async for producers in self._producers_in_slices(PACKED_PER_SLICE):
                producers.entries.pack_idle()
        level = producer_limits.level_to_keep(counts)
        if level is not None:
            removed = 0
            async for producers in self._producers_in_slices():
                removed += producer_limits.remove_idle(producers, level)
            if removed:
                log.warning(
                    "idle producers forgotten: too many in all logs",
                    count=removed,
                    limit=producer_limits.MOST_PRODUCERS,
                )
        self._last_limit_ms = self._host.clock.monotonic_ms()

    async def _producers_in_slices(self, most: int = PRODUCERS_PER_SLICE) -> AsyncIterator[ProducerState]:
        """Those of each log, except of logs that are being truncated: a truncation encodes them on a worker."""
        in_slice = 0
        for partition in tuple(self._table):
            producers = partition.log.producers
            in_slice += PRODUCERS_PER_SLICE // PARTITIONS_PER_SLICE + len(producers.entries)
            if not partition.log.is_truncating:
                yield producers
            if in_slice >= most:
                in_slice = 0
                await asyncio.sleep(0)

    async def _checkpoint(self, directory: LogDirectory) -> None:
        """A failure costs a longer recovery after a crash, nothing else."""
        try:
            await self._table.checkpoint([directory])
        except OSError as problem:
            log.error("checkpoints could not be written", path=directory.path, reason=problem)

    async def _flush(self, partition: Partition) -> None:
        """A failed flush of one partition does not stop the others. It is logged once: a log whose fsync failed stays
        failed until a restart, and a round comes every second."""
        is_known = partition.flusher.has_failed
        try:
            await partition.flusher.flush()
        except OSError as problem:
            if is_known:
                return
            log.error("flush failed", topic=partition.topic, partition=partition.index, reason=problem)

    def _must_flush(self, partition: Partition, now_ms: float) -> bool:
        """Rolled segments in the next round, as in Kafka; the active segment when `flush.ms` has passed, or when a
        flush for `flush.messages` failed."""
        partition_log = partition.log
        if partition_log.has_rolled_segments_to_sync or partition.must_flush:
            return True
        if partition_log.log_end_offset <= partition_log.recovery_point_offset:
            partition.flusher.dirty_since_ms = None
            return False
        if partition.flusher.dirty_since_ms is None:
            partition.flusher.dirty_since_ms = now_ms
        return now_ms - partition.flusher.dirty_since_ms >= partition_log.config.flush_ms

    def _collect_removed_files(self, partition: Partition, now_ms: float) -> None:
        """A removed segment stays for `file.delete.delay.ms`, for readers that were given a position in it."""
        removed = self._removed_files[partition.directory]
        for path in partition.log.take_removed_files():
            removed.append((now_ms + partition.log.config.file_delete_delay_ms, path))

    async def _remove_files(self, directory: LogDirectory, now_ms: float) -> None:
        removed = self._removed_files[directory]
        due = [path for due_ms, path in removed if due_ms <= now_ms]
        if due:
            self._removed_files[directory] = [entry for entry in removed if entry[0] > now_ms]
            await self._host.workers.for_directory(directory.path).files.run(self._remove, due)

    def _remove(self, paths: list[str]) -> None:
        for path in paths:
            try:
                self._host.disk.remove(path)
            except FileNotFoundError:  # removed with its topic
                continue
            except OSError as problem:
                log.error("a removed file stays until the next start", path=path, reason=problem)
