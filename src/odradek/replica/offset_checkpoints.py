"""Recovery points, log start offsets and high watermarks, checkpointed in each log directory, so that a start reads
little and loses nothing. Each log directory is written on its own, one write at a time, with the values that the event
loop saw when the write began."""

from __future__ import annotations

import asyncio
import functools
from typing import TYPE_CHECKING, NamedTuple

from odradek.host.logs import get_logger
from odradek.protocol.malformed import MalformedMessage
from odradek.replica.directory_writes import DirectoryWrites

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence, Set

    from odradek.host.workers import Workers
    from odradek.log.checkpoints import OffsetCheckpoint
    from odradek.log.log_directory import LogDirectory
    from odradek.protocol.topic_partition import TopicPartition
    from odradek.replica.partition import Partition

log = get_logger(__name__)


class CheckpointRow(NamedTuple):
    key: TopicPartition
    recovery_point_offset: int
    log_start_offset: int
    high_watermark: int


class OffsetCheckpoints:
    def __init__(
        self,
        workers: Workers,
        report_failure: Callable[[LogDirectory, OSError], None],
        other_rows: Callable[[LogDirectory], list[CheckpointRow]],
    ) -> None:
        """`other_rows` are those of logs that are not in the table."""
        self._other_rows = other_rows
        self._workers = workers
        self._report_failure = report_failure
        self._writes = DirectoryWrites()
        self._stale: dict[LogDirectory, set[TopicPartition]] = {}  # removed partitions that checkpoints may contain

    def mark_stale(self, partition: Partition, directories: Iterable[LogDirectory]) -> None:
        """The partition was removed: the next checkpoint of each of its log directories is the first without it."""
        for directory in directories:
            if directory.failure is None:
                self._stale.setdefault(directory, set()).add((partition.topic, partition.index))

    def directories_with_stale(self, keys: Set[TopicPartition]) -> list[LogDirectory]:
        """The log directories whose checkpoints may contain removed partitions of these names."""
        return [directory for directory, stale in self._stale.items() if not stale.isdisjoint(keys)]

    async def write(
        self,
        directories: Iterable[LogDirectory],
        partitions: Callable[[], Iterable[Partition]],
        *,
        only_starts: bool = False,
    ) -> None:
        """Write the checkpoints of these log directories. OSError when one could not be written; the others are."""
        writes = (
            self._writes.run(each, functools.partial(self._write, each, partitions, only_starts))
            for each in directories
            if each.failure is None
        )
        problems = [problem for problem in await asyncio.gather(*writes) if problem is not None]
        if problems:
            raise problems[0]

    async def _write(
        self, directory: LogDirectory, partitions: Callable[[], Iterable[Partition]], only_starts: bool
    ) -> OSError | None:
        rows = self._other_rows(directory) + _collect(directory, partitions())
        forgotten = frozenset(self._stale.get(directory, ()))
        try:
            await self._workers.for_directory(directory.path).files.run(_write, directory, rows, only_starts)
        except OSError as problem:
            self._report_failure(directory, problem)
            return problem
        if forgotten and not only_starts:
            self._stale[directory] -= forgotten
        return None


def _collect(directory: LogDirectory, partitions: Iterable[Partition]) -> list[CheckpointRow]:
    return [
        CheckpointRow(
            (partition.topic, partition.index),
            partition.log.recovery_point_offset,
            partition.log.log_start_offset,
            partition.high_watermark,
        )
        for partition in partitions
        if partition.directory is directory and partition.is_online
    ]


def _write(directory: LogDirectory, rows: Sequence[CheckpointRow], only_starts: bool) -> None:
    directory.log_start_offsets.write({row.key: row.log_start_offset for row in rows if row.log_start_offset > 0})
    if not only_starts:
        directory.recovery_points.write({row.key: row.recovery_point_offset for row in rows})
        directory.high_watermarks.write({row.key: row.high_watermark for row in rows})


def read_checkpoint(checkpoint: OffsetCheckpoint) -> dict[TopicPartition, int]:
    """A checkpoint that cannot be read is ignored, as in Kafka: recovery takes longer without it."""
    try:
        return checkpoint.read()
    except MalformedMessage as problem:
        log.warning("checkpoint ignored", path=checkpoint.path, reason=problem)
        return {}
