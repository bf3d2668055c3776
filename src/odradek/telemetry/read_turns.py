"""Pushes are parsed on a worker one at a time: parsing holds the interpreter lock, and the event loop needs it too.

The last push of a client is kept even if the client closes its connection without waiting for the answer."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

T = TypeVar("T")
MOST_WAITING = 32


class ReadTurns:
    def __init__(self) -> None:
        self._turn = asyncio.Lock()
        self._reads: set[asyncio.Task[Any]] = set()  # of pushes that are parsed or wait for it

    @property
    def are_full(self) -> bool:
        return len(self._reads) > MOST_WAITING

    def run(self, read: Callable[[], Coroutine[Any, Any, T]]) -> asyncio.Future[T]:
        """What `read` returns. It is scheduled at once, and not cancelled if the caller is."""
        task = asyncio.ensure_future(self._run_in_turn(read))
        self._reads.add(task)
        task.add_done_callback(self._reads.discard)
        return asyncio.shield(task)

    async def _run_in_turn(self, read: Callable[[], Coroutine[Any, Any, T]]) -> T:
        async with self._turn:
            return await read()
