"""Before partitions with the names of removed ones are created: the directories of the removed ones must be renamed,
and after a crash their checkpoints must not be applied to the new partitions. Only the log directories of the removed
partitions are waited for, with a limit. A start removes stale checkpoints too, so a deletion need not wait."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from odradek.host.logs import get_logger

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Set

    from odradek.log.log_directory import LogDirectory
    from odradek.protocol.topic_partition import TopicPartition
    from odradek.replica.offset_checkpoints import OffsetCheckpoints
    from odradek.replica.partition_removal import PartitionRemovals

log = get_logger(__name__)

RELEASE_LIMIT_S = 5.0


class NameReleases:
    def __init__(
        self,
        removals: PartitionRemovals,
        checkpoints: OffsetCheckpoints,
        write_checkpoints: Callable[[Iterable[LogDirectory]], Awaitable[None]],
    ) -> None:
        self._removals = removals
        self._checkpoints = checkpoints
        self._write_checkpoints = write_checkpoints
        self._running: dict[asyncio.Task[None], Set[TopicPartition]] = {}

    def is_running(self, key: TopicPartition) -> bool:
        """Whether the release of the name has exceeded the limit, and continues."""
        return any(key in keys for keys in self._running.values())

    async def release(self, keys: Set[TopicPartition]) -> None:
        if not self._removals.uses_names(keys) and not self._checkpoints.directories_with_stale(keys):
            return
        task = asyncio.ensure_future(self._release(keys))
        self._running[task] = keys
        task.add_done_callback(self._end)
        done, _ = await asyncio.wait([task], timeout=RELEASE_LIMIT_S)
        if not done:
            log.error(
                "a log directory does not respond: partitions with the names of removed ones are created when it does",
                partitions=len(keys),
            )

    async def _release(self, keys: Set[TopicPartition]) -> None:
        await self._removals.wait_for_names(keys)
        try:
            await self._write_checkpoints(self._checkpoints.directories_with_stale(keys))
        except OSError as problem:
            log.error("checkpoints could not be written", reason=problem)

    def _end(self, task: asyncio.Task[None]) -> None:
        del self._running[task]
        if not task.cancelled() and (problem := task.exception()) is not None:
            log.error("names of removed partitions could not be released", exc_info=problem)
