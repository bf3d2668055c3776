"""Work on a worker, one piece at a time: it holds the interpreter lock at times, and the event loop needs it too.

What was begun is done even if the client closes its connection without waiting for the answer."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

T = TypeVar("T")


class WorkerTurns:
    def __init__(self, most_waiting: int) -> None:
        self._most_waiting = most_waiting
        self._turn = asyncio.Lock()
        self._tasks: set[asyncio.Task[Any]] = set()  # that have their turn or wait for it

    @property
    def are_full(self) -> bool:
        return len(self._tasks) > self._most_waiting

    def run(self, work: Callable[[], Coroutine[Any, Any, T]]) -> asyncio.Future[T]:
        """What `work` returns. It is scheduled at once, and not cancelled if the caller is."""
        task = asyncio.ensure_future(self._run_in_turn(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return asyncio.shield(task)

    def close(self) -> None:
        """Cancels what waits. Work that runs on a worker ends there, and nothing follows it."""
        for task in tuple(self._tasks):
            task.cancel()

    async def _run_in_turn(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        async with self._turn:
            return await work()
