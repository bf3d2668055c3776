"""Recovery points, log starts and high watermarks, written down in each log directory: so that a start scans little and
forgets nothing. One writing at a time, of what the event loop saw when it began."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple

from odradek.host.logs import get_logger
from odradek.protocol.malformed import MalformedMessage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from odradek.host.workers import Workers
    from odradek.log.checkpoints import OffsetCheckpoint
    from odradek.log.log_directory import LogDirectory
    from odradek.protocol.topic_partition import TopicPartition
    from odradek.replica.partition import Partition

log = get_logger(__name__)


class _Row(NamedTuple):
    key: TopicPartition
    recovery_point_offset: int
    log_start_offset: int
    high_watermark: int


class OffsetCheckpoints:
    def __init__(self, workers: Workers, report_failure: Callable[[LogDirectory, OSError], None]) -> None:
        self._workers = workers
        self._report_failure = report_failure
        self._one_at_a_time = asyncio.Lock()

    async def write(
        self, directories: Sequence[LogDirectory], partitions: Iterable[Partition], *, only_starts: bool = False
    ) -> None:
        """OSError when a directory could not take them; the others have them."""
        async with self._one_at_a_time:
            rows = _collect(directories, partitions)
            problems = await self._workers.run(_write_all, rows, only_starts)
        for directory, problem in problems:
            self._report_failure(directory, problem)
        if problems:
            raise problems[0][1]


def _collect(directories: Iterable[LogDirectory], partitions: Iterable[Partition]) -> dict[LogDirectory, list[_Row]]:
    rows: dict[LogDirectory, list[_Row]] = {each: [] for each in directories if each.failure is None}
    for partition in partitions:
        found = rows.get(partition.directory)
        if found is not None:
            each = partition.log
            key = (partition.topic, partition.index)
            found.append(_Row(key, each.recovery_point_offset, each.log_start_offset, partition.high_watermark))
    return rows


def _write_all(rows: Mapping[LogDirectory, Sequence[_Row]], only_starts: bool) -> list[tuple[LogDirectory, OSError]]:
    problems = []
    for directory, found in rows.items():
        try:
            _write(directory, found, only_starts)
        except OSError as problem:
            problems.append((directory, problem))
    return problems


def _write(directory: LogDirectory, rows: Sequence[_Row], only_starts: bool) -> None:
    directory.log_start_offsets.write({row.key: row.log_start_offset for row in rows if row.log_start_offset > 0})
    if not only_starts:
        directory.recovery_points.write({row.key: row.recovery_point_offset for row in rows})
        directory.high_watermarks.write({row.key: row.high_watermark for row in rows})


def read_checkpoint(checkpoint: OffsetCheckpoint) -> dict[TopicPartition, int]:
    """As Kafka does with one that cannot be read: it is done without, at the price of a longer recovery."""
    try:
        return checkpoint.read()
    except MalformedMessage as problem:
        log.warning("checkpoint ignored", path=checkpoint.path, reason=str(problem))
        return {}
