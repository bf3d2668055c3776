"""Where work that may block goes, so that the event loop never waits for a disk."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol, TypeVar, TypeVarTuple

T = TypeVar("T")
Arguments = TypeVarTuple("Arguments")


class Workers(Protocol):
    async def run(self, function: Callable[[*Arguments], T], *args: *Arguments) -> T: ...

    def close(self) -> None:
        """Waits for what is running."""


class ThreadWorkers:
    """A few threads: fsync and cold reads release the interpreter's lock, so more would only queue at the disk."""

    __slots__ = ("_executor",)

    def __init__(self, thread_count: int = 4) -> None:
        self._executor = ThreadPoolExecutor(thread_count, thread_name_prefix="odradek-worker")

    async def run(self, function: Callable[[*Arguments], T], *args: *Arguments) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._executor, function, *args)

    def close(self) -> None:
        self._executor.shutdown(wait=True)
