"""Which shards a coordinator has on this broker: one for each partition of its internal topic that the broker leads.

The runtime loads a shard when a leadership begins, unloads it when the leadership ends, and finds the shard of a key.
It knows nothing of the state machines that it runs: groups, transactions and share groups can each be one.
"""

from __future__ import annotations

import asyncio
import functools
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from odradek.coordinator.java_strings import partition_of
from odradek.coordinator.runtime.loading import replay_log
from odradek.coordinator.runtime.pending_writes import TurnOfWrites
from odradek.coordinator.runtime.shard import Shard, ShardState
from odradek.coordinator.runtime.state_machine import StateMachine
from odradek.coordinator.runtime.timers import ShardTimers
from odradek.host.logs import get_logger
from odradek.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Coroutine, Hashable, Iterable

    from odradek.coordinator.runtime.shard_log import ShardLog
    from odradek.host.clock import Clock, Timer

log = get_logger(__name__)

M = TypeVar("M", bound=StateMachine)

# Of a load that failed; the delay doubles with each failure.
RETRY_AFTER_MS = 1000.0
LONGEST_RETRY_AFTER_MS = 30_000.0


class CoordinatorRuntime(Generic[M]):
    """`make_machine` makes the state machine of a new shard; `on_active` is called when a shard takes requests."""

    def __init__(
        self,
        clock: Clock,
        make_machine: Callable[[Shard[M]], M],
        *,
        answer_timeout_ms: Callable[[], float],
        on_active: Callable[[M], None] = lambda _: None,
    ) -> None:
        self._clock = clock
        self._make_machine = make_machine
        self._answer_timeout_ms = answer_timeout_ms
        self._on_active = on_active
        self._shards: dict[int, Shard[M]] = {}
        self._turn = TurnOfWrites(lambda end: asyncio.get_running_loop().call_soon(end))
        self._tasks: dict[asyncio.Future[Any], None] = {}  # in the order of their start
        self._to_retry: list[Shard[M]] = []
        self._retry_timer: Timer | None = None
        self._retry_after_ms = RETRY_AFTER_MS
        self._is_stopped = False
        self.partition_count = 1
        self.is_opening: Callable[[str], bool] = lambda _: False  # whether a key without a shard will soon have one

    # Leaderships

    def follow(self, logs: Collection[ShardLog], partition_count: int) -> None:
        """Have a shard for each of `logs`, which are the partitions that this broker leads, and no others."""
        if self._is_stopped:
            return
        led = {shard_log.index: shard_log for shard_log in logs}
        for index, shard in list(self._shards.items()):
            if led.get(index) is not shard.log or not shard.is_leader:
                self._unload(shard)
        self.resize(partition_count)
        added = [
            self._add(shard_log)
            for index, shard_log in led.items()
            if index not in self._shards and index < self.partition_count
        ]
        to_load = []
        for shard in added:
            if shard.log.log_start_offset == shard.log.log_end_offset:
                self._activate(shard)
            else:
                to_load.append(shard)
        self._begin_loading(to_load)

    def resize(self, partition_count: int) -> None:
        """Keys are found by the number of partitions that the topic had when its first shard was loaded: when the topic
        grows, keys stay where their records are until the next start (in Kafka the topic must not grow either)."""
        if not self._shards:
            self.partition_count = partition_count

    def stop(self) -> None:
        """Every request that waits gets NOT_COORDINATOR."""
        self._is_stopped = True
        if self._retry_timer is not None:
            self._retry_timer.cancel()
        for task in tuple(self._tasks):
            task.cancel()
        for shard in list(self._shards.values()):
            self._unload(shard)

    def _add(self, shard_log: ShardLog) -> Shard[M]:
        shard: Shard[M] = Shard(shard_log, self._clock, self._turn, self._answer_timeout_ms)
        shard.timers = ShardTimers(self._clock, shard.on_timer)
        shard.machine = self._make_machine(shard)
        self._shards[shard_log.index] = shard
        return shard

    def _unload(self, shard: Shard[M]) -> None:
        if self._shards.get(shard.log.index) is shard:
            del self._shards[shard.log.index]
        if shard.state is not ShardState.UNLOADED:
            shard.unload()

    def _begin_loading(self, shards: Iterable[Shard[M]]) -> None:
        """A log directory whose disk hangs must not delay the shards in others."""
        by_directory: dict[Hashable, list[Shard[M]]] = {}
        for shard in shards:
            by_directory.setdefault(shard.log.log_directory, []).append(shard)
        for each in by_directory.values():
            self.run(self._load(each))

    async def _load(self, shards: Iterable[Shard[M]]) -> None:
        """One after the other: they share a disk and the event loop."""
        began_ms = self._clock.monotonic_ms()
        record_count = shard_count = 0
        has_failed = False
        for shard in shards:
            if shard.state is not ShardState.LOADING or not shard.is_leader:
                continue  # lost while another shard was loading
            try:
                record_count += await replay_log(shard.machine, shard.log, shard.pending_transactions)
            except Exception as problem:
                log.error("a coordinator's log could not be loaded", partition=shard.log.name, exc_info=problem)
                self._to_retry.append(shard)
                has_failed = True
                continue
            if shard.state is ShardState.LOADING and shard.is_leader:
                self._activate(shard)
                shard_count += 1
        if record_count:
            took_ms = round(self._clock.monotonic_ms() - began_ms)
            log.info("coordinator loaded", records=record_count, partitions=shard_count, took_ms=took_ms)
        if has_failed:
            self._retry_later()
        elif not self._to_retry:
            self._retry_after_ms = RETRY_AFTER_MS

    def _retry_later(self) -> None:
        """A shard whose log cannot be read is loaded again while its leadership lasts: the cause may pass, as a lack of
        file descriptors or of memory does."""
        if self._retry_timer is None and not self._is_stopped:
            self._retry_timer = self._clock.call_after(self._retry_after_ms, self._retry)
            self._retry_after_ms = min(2 * self._retry_after_ms, LONGEST_RETRY_AFTER_MS)

    def _retry(self) -> None:
        self._retry_timer = None
        shards, self._to_retry = self._to_retry, []
        self._begin_loading(shards)

    def _activate(self, shard: Shard[M]) -> None:
        """An exception concerns this shard alone: the others of the broker must be loaded as well."""
        try:
            shard.activate()
            self._on_active(shard.machine)
        except Exception as problem:
            log.error("a coordinator failed to start after loading", partition=shard.log.name, exc_info=problem)

    def run(self, coroutine: Coroutine[Any, Any, None]) -> None:
        """A task that ends with the runtime."""
        task = asyncio.ensure_future(coroutine)
        self._tasks[task] = None
        task.add_done_callback(self._tasks.pop)

    # Shards

    def partition_of(self, key: str) -> int:
        return _partition_of(key, self.partition_count)

    def find(self, key: str) -> M | ErrorCode:
        """The state machine that holds this key, with all earlier requests applied, or why no request can be served."""
        shard = self.find_shard(_partition_of(key, self.partition_count))
        if isinstance(shard, ErrorCode):
            return self._refusal(key, shard)
        shard.append_pending()
        return shard.machine

    def find_for_shared_write(self, key: str) -> M | ErrorCode:
        """The same for a rule whose decision commutes with the shared writes that are collected."""
        index = _partition_of(key, self.partition_count)
        shard = self._shards.get(index)
        if shard is not None and shard.may_append and not self._is_stopped:
            return shard.machine
        found = self.find_shard(index)
        return self._refusal(key, found) if isinstance(found, ErrorCode) else found.machine

    def _refusal(self, key: str, error: ErrorCode) -> ErrorCode:
        """While a shard is about to be made, clients are to send the request to this broker again."""
        is_opening = error is ErrorCode.NOT_COORDINATOR and self.is_opening(key)
        return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if is_opening else error

    def find_shard(self, index: int) -> Shard[M] | ErrorCode:
        """The shard of one partition, or why no request can be served."""
        if self._is_stopped:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        shard = self._shards.get(index)
        if shard is None:
            return ErrorCode.NOT_COORDINATOR
        if shard.may_append:
            return shard
        if self._is_lost(shard):
            self._unload(shard)
            return ErrorCode.NOT_COORDINATOR
        return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS

    def shards(self) -> list[Shard[M]]:
        """The shards whose leadership lasts, loading or active, with all earlier requests applied."""
        for shard in list(self._shards.values()):
            shard.append_pending()  # may end the leadership, when the disk fails
            if self._is_lost(shard):
                self._unload(shard)
        return list(self._shards.values())

    def present_shards(self) -> list[Shard[M]]:
        """All shards as they are; nothing is applied or unloaded."""
        return list(self._shards.values())

    @staticmethod
    def _is_lost(shard: Shard[M]) -> bool:
        """A leadership may end without a change of the metadata, when a log directory fails."""
        return shard.state is ShardState.UNLOADED or not shard.is_leader


@functools.lru_cache(maxsize=16_384)
def _partition_of(key: str, partition_count: int) -> int:
    return partition_of(key, partition_count)
