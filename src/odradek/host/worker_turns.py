"""Work on a worker, one piece at a time: it holds the interpreter lock at times, and the event loop needs it too.

Work that was begun is completed even if the client closes its connection without waiting for the answer."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

T = TypeVar("T")


class WorkerTurns:
    def __init__(self, most_waiting: int) -> None:
        self._most_waiting = most_waiting
        self._turn = asyncio.Lock()  # its waiters get it in their order
        self._tasks: set[asyncio.Task[Any]] = set()  # that have their turn or wait for it
        self._is_closed = False

    @property
    def are_full(self) -> bool:
        return self.count > self._most_waiting

    @property
    def count(self) -> int:
        """The number of pieces of work that have their turn or wait for it."""
        return len(self._tasks)

    @property
    def is_free(self) -> bool:
        return not self._turn.locked()

    def run(self, work: Callable[[], Coroutine[Any, Any, T]]) -> asyncio.Future[T]:
        """Returns a future of the result of `work`, which has one turn. It is scheduled at once, and not cancelled if
        the caller is."""
        return self.start(lambda: self._run_in_turn(work))

    def start(self, work: Callable[[], Coroutine[Any, Any, T]]) -> asyncio.Future[T]:
        """Like `run`, for work that takes its turns itself, with `take` and `end`."""
        task = asyncio.ensure_future(work())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return asyncio.shield(task)

    def deadline_after(self, timeout_ms: float) -> float:
        return asyncio.get_running_loop().time() + timeout_ms / 1000.0

    async def take(self, deadline: float) -> bool:
        """Whether the turn came before the deadline and before `close`; the caller then has it until `end`. A caller
        that is cancelled does not wait any longer."""
        await asyncio.sleep(0)  # the event loop serves others between two turns of the same work
        if asyncio.get_running_loop().time() >= deadline:
            return False
        try:
            async with asyncio.timeout_at(deadline):
                await self._turn.acquire()
        except TimeoutError:
            return False
        if self._is_closed:
            self._turn.release()
        return not self._is_closed

    def end(self) -> None:
        self._turn.release()

    def run_taken(self, work: Callable[[], Coroutine[Any, Any, T]]) -> asyncio.Future[T]:
        """Like `run`, for a caller that has taken the turn: it ends with the work."""

        async def work_and_end() -> T:
            try:
                return await work()
            finally:
                self.end()

        return self.start(work_and_end)

    def close(self) -> None:
        """Cancels the work that waits. Work that runs on a worker ends there, and nothing follows it."""
        self._is_closed = True
        for task in tuple(self._tasks):
            task.cancel()

    async def _run_in_turn(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        async with self._turn:
            return await work()
