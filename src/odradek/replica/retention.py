"""The periodic task that deletes old records: by `retention.ms` and `retention.bytes`, whole segments at a time.

First the log start offsets advance, then they are checkpointed, and only then are files removed: after a crash at any
time a log starts where it did or later, and no offset is assigned twice."""

from __future__ import annotations

import asyncio
import functools
from typing import TYPE_CHECKING

from odradek.host.logs import get_logger
from odradek.log.retention import expire_to, expired_offset, may_have_expired, remove_expired_aside
from odradek.log.segment_list import count_before
from odradek.replica.periodic_tasks import SingleTasks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odradek.configuration.broker_configs import BrokerConfig
    from odradek.host.host import Host
    from odradek.log.log_directory import LogDirectory
    from odradek.replica.partition import Partition
    from odradek.replica.partition_table import PartitionTable

log = get_logger(__name__)

SEGMENTS_PER_SLICE = 20  # each of their files is renamed, on the event loop


class Retention:
    name = "retention"

    def __init__(self, table: PartitionTable, host: Host) -> None:
        self._table = table
        self._host = host
        self._tasks = SingleTasks()

    def interval_ms(self, config: BrokerConfig) -> float:
        return config.log_retention_check_interval_ms

    async def run(self, now_ms: int) -> None:
        """Begin a task per log directory, so that a disk that hangs does not keep the records of others."""
        for directory in self._table.directories:
            if directory.failure is None:
                expire = functools.partial(self._expire_in_directory, directory, now_ms)
                self._tasks.begin(directory, expire, "retention in a log directory")

    async def settle(self) -> None:
        await self._tasks.settle()

    async def stop(self) -> None:
        await self._tasks.settle()

    async def _expire_in_directory(self, directory: LogDirectory, now_ms: int) -> None:
        partitions = [each for each in self._table if each.directory is directory and each.is_online]
        candidates = [each for each in partitions if may_have_expired(each.log)]
        files = self._host.workers.for_directory(directory.path).files
        aside = [each for each in partitions if each.log.aside_names]
        if aside:
            await files.run(self._remove_expired_aside, aside, now_ms)
        if candidates:
            expired = await files.run(self._find_expired, candidates, now_ms)
            for partition, offset in expired:
                await self._expire(partition, offset)
        # Also the segments that an earlier round or DeleteRecords left, because the checkpoint could not be written.
        old = [each for each in partitions if count_before(each.log.segments, each.log.log_start_offset) > 0]
        if old and await self._checkpoint_starts(directory):
            for partition in old:
                await remove_old_segments(partition)

    async def _checkpoint_starts(self, directory: LogDirectory) -> bool:
        try:
            await self._table.checkpoint_log_start_offsets([directory])
        except OSError as problem:
            log.error(
                "expired segments stay: the log start offsets could not be checkpointed", path=directory.path,
                reason=problem,
            )  # fmt: skip
            return False
        return True

    def _find_expired(self, partitions: Sequence[Partition], now_ms: int) -> list[tuple[Partition, int]]:
        expired = []
        for partition in partitions:
            try:
                offset = expired_offset(partition.log, partition.high_watermark, now_ms)
            except OSError as problem:
                if partition.is_online:  # else its files were removed at the same time
                    _log_failure(partition, problem)
                continue
            if offset is not None:
                expired.append((partition, offset))
        return expired

    def _remove_expired_aside(self, partitions: Sequence[Partition], now_ms: int) -> None:
        for partition in partitions:
            try:
                remove_expired_aside(partition.log, self._host.disk, now_ms)
            except OSError as problem:
                if partition.is_online:  # else its files were removed at the same time
                    _log_failure(partition, problem)

    async def _expire(self, partition: Partition, offset: int) -> None:
        if not partition.is_online:
            return
        before = partition.log.log_start_offset
        try:
            expire_to(partition.log, offset)
        except OSError as problem:
            _log_failure(partition, problem)
            return
        log.info(
            "records expired", topic=partition.topic, partition=partition.index,
            log_start_offset=partition.log.log_start_offset, before=before,
        )  # fmt: skip
        await asyncio.sleep(0)  # thousands of logs may be due together


async def remove_old_segments(partition: Partition) -> None:
    """Remove the segments before the log start offset, which must be checkpointed, in slices."""
    removed = SEGMENTS_PER_SLICE
    while removed == SEGMENTS_PER_SLICE and partition.is_online:
        try:
            removed = partition.log.remove_segments_before_start(SEGMENTS_PER_SLICE)
        except OSError as problem:
            _log_failure(partition, problem)
            return
        if removed:
            await asyncio.sleep(0)


def _log_failure(partition: Partition, problem: OSError) -> None:
    log.error("retention failed", topic=partition.topic, partition=partition.index, reason=problem)
