"""Compaction of topics with `cleanup.policy=compact`, one log at a time. Each log directory chooses its dirtiest log
first, as in Kafka. A disk that hangs does not stop the compaction of other disks: only the work of the process has the
one turn of the broker, and it ends when it makes no progress.
The long work runs in a process of its own (`host.background`); this module chooses logs and replaces their segments."""

from __future__ import annotations

import asyncio
import functools
from contextlib import aclosing
from typing import TYPE_CHECKING, NamedTuple

from odradek.host.background import BackgroundEnded
from odradek.host.logs import get_logger
from odradek.log.cleaned_segment import discard_unused
from odradek.log.compaction.batch_filter import LastRecord
from odradek.log.compaction.choice import Cleanable, assess, choose_first_dirty_offset
from odradek.log.compaction.compactor import CleanedGroup, CompactionJob, CompactionOutcome, compact
from odradek.log.compaction.segment_reader import DamagedSegment
from odradek.protocol.malformed import MalformedMessage
from odradek.protocol.sentinels import NO_OFFSET
from odradek.replica.directory_writes import DirectoryWrites
from odradek.replica.periodic_tasks import SingleTasks

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from odradek.configuration.broker_configs import BrokerConfig
    from odradek.host.host import Host
    from odradek.host.workers import WorkerPool
    from odradek.log.cleaned_segment import CleanedSegment
    from odradek.log.log_directory import LogDirectory
    from odradek.log.partition_log import PartitionLog
    from odradek.log.segment import Segment
    from odradek.protocol.topic_partition import TopicPartition
    from odradek.replica.partition import Partition
    from odradek.replica.partition_table import PartitionTable

log = get_logger(__name__)

SHORTEST_BACKOFF_MS = 1_000  # after a failure


class Assessed(NamedTuple):
    """A log that is worth compacting, and the segments that it had when it was assessed."""

    partition: Partition
    segments: Sequence[Segment]
    cleanable: Cleanable


