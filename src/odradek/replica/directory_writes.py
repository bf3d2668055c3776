"""Writes of the same files of a log directory: one at a time, each to its end."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from odradek.log.log_directory import LogDirectory

T = TypeVar("T")


class DirectoryWrites:
    """A write continues when its caller is cancelled (the client disconnected), and the next one waits for it: a worker
    cannot be stopped, and two writes of one file would use the same temporary file."""

    def __init__(self) -> None:
        self._locks: dict[LogDirectory, asyncio.Lock] = {}
        self._running: set[asyncio.Future[Any]] = set()

    async def run(self, directory: LogDirectory, write: Callable[[], Coroutine[object, object, T]]) -> T:
        """Run the write when all earlier ones of this log directory have ended."""
        task = asyncio.ensure_future(self._run_alone(directory, write))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return await asyncio.shield(task)

    async def _run_alone(self, directory: LogDirectory, write: Callable[[], Coroutine[object, object, T]]) -> T:
        async with self._locks.setdefault(directory, asyncio.Lock()):
            return await write()

    async def settle(self) -> None:
        """Wait until no write is running."""
        while self._running:
            await asyncio.wait(self._running)
