"""Removal of the files of partitions that left the table: in the background and per log directory, so that a disk that
hangs delays neither the metadata nor other log directories."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from odradek.host.logs import get_logger
from odradek.replica.log_removal import remove_trees, rename_for_deletion

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Sequence, Set

    from odradek.host.host import Host
    from odradek.host.workers import WorkerPool
    from odradek.log.log_directory import LogDirectory
    from odradek.protocol.topic_partition import TopicPartition
    from odradek.replica.partition import Partition

log = get_logger(__name__)


class PartitionRemovals:
    def __init__(
        self, host: Host, forget_moves: Callable[[Sequence[Partition]], Awaitable[None]] | None = None
    ) -> None:
        """`forget_moves` ends moves of partitions to other log directories, and waits for logs that are opened."""
        self._host = host
        self._forget_moves = forget_moves
        self._renames: dict[asyncio.Future[None], frozenset[TopicPartition]] = {}
        self._removals: set[asyncio.Future[None]] = set()
        self._is_stopping = False
        self.before_removal: Callable[[Sequence[Partition]], Awaitable[None]] | None = None
        """Awaited before the files of partitions are renamed, for work on these files that must stop first."""

    def begin(self, partitions: Sequence[Partition]) -> None:
        """Remove the files of these partitions, which must not be in the table."""
        by_directory: dict[LogDirectory, list[Partition]] = {}
        for partition in partitions:
            by_directory.setdefault(partition.directory, []).append(partition)
        for directory, some in by_directory.items():
            renamed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._renames[renamed] = frozenset((each.topic, each.index) for each in some)
            self._run(self._remove(directory, some, renamed))

    def resume(self, directory: LogDirectory) -> None:
        """Remove the renamed directories that the last run has left."""
        if directory.scheduled_deletes:
            self.remove_renamed(directory, directory.scheduled_deletes)

    def remove_renamed(self, directory: LogDirectory, paths: Sequence[str]) -> None:
        """Remove directories of which no partition makes use."""
        self._run(self._remove_trees(self._host.workers.for_directory(directory.path).files, paths))

    def _run(self, coroutine: Coroutine[Any, Any, None]) -> None:
        removal = asyncio.ensure_future(coroutine)
        self._removals.add(removal)
        removal.add_done_callback(self._end)

    async def _remove(
        self, directory: LogDirectory, partitions: Sequence[Partition], renamed: asyncio.Future[None]
    ) -> None:
        files = self._host.workers.for_directory(directory.path).files
        try:
            await asyncio.gather(*(each.flusher.retire() for each in partitions))
            await asyncio.gather(*(each.follower_log.settle() for each in partitions))
            if self._forget_moves is not None:
                await self._forget_moves(partitions)
            if self.before_removal is not None:
                await self.before_removal(partitions)
            for partition in partitions:
                partition.log.release()
            paths = await files.run(rename_for_deletion, partitions)
        finally:
            del self._renames[renamed]
            renamed.set_result(None)
        await self._remove_trees(files, paths)

    async def _remove_trees(self, files: WorkerPool, paths: Sequence[str]) -> None:
        await files.run(remove_trees, self._host.disk, paths, lambda: self._is_stopping)

    def _end(self, removal: asyncio.Future[None]) -> None:
        self._removals.discard(removal)
        if not removal.cancelled() and (problem := removal.exception()) is not None:
            log.error("removal of deleted partitions failed", exc_info=problem)

    def uses_names(self, keys: Set[TopicPartition]) -> bool:
        """Whether a directory of a removed partition has one of these names."""
        return any(not names.isdisjoint(keys) for names in self._renames.values())

    async def wait_for_names(self, keys: Set[TopicPartition]) -> None:
        """Return when no directory of a removed partition has one of these names."""
        renames = [renamed for renamed, names in self._renames.items() if not names.isdisjoint(keys)]
        if renames:
            await asyncio.wait(renames)

    async def stop(self) -> None:
        """Wait until no removal is running. Renamed directories that are not removed are left to the next start: ten
        thousand partitions take longer than a stop may take."""
        self._is_stopping = True
        await self.settle()

    async def settle(self) -> None:
        """Wait until no removal is running."""
        while self._removals:
            await asyncio.wait(self._removals)
