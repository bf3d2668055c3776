"""Worker pools that measure the time of each fsync of a log."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar, TypeVarTuple

from odradek.host.workers import DirectoryWorkers

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.host.clock import Clock
    from odradek.host.workers import WorkerPool, Workers
    from odradek.metrics.histogram import Histogram

T = TypeVar("T")
Arguments = TypeVarTuple("Arguments")


class MeasuredPool:
    """The time includes the wait for a worker: records that wait to be durable wait for both."""

    __slots__ = ("_clock", "_durations", "_pool")

    def __init__(self, pool: WorkerPool, durations: Histogram, clock: Clock) -> None:
        self._pool = pool
        self._durations = durations
        self._clock = clock

    async def run(self, function: Callable[[*Arguments], T], *args: *Arguments) -> T:
        began_ms = self._clock.monotonic_ms()
        result = await self._pool.run(function, *args)
        self._durations.observe((self._clock.monotonic_ms() - began_ms) / 1000)
        return result


class MeasuredWorkers:
    """The workers of a host, of which those for fsync are measured."""

    def __init__(self, workers: Workers, durations: Histogram, clock: Clock) -> None:
        self._workers = workers
        self._durations = durations
        self._clock = clock
        self._by_directory: dict[str, DirectoryWorkers] = {}

    async def run(self, function: Callable[[*Arguments], T], *args: *Arguments) -> T:
        return await self._workers.run(function, *args)

    def for_directory(self, path: str) -> DirectoryWorkers:
        found = self._by_directory.get(path)
        if found is None:
            pools = self._workers.for_directory(path)
            flushes = MeasuredPool(pools.flushes, self._durations, self._clock)
            found = self._by_directory[path] = DirectoryWorkers(flushes, pools.files)
        return found

    def close(self) -> None:
        self._workers.close()