class Compaction:
    """A periodic task. `table.removals.before_removal` must be its `forget`."""

    name = "compaction"

    def __init__(self, table: PartitionTable, host: Host, broker_config: Callable[[], BrokerConfig]) -> None:
        self._table = table
        self._host = host
        self._broker_config = broker_config
        self._clean_offsets: dict[Partition, int] = {}
        self._damaged: set[Partition] = set()
        self._rounds = SingleTasks()
        self._turn = asyncio.Lock()  # held while a log is compacted
        self._work: tuple[Partition, asyncio.Future[None]] | None = None
        self._checkpoint_writes = DirectoryWrites()
        self._is_stopped = False
        table.truncations.on_begin(self._abandon_truncated)
        table.truncations.on_end(self._lower_clean_offset)

    async def load(self) -> None:
        """Read the checkpoints, before any log is truncated or gets records: an offset past the end that a log has now
        describes records that it has lost."""
        usable = [each for each in self._table.directories if each.failure is None]
        await asyncio.gather(*map(self._read_checkpoint, usable))

    def interval_ms(self, config: BrokerConfig) -> float:
        return config.log_cleaner_backoff_ms

    async def run(self, now_ms: int) -> None:
        """Begin a round in each log directory that may have anything to compact, unless one is running there."""
        if self._is_stopped or not self._broker_config().log_cleaner_enable:
            return
        clock = self._host.clock
        begun_ms = clock.monotonic_ms()

        def current_ms() -> int:
            """The round of a busy directory may have no end: tombstones must expire in it."""
            return now_ms + int(clock.monotonic_ms() - begun_ms)

        for directory in dict.fromkeys(partition.directory for partition in self._table if is_rolled(partition)):
            compact_all = functools.partial(self._compact_all, directory, current_ms)
            self._rounds.begin(directory, compact_all, "compaction in a log directory")

    @property
    def is_running(self) -> bool:
        return self._rounds.is_running

    async def settle(self) -> None:
        """Return when no round is running."""
        await self._rounds.settle()

    async def stop(self) -> None:
        self._is_stopped = True
        await self._abandon()
        await self.settle()
        await self._checkpoint_writes.settle()
        await self._host.background.close()

    async def forget(self, partitions: Sequence[Partition]) -> None:
        """The partitions are removed: stop work on their files, and drop what is known about them, so that it is not
        applied to a later partition of the same name."""
        if self._work is not None and self._work[0] in partitions:
            await self._abandon()
        self._damaged.difference_update(partitions)
        known = [each for each in partitions if each in self._clean_offsets]
        for partition in known:
            del self._clean_offsets[partition]
        for directory in dict.fromkeys(partition.directory for partition in known):
            await self._checkpoint(directory)

    async def follow_move(self, partition: Partition, source: LogDirectory) -> None:
        """The partition was moved from another log directory: its clean offset is of use in the new one only."""
        if partition in self._clean_offsets:
            await self._checkpoint(partition.directory)
            await self._checkpoint(source)

    def _abandon_truncated(self, partition: Partition, offset: int) -> None:
        """Records that the work has taken for newer values of their keys may be among those that go."""
        if self._work is not None and self._work[0] is partition:
            name = f"{partition.topic}-{partition.index}"
            log.info("compaction ends because the log is truncated", log=name, offset=offset)
            self._work[1].cancel()

    async def _lower_clean_offset(self, partition: Partition) -> None:
        """The records that are fetched in place of those that are gone were never compacted."""
        end_offset = partition.log.log_end_offset
        if self._clean_offsets.get(partition, NO_OFFSET) > end_offset:
            self._clean_offsets[partition] = end_offset
            await self._save(partition.directory)

    async def _abandon(self) -> None:
        if self._work is not None:
            _, work = self._work
            work.cancel()
            await asyncio.wait([work])

    # One round: until no log of the directory is worth compacting

    async def _compact_all(self, directory: LogDirectory, current_ms: Callable[[], int]) -> None:
        failed_ms: dict[Partition, int] = {}  # when the compaction of a log failed
        while not self._is_stopped:
            now_ms, backoff_ms = current_ms(), max(self._broker_config().log_cleaner_backoff_ms, SHORTEST_BACKOFF_MS)
            waiting = {each for each, at_ms in failed_ms.items() if now_ms - at_ms < backoff_ms}
            assessed = await self._choose(directory, now_ms, waiting)
            if assessed is None:
                return
            async with self._turn:
                if not self._is_current(assessed):
                    continue
                partition, partition_log = assessed.partition, assessed.partition.log
                is_compacted = await self._compact_one(assessed, current_ms())
            is_clean = await self._discard_unused(partition, partition_log, directory)
            if is_compacted and is_clean:
                await self._checkpoint(directory)
            else:
                failed_ms[partition] = current_ms()

    def _is_current(self, assessed: Assessed) -> bool:
        """Whether the log is as it was assessed: it may have changed before its turn came. New segments do not count:
        the assessment ends before them."""
        partition, segments, cleanable = assessed
        return (
            not self._is_stopped
            and partition.is_online
            and partition.move is None
            and not partition.log.is_truncating
            and partition.log.config.is_compacted
            and tuple(partition.log.segments[: len(segments)]) == segments
            and self._first_dirty_offset(partition) == cleanable.first_dirty_offset
        )

    async def _compact_one(self, assessed: Assessed, now_ms: int) -> bool:
        """Whether the log was compacted."""
        partition = assessed.partition
        partition_log = partition.log
        work = asyncio.ensure_future(self._compact(partition, assessed.cleanable, now_ms))
        self._work = (partition, work)
        await asyncio.wait([work])
        self._work = None
        return not work.cancelled() and self._has_succeeded(partition, partition_log, work.exception())

    async def _discard_unused(self, partition: Partition, partition_log: PartitionLog, directory: LogDirectory) -> bool:
        """The next start must not find a cleaned segment that was not used, unless the old segments are gone."""
        problem: OSError | None = None
        if directory.failure is None:
            try:
                await self._files(directory).run(discard_unused, self._host.disk, partition_log.directory)
            except FileNotFoundError:  # the partition was removed
                pass
            except OSError as error:
                problem = error
        return self._has_succeeded(partition, partition_log, problem)

    def _has_succeeded(self, partition: Partition, partition_log: PartitionLog, problem: BaseException | None) -> bool:
        if problem is None:
            return True
        name = f"{partition.topic}-{partition.index}"
        if isinstance(problem, DamagedSegment):
            self._damaged.add(partition)
            log.error("a log is damaged and is not compacted: run `odradek log verify`", log=name, reason=problem)
        elif isinstance(problem, FileNotFoundError | _Overtaken):
            log.info("compaction was interrupted by a deletion and will be tried again", log=name)
        elif isinstance(problem, OSError | BackgroundEnded):
            log.error("a log could not be compacted and will be tried again", log=name, reason=problem)
            if isinstance(problem, OSError) and partition.log is partition_log:  # otherwise of another log directory
                partition.report_failure(problem)
        else:
            log.error("the compaction of a log failed and will be tried again", log=name, exc_info=problem)
        return False

    async def _choose(self, directory: LogDirectory, now_ms: int, waiting: set[Partition]) -> Assessed | None:
        """The log with the largest dirty part, without those that failed and wait for another attempt."""
        candidates = [
            partition
            for partition in self._table
            if partition.directory is directory
            and partition.log.config.is_compacted
            and partition.is_online
            and not partition.log.is_truncating
            and partition.move is None  # a tombstone must not go while the copy has the records that it deletes
            and partition not in waiting
            and partition not in self._damaged
            and partition.log.segments[-1].base_offset > self._first_dirty_offset(partition)
        ]
        if not candidates:
            return None
        assessed = await self._files(directory).run(self._assess, candidates, now_ms)
        return max(assessed, key=lambda each: each.cleanable.dirty_ratio, default=None)

    def _assess(self, candidates: Sequence[Partition], now_ms: int) -> list[Assessed]:
        """The candidates that are worth compacting."""
        assessed = []
        for partition in candidates:
            first_dirty_offset = self._first_dirty_offset(partition)
            segments, config = tuple(partition.log.segments), partition.log.config
            try:
                cleanable = assess(
                    segments,
                    config,
                    first_dirty_offset=first_dirty_offset,
                    safe_offset=_safe_offset(partition),
                    now_ms=now_ms,
                )
            except FileNotFoundError:  # removed at the same time
                continue
            if cleanable.is_worth_compacting(config):
                assessed.append(Assessed(partition, segments, cleanable))
        return assessed

    def _first_dirty_offset(self, partition: Partition) -> int:
        partition_log = partition.log
        return choose_first_dirty_offset(
            self._clean_offsets.get(partition), partition_log.log_start_offset, partition_log.log_end_offset
        )

    async def _compact(self, partition: Partition, cleanable: Cleanable, now_ms: int) -> None:
        segments = {each.base_offset: each for each in partition.log.segments}
        job = self._job(partition, cleanable, now_ms)
        async with aclosing(self._host.background.stream(compact, job)) as results:
            async for result in results:
                if isinstance(result, CleanedGroup):
                    self._replace(partition, [segments[each] for each in result.base_offsets], result.cleaned)
                else:
                    self._finish(partition, result)

    def _replace(self, partition: Partition, old: Sequence[Segment], cleaned: CleanedSegment) -> None:
        try:
            is_replaced = (
                partition.is_online and partition.move is None and partition.log.replace_segments(old, cleaned)
            )
        except OSError as problem:  # between the renames: the next start completes them
            partition.fail_directory(problem)
            raise
        if not is_replaced:
            raise _Overtaken

    def _job(self, partition: Partition, cleanable: Cleanable, now_ms: int) -> CompactionJob:
        config, broker_config = partition.log.config, self._broker_config()
        aborted, _ = partition.log.segments[-1].transaction_index.collect(0, cleanable.end_offset)
        return CompactionJob(
            directory=partition.log.directory,
            base_offsets=[
                each.base_offset for each in partition.log.segments if each.base_offset < cleanable.end_offset
            ],
            first_dirty_offset=cleanable.first_dirty_offset,
            end_offset=cleanable.end_offset,
            now_ms=now_ms,
            delete_retention_ms=config.delete_retention_ms,
            segment_bytes=config.segment_bytes,
            segment_index_bytes=config.segment_index_bytes,
            index_interval_bytes=config.index_interval_bytes,
            last_records={
                each.producer_id: LastRecord(None if each.last_offset == NO_OFFSET else each.last_offset, each.epoch)
                for each in partition.log.producers.entries.summaries()
                if each.last_offset < cleanable.end_offset
            },
            aborted_in_active_segment=aborted,
            dedupe_buffer_bytes=broker_config.log_cleaner_dedupe_buffer_size,
            io_bytes_per_second=broker_config.log_cleaner_io_max_bytes_per_second,
        )

    def _finish(self, partition: Partition, outcome: CompactionOutcome) -> None:
        self._clean_offsets[partition] = outcome.clean_offset
        log.info(
            "compacted",
            topic=partition.topic,
            partition=partition.index,
            clean_offset=outcome.clean_offset,
            bytes_before=outcome.bytes_read,
            bytes_after=outcome.bytes_written,
            records_before=outcome.records_read,
            records_after=outcome.records_kept,
            seconds=round(outcome.seconds, 2),
        )

    # cleaner-offset-checkpoint

    async def _read_checkpoint(self, directory: LogDirectory) -> None:
        offsets: Mapping[TopicPartition, int] = {}
        try:
            offsets = await self._files(directory).run(directory.cleaner_offsets.read)
        except (MalformedMessage, OSError) as problem:  # without it all logs count as dirty
            log.warning("checkpoint ignored", path=directory.cleaner_offsets.path, reason=problem)
        for (topic, index), offset in offsets.items():
            partition = self._table.find(topic, index)
            is_here = partition is not None and partition.directory is directory
            if partition is not None and is_here and offset <= partition.log.log_end_offset:
                self._clean_offsets[partition] = offset

    def _files(self, directory: LogDirectory) -> WorkerPool:
        return self._host.workers.for_directory(directory.path).files

    async def _checkpoint(self, directory: LogDirectory) -> None:
        """A log whose offset is not checkpointed is compacted again, which does no harm."""
        try:
            await self._save(directory)
        except OSError as problem:
            log.error("checkpoint could not be written", path=directory.cleaner_offsets.path, reason=problem)

    async def _save(self, directory: LogDirectory) -> None:
        if directory.failure is None:
            await self._checkpoint_writes.run(directory, functools.partial(self._write_checkpoint, directory))

    async def _write_checkpoint(self, directory: LogDirectory) -> None:
        offsets = {
            (partition.topic, partition.index): offset
            for partition, offset in self._clean_offsets.items()
            if partition.directory is directory
        }
        await self._files(directory).run(directory.cleaner_offsets.write, offsets)


class _Overtaken(Exception):
    """The segments changed after the work began."""


def _safe_offset(partition: Partition) -> int:
    """Compaction stops here. Records after it may belong to an open transaction, or be lost in a power failure: if such
    a record had replaced an older one of its key, the key's only value would be lost with it."""
    return min(partition.last_stable_offset, partition.log.recovery_point_offset)


def is_rolled(partition: Partition) -> bool:
    """Whether a compacted log has segments besides the active one, which is never compacted."""
    return partition.log.config.is_compacted and len(partition.log.segments) > 1
