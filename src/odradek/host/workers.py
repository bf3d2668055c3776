"""Worker threads for work that may block, so that the event loop never waits for a disk.

Each log directory has threads of its own: a disk that hangs stops only work on its own files. The general pool runs
everything else (the metadata store, pattern matching, name look-ups, conversions of large batches)."""

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple, Protocol, TypeVar, TypeVarTuple

T = TypeVar("T")
Arguments = TypeVarTuple("Arguments")


PAUSE_S = 0.00005


def yield_to_event_loop() -> None:
    """Releases the interpreter lock for long enough that a waiting event loop gets it; for workers that compute.
    Without it the event loop waits for up to 5 ms, each time that it needs the lock."""
    time.sleep(PAUSE_S)


class WorkerPool(Protocol):
    async def run(self, function: Callable[[*Arguments], T], *args: *Arguments) -> T: ...


class DirectoryWorkers(NamedTuple):
    """Two pools, so that reads of a log directory do not queue behind its flushes."""

    flushes: WorkerPool  # fsync of logs
    files: WorkerPool  # all other work on files: reads, opening, checkpoints, removal


class Workers(WorkerPool, Protocol):
    """The general pool, and the pools of log directories."""

    def for_directory(self, path: str) -> DirectoryWorkers:
        """The pools of this log directory, the same at every call. Their threads touch files in it only."""

    def close(self) -> None:
        """Wait for the work that is running."""


class ThreadPool:
    __slots__ = ("_executor",)

    def __init__(self, thread_count: int, name: str) -> None:
        self._executor = ThreadPoolExecutor(thread_count, thread_name_prefix=f"odradek-{name}")

    async def run(self, function: Callable[[*Arguments], T], *args: *Arguments) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._executor, function, *args)

    def close(self) -> None:
        self._executor.shutdown(wait=True)


class ThreadWorkers(ThreadPool):
    """A few threads per pool, started when they are needed: fsync and cold reads release the interpreter lock, so more
    threads would only queue at the disk."""

    __slots__ = ("_by_directory", "_thread_count")

    def __init__(self, thread_count: int = 4) -> None:
        super().__init__(thread_count, "worker")
        self._thread_count = thread_count
        self._by_directory: dict[str, tuple[ThreadPool, ThreadPool]] = {}

    def for_directory(self, path: str) -> DirectoryWorkers:
        pools = self._by_directory.get(path)
        if pools is None:
            pools = ThreadPool(self._thread_count, "flush"), ThreadPool(self._thread_count, "files")
            self._by_directory[path] = pools
        return DirectoryWorkers(*pools)

    def close(self) -> None:
        super().close()
        for pools in self._by_directory.values():
            for pool in pools:
                pool.close()
