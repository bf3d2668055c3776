"""Workers that begin a piece of work when a test says so, while the event loop goes on."""

import asyncio
from collections.abc import Callable
from typing import TypeVar, TypeVarTuple

from odradek.host.workers import DirectoryWorkers

T = TypeVar("T")
Arguments = TypeVarTuple("Arguments")


class HeldWorkers:
    """Work whose function's name is in `held` waits until it is released, oldest first; all other is done at once.
    In the log directories of `hung`, all work waits."""

    def __init__(self) -> None:
        self.held: set[str] = set()
        self.hung: set[str] = set()
        self._waiting: list[tuple[str, asyncio.Future[None]]] = []

    async def run(self, function: Callable[[*Arguments], T], *args: *Arguments) -> T:
        if function.__name__ in self.held:
            await self.wait(function.__name__)
        return function(*args)

    async def wait(self, name: str) -> None:
        gate: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((name, gate))
        await gate

    @property
    def waiting(self) -> list[str]:
        return [name for name, _ in self._waiting]

    def release(self) -> None:
        _, gate = self._waiting.pop(0)
        if not gate.cancelled():  # else its caller was cancelled
            gate.set_result(None)

    def release_all(self) -> None:
        self.held.clear()
        self.hung.clear()
        while self._waiting:
            self.release()

    def for_directory(self, path: str) -> DirectoryWorkers:
        pool = _DirectoryPool(self, path)
        return DirectoryWorkers(pool, pool)

    def close(self) -> None: ...


class _DirectoryPool:
    def __init__(self, workers: HeldWorkers, path: str) -> None:
        self._workers = workers
        self._path = path

    async def run(self, function: Callable[[*Arguments], T], *args: *Arguments) -> T:
        if self._path in self._workers.hung:
            await self._workers.wait(function.__name__)
        return await self._workers.run(function, *args)
