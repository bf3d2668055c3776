"""What a broker does by the clock: fsync by `flush.ms`, checkpoints, expired producers, removed files, and the chores
that features bring along (retention, compaction).

One timer walks over all partitions; there is none per partition.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from odradek.host.logs import get_logger
from odradek.replica.partition import Role

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.configuration.broker_configs import BrokerConfig
    from odradek.host.clock import Timer
    from odradek.host.host import Host
    from odradek.replica.believed_time import BelievedTime
    from odradek.replica.chores import Chore
    from odradek.replica.partition import Partition
    from odradek.replica.partition_table import PartitionTable

log = get_logger(__name__)

ROUND_MS = 1_000
PARTITIONS_AT_ONCE = 500  # looked at on the event loop before others come between


class Housekeeping:
    def __init__(
        self, table: PartitionTable, host: Host, broker_config: Callable[[], BrokerConfig], time: BelievedTime
    ) -> None:
        self._table = table
        self._host = host
        self._time = time
        self._broker_config = broker_config
        self._timer: Timer | None = None
        self._is_stopped = False
        self._round: asyncio.Future[None] | None = None
        self._last_checkpoint_ms = self._last_expiry_ms = host.clock.monotonic_ms()
        self._removed_files: list[tuple[float, str]] = []
        self._chores: list[Chore] = []
        self._last_run_ms: dict[Chore, float] = {}

    def add(self, chore: Chore) -> None:
        """Its first turn comes when its interval has passed."""
        self._chores.append(chore)
        self._last_run_ms[chore] = self._host.clock.monotonic_ms()

    def start(self) -> None:
        self._timer = self._host.clock.call_after(ROUND_MS, self._begin_round)

    async def stop(self) -> None:
        """No round is running when this returns, and none begins any more."""
        self._is_stopped = True
        if self._timer is not None:
            self._timer.cancel()
        if self._round is not None:
            await asyncio.wait([self._round])
        for chore in self._chores:
            await chore.stop()
        for partition in self._table:
            self._collect_removed_files(partition, 0)
        await self._remove_files(float("inf"))

    def _begin_round(self) -> None:
        self._round = asyncio.ensure_future(self._keep_house())
        self._round.add_done_callback(self._end_round)

    def _end_round(self, round_: asyncio.Future[None]) -> None:
        self._round = None
        if not round_.cancelled() and (problem := round_.exception()) is not None:
            log.error("housekeeping failed", exc_info=problem)
        if not self._is_stopped:
            self.start()

    async def _keep_house(self) -> None:
        now_ms = self._host.clock.monotonic_ms()
        believed_ms = self._time.now_ms()
        config = self._broker_config()
        for number, partition in enumerate(tuple(self._table)):
            if self._is_stopped:
                return
            if number % PARTITIONS_AT_ONCE == PARTITIONS_AT_ONCE - 1:
                await asyncio.sleep(0)
            if partition.role is not Role.LEADER:  # deleted while others were flushed, or failed
                continue
            self._collect_removed_files(partition, now_ms)
            if self._must_flush(partition, now_ms):
                await self._flush(partition)
        await self._remove_files(now_ms)
        await self._table.open_missing()
        if now_ms - self._last_checkpoint_ms >= config.log_flush_offset_checkpoint_interval_ms:
            self._last_checkpoint_ms = now_ms
            await self._checkpoint()
        if now_ms - self._last_expiry_ms >= config.producer_id_expiration_check_interval_ms:
            self._last_expiry_ms = now_ms
            for partition in self._table:
                partition.log.producers.remove_expired(believed_ms, config.producer_id_expiration_ms)
        for chore in self._chores:
            if not self._is_stopped and now_ms - self._last_run_ms[chore] >= chore.interval_ms(config):
                self._last_run_ms[chore] = now_ms
                await self._do(chore, believed_ms)

    async def _do(self, chore: Chore, believed_ms: int) -> None:
        """One that fails must not keep the others from theirs."""
        try:
            await chore.run(believed_ms)
        except Exception as problem:
            log.error("a chore failed", chore=chore.name, exc_info=problem)

    async def _checkpoint(self) -> None:
        """A longer recovery after a crash is all that a failure costs."""
        try:
            await self._table.checkpoint()
        except OSError as problem:
            log.error("checkpoints could not be written", reason=str(problem))

    async def _flush(self, partition: Partition) -> None:
        """A disk that fails one partition must not keep the others from theirs. It is told once: a log whose sync has
        failed stays so until a restart, and a round comes every second."""
        is_known = partition.flusher.has_failed
        try:
            await partition.flusher.flush()
        except OSError as problem:
            if is_known:
                return
            log.error("flush failed", topic=partition.topic, partition=partition.index, reason=str(problem))

    def _must_flush(self, partition: Partition, now_ms: float) -> bool:
        """Rolled segments soon, by Kafka's example; the active one when its topic's `flush.ms` has passed."""
        partition_log = partition.log
        if partition_log.has_rolled_segments_to_sync:
            return True
        if partition_log.log_end_offset <= partition_log.recovery_point_offset:
            partition.flusher.dirty_since_ms = None
            return False
        if partition.flusher.dirty_since_ms is None:
            partition.flusher.dirty_since_ms = now_ms
        return now_ms - partition.flusher.dirty_since_ms >= partition_log.config.flush_ms

    def _collect_removed_files(self, partition: Partition, now_ms: float) -> None:
        """A removed segment stays for `file.delete.delay.ms`, for readers that were given a place in it."""
        for path in partition.log.take_removed_files():
            self._removed_files.append((now_ms + partition.log.config.file_delete_delay_ms, path))

    async def _remove_files(self, now_ms: float) -> None:
        due = [path for due_ms, path in self._removed_files if due_ms <= now_ms]
        if due:
            self._removed_files = [entry for entry in self._removed_files if entry[0] > now_ms]
            await self._host.workers.run(self._remove, due)

    def _remove(self, paths: list[str]) -> None:
        for path in paths:
            try:
                self._host.disk.remove(path)
            except FileNotFoundError:  # its topic was deleted meanwhile
                continue
            except OSError as problem:
                log.error("a removed file stays until the next start", path=path, reason=str(problem))
