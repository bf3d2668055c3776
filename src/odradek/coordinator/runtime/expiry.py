"""Removes what is old from the shards of a coordinator, periodically, in slices between which the event loop serves
other requests."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Generic, TypeVar

from odradek.coordinator.runtime.state_machine import StateMachine

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from odradek.coordinator.runtime.runtime import CoordinatorRuntime
    from odradek.coordinator.runtime.shard import Shard
    from odradek.host.clock import Clock, Timer
    from odradek.replica.clock_skew_guard import ClockSkewGuard

M = TypeVar("M", bound=StateMachine)


class Expiry(Generic[M]):
    """`expire` is called for each of the `keys` of each shard; `interval_ms` is read before each round."""

    def __init__(
        self,
        runtime: CoordinatorRuntime[M],
        clock: Clock,
        time: ClockSkewGuard,
        *,
        interval_ms: Callable[[], float],
        keys: Callable[[M], Iterable[str]],
        expire: Callable[[M, str], object],
        keys_per_slice: int,
    ) -> None:
        self._runtime = runtime
        self._clock = clock
        self._time = time
        self._interval_ms = interval_ms
        self._keys = keys
        self._expire = expire
        self._keys_per_slice = keys_per_slice
        self._timer: Timer | None = None
        self._is_stopped = False

    def start(self) -> None:
        self._timer = self._clock.call_after(self._interval_ms(), lambda: self._runtime.run(self._run()))

    def stop(self) -> None:
        self._is_stopped = True
        if self._timer is not None:
            self._timer.cancel()

    async def _run(self) -> None:
        try:
            # By a clock that has jumped ahead, everything would be old.
            for shard in self._runtime.shards() if not self._time.is_skewed else ():
                await self._run_shard(shard)
        finally:
            if not self._is_stopped:
                self.start()

    async def _run_shard(self, shard: Shard[M]) -> None:
        for number, key in enumerate(list(self._keys(shard.machine))):
            if not shard.is_active:
                return
            self._expire(shard.machine, key)
            if number % self._keys_per_slice == 0:
                await asyncio.sleep(0)
