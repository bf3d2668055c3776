"""Requests that wait for bytes: a long poll ends when enough was appended, when its time is up, or at shutdown."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odradek.host.clock import Clock
    from odradek.replica.partition import Partition


class WaitingFetch:
    """One long poll over several partitions. Each append counts down the bytes that are still missing.

    It waits from the moment it is made: its task starts a little later, and what is appended in between must count.
    """

    __slots__ = ("_future", "_missing_bytes", "_partitions", "_timer")

    def __init__(self, partitions: Sequence[Partition], missing_bytes: int, timeout_ms: int, clock: Clock) -> None:
        self._partitions = partitions
        self._missing_bytes = missing_bytes
        self._future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._timer = clock.call_after(timeout_ms, self.finish)
        for partition in partitions:
            partition.waiting_fetches.add(self)

    def appended(self, size_bytes: int) -> None:
        self._missing_bytes -= size_bytes
        if self._missing_bytes <= 0:
            self.finish()

    def finish(self) -> None:
        """Wake the request; it runs after what is being handled now, so that producers are answered first."""
        if not self._future.done():
            self._future.set_result(None)
        self._leave()

    async def wait(self) -> None:
        """Return when `finish` was called, by whomever, or after the timeout."""
        try:
            await self._future
        except asyncio.CancelledError:
            self._leave()
            raise

    def _leave(self) -> None:
        self._timer.cancel()
        for partition in self._partitions:
            partition.waiting_fetches.discard(self)
