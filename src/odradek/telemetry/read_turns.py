"""Pushes are parsed on a worker one at a time: parsing holds the interpreter lock, and the event loop needs it too."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar, TypeVarTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.host.workers import WorkerPool

T = TypeVar("T")
Arguments = TypeVarTuple("Arguments")
MOST_WAITING = 32


class ReadTurns:
    def __init__(self) -> None:
        self._turn = asyncio.Lock()
        self._count = 0  # pushes that are parsed or wait for it

    @property
    def are_full(self) -> bool:
        return self._count > MOST_WAITING

    async def run(self, workers: WorkerPool, function: Callable[[*Arguments], T], *args: *Arguments) -> T:
        self._count += 1
        try:
            async with self._turn:
                return await workers.run(function, *args)
        finally:
            self._count -= 1
