"""Work on the logs of a broker that is done at intervals, and tasks of which at most one runs per key."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol

from odradek.host.logs import get_logger

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Hashable

    from odradek.configuration.broker_configs import BrokerConfig

log = get_logger(__name__)


class PeriodicTask(Protocol):
    name: str

    def interval_ms(self, config: BrokerConfig) -> float:
        """Read before every round of housekeeping: it may change at run time."""

    async def run(self, now_ms: int) -> None:
        """Do the work once. `now_ms` is the time that deletion by age goes by (see `clock_skew_guard`)."""

    async def stop(self) -> None:
        """Nothing of the task touches a log after this returns."""


class SingleTasks:
    """Tasks by key. A task that hangs (on a disk) keeps only the work of its own key from running."""

    def __init__(self) -> None:
        self._running: dict[Hashable, asyncio.Future[None]] = {}

    def begin(self, key: Hashable, work: Callable[[], Coroutine[object, object, None]], name: str) -> None:
        """Run the work, unless the work of this key is running. `name` is for the log, if the work fails."""
        running = self._running.get(key)
        if running is not None and not running.done():  # the callback of one that is done may not have run
            return
        task = self._running[key] = asyncio.ensure_future(work())
        task.add_done_callback(lambda _: self._end(key, task, name))

    def _end(self, key: Hashable, task: asyncio.Future[None], name: str) -> None:
        if self._running.get(key) is task:
            del self._running[key]
        if not task.cancelled() and (problem := task.exception()) is not None:
            log.error("periodic work failed", name=name, exc_info=problem)

    @property
    def is_running(self) -> bool:
        return bool(self._running)

    async def settle(self) -> None:
        """Wait until no task is running."""
        while self._running:
            await asyncio.wait(self._running.values())
