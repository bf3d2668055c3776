"""Moves of replicas between the log directories of this broker (AlterReplicaLogDirs): the one owner of all of them.

A move has two parts. One task for each target directory copies the logs that are to be moved there, a chunk of each in
turn, at no more than `replica.alter.log.dirs.io.max.bytes.per.second`; a copy that has caught up replaces its log on
the event loop, without an await, so that no append comes between. Then the old copy is removed, after
`file.delete.delay.ms`, because readers may have begun in it. Moves that a stop or a crash interrupts are continued by
the next start."""

from __future__ import annotations

import asyncio
import functools
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

from odradek.host.disk import is_refusal
from odradek.host.logs import get_logger
from odradek.log.log_directory import future_name_length
from odradek.protocol.errors import ErrorCode
from odradek.replica.flushing import LogRetired
from odradek.replica.log_move import (
    LogMove,
    append_chunk,
    open_copy,
    range_of,
    read_chunk,
    remove_old_copy,
    write_marker,
)
from odradek.replica.move_rules import StepKind
from odradek.replica.offset_checkpoints import CheckpointRow
from odradek.replica.periodic_tasks import SingleTasks
from odradek.replica.replication_throttle import ReplicationThrottle

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence

    from odradek.configuration.broker_configs import BrokerConfig
    from odradek.host.host import Host
    from odradek.host.workers import DirectoryWorkers
    from odradek.log.log_directory import LogDirectory
    from odradek.log.partition_log import PartitionLog
    from odradek.protocol.topic_partition import TopicPartition
    from odradek.replica.log_opening import PendingLog
    from odradek.replica.partition import Partition

log = get_logger(__name__)

RATE = "replica.alter.log.dirs.io.max.bytes.per.second"
LARGEST_NAME_BYTES = 255
CHUNK_BYTES = 1 << 20
PAUSE_S = 0.1
MOST_PREFERRED = 10_000


class Table(Protocol):
    """What is used of the partition table."""

    @property
    def directories(self) -> Sequence[LogDirectory]: ...

    def find(self, topic: str, index: int) -> Partition | None: ...

    def fail_directory(self, directory: LogDirectory, problem: OSError) -> None: ...

    def count_move(self, source: LogDirectory, target: LogDirectory) -> None: ...

    async def checkpoint(self, directories: Iterable[LogDirectory] | None = None) -> None: ...


class LogMoves:
    def __init__(self, table: Table, host: Host, broker_config: Callable[[], BrokerConfig]) -> None:
        self._table = table
        self._host = host
        self._moves: dict[LogMove, None] = {}
        self._tasks = SingleTasks()
        self._broker_config = broker_config
        self._throttle = ReplicationThrottle(self._rate, host.clock.monotonic_ms)
        self._preferred: dict[TopicPartition, LogDirectory] = {}  # of partitions that are not on this broker
        self._is_stopped = False
        self.after_move: Callable[[Partition, LogDirectory], Awaitable[None]] | None = None
        """Awaited with the partition and its former log directory when the old copy is gone."""

    def __iter__(self) -> Iterator[LogMove]:
        return iter(tuple(self._moves))

    # Requests

    def request(self, topic: str, index: int, path: str) -> ErrorCode:
        """Move a replica to the log directory with this path; to its own, to cancel a move. The directory of a
        partition that is not on this broker is remembered for its creation: REPLICA_NOT_AVAILABLE, as in Kafka."""
        target = next((each for each in self._table.directories if each.path == path), None)
        if future_name_length(topic, index) > LARGEST_NAME_BYTES:
            return ErrorCode.INVALID_TOPIC_EXCEPTION
        if target is None:
            return ErrorCode.LOG_DIR_NOT_FOUND
        partition = self._table.find(topic, index)
        if target.failure is not None or (partition is not None and not partition.is_online):
            return ErrorCode.KAFKA_STORAGE_ERROR
        if partition is None:
            self._preferred.pop((topic, index), None)
            self._preferred[topic, index] = target
            if len(self._preferred) > MOST_PREFERRED:
                del self._preferred[next(iter(self._preferred))]
            return ErrorCode.REPLICA_NOT_AVAILABLE
        if partition.move is not None and partition.move.target is target:
            return ErrorCode.NONE
        if partition.move is not None:
            partition.move.is_cancelled = True
            partition.move = None
        if partition.directory is target:
            return ErrorCode.NONE
        # A second copy could be in a log directory that cannot be read.
        if any(each.failure is not None for each in self._table.directories):
            return ErrorCode.KAFKA_STORAGE_ERROR
        self._begin(partition, target, target.new_future_directory(topic, index))
        return ErrorCode.NONE

    def place(self, pending: Sequence[PendingLog]) -> list[PendingLog]:
        """New partitions, in the log directories that were chosen for them."""
        return [self._placed(each) for each in pending]

    def _placed(self, pending: PendingLog) -> PendingLog:
        directory = self._preferred.pop(pending.key, None)
        return pending if directory is None or directory.failure is not None else pending._replace(directory=directory)

    def resume(self, futures: Mapping[LogDirectory, Mapping[TopicPartition, str]]) -> None:
        """Continue the moves of the last run. Nothing was appended since the logs were opened: what a copy has after
        the end of its log is not of the log."""
        for target, paths in futures.items():
            for (topic, index), path in paths.items():
                partition = self._table.find(topic, index)
                if partition is not None and partition.is_online and partition.directory is not target:
                    move = self._begin(partition, target, path)
                    move.note_truncation(partition.log.log_end_offset)

    def _begin(self, partition: Partition, target: LogDirectory, path: str) -> LogMove:
        move = partition.move = LogMove(partition, target, path)
        self._moves[move] = None
        self._tasks.begin(target, functools.partial(self._copy_all, target), "moves to a log directory")
        log.info(
            "a replica is moved", topic=partition.topic, partition=partition.index, source=move.source.path,
            target=target.path,
        )  # fmt: skip
        return move

    # Checkpoints

    def rows(self, directory: LogDirectory) -> list[CheckpointRow]:
        """Of the copies in a log directory: those that are made, and old ones that are not removed."""
        rows = []
        for move in self._moves:
            copy = move.copy if move.is_copying else move.old_log
            if copy is not None and directory is (move.target if move.is_copying else move.source):
                high_watermark = min(move.partition.high_watermark, copy.log_end_offset)
                key = (move.partition.topic, move.partition.index)
                rows.append(CheckpointRow(key, copy.recovery_point_offset, copy.log_start_offset, high_watermark))
        return rows

    # Copying

    async def _copy_all(self, target: LogDirectory) -> None:
        while not self._is_stopped:
            moves = [each for each in self._moves if each.target is target and each.is_copying]
            if not moves:
                return
            has_progressed = False
            for move in moves:
                try:
                    has_progressed |= await self._advance(move)
                except OSError as problem:
                    await self._give_up(move, problem)
            if not has_progressed:
                await asyncio.sleep(PAUSE_S)

    async def _advance(self, move: LogMove) -> bool:
        """One step of a move; whether anything was done."""
        partition = move.partition
        if move.is_cancelled or not partition.is_online or move.target.failure is not None:
            await self._discard(move)
            return True
        if partition.follower_log.is_truncating:
            return False
        if move.copy is None:
            await self._open(move)
            return True
        step, files = move.step(move.copy), self._workers(move.target).files
        if step.kind is StepKind.TRUNCATE:
            move.is_prepared, move.truncated_to = False, None
            await files.run(move.copy.truncate_to, step.offset)
            return True
        move.truncated_to = None
        if step.kind is StepKind.RESTART:
            await files.run(move.copy.truncate_fully_and_start_at, step.offset)
            return True
        if step.kind is StepKind.ADVANCE_START:
            move.copy.advance_log_start_offset(step.offset)
            return True
        if self._throttle.is_exceeded:
            return False
        if move.is_prepared and self._exchange(move, move.copy):
            return True
        if step.kind is StepKind.EXCHANGE:
            await self._prepare(move, move.copy)
            return True
        return await self._copy(move, move.copy, step.offset)

    async def _open(self, move: LogMove) -> None:
        for other in tuple(self._moves):
            if other is not move and other.partition is move.partition:
                if other.is_copying:
                    return  # it is cancelled, and ends in its turn
                other.hurry.set()
                await other.ended.wait()
        files = self._workers(move.target).files
        known = await files.run(move.target.recovery_points.read)
        recovery_point = known.get((move.partition.topic, move.partition.index), 0)
        move.copy = await files.run(open_copy, move, self._host, recovery_point)

    async def _copy(self, move: LogMove, copy: PartitionLog, offset: int) -> bool:
        partition, truncation_count = move.partition, move.truncation_count
        source, log_range = partition.log, range_of(partition.log)
        if copy.config is not source.config:
            copy.configure(source.config)
        chunk = await partition.workers.files.run(read_chunk, source, offset, self._chunk_bytes())
        if not isinstance(chunk, bytes) or not chunk or move.truncation_count != truncation_count:
            return False
        move.is_prepared = move.is_prepared and copy.log_end_offset >= log_range.start_offset
        self._throttle.record(await self._workers(move.target).files.run(append_chunk, copy, log_range, chunk))
        return True

    def _rate(self) -> float | None:
        return self._broker_config().dynamic_number(RATE)

    def _chunk_bytes(self) -> int:
        rate = self._rate()
        return CHUNK_BYTES if rate is None else max(1, min(CHUNK_BYTES, int(rate)))

    async def _prepare(self, move: LogMove, copy: PartitionLog) -> None:
        """Before the exchange, so that a crash after it costs no long recovery, and no log start goes back."""
        workers = self._workers(move.target)
        await workers.flushes.run(copy.flush)
        await workers.files.run(write_marker, move, self._host)
        await self._table.checkpoint([move.target])
        move.is_prepared = True

    # The exchange

    def _exchange(self, move: LogMove, copy: PartitionLog) -> bool:
        """Copy the few records that are missing, and replace the log. False when more is missing, or not in memory."""
        partition, path = move.partition, move.target.partition_directory(move.partition.topic, move.partition.index)
        source = partition.log
        if move.truncated_to is not None or source.is_truncating or not self._copy_tail(copy, source):
            return False
        copy.configure(source.config)
        copy.advance_log_start_offset(source.log_start_offset)
        self._host.disk.rename(move.path, path)
        try:
            copy.replace_log(source, path)
        except OSError:
            with suppress(OSError):
                self._host.disk.rename(path, move.path)
            raise
        move.old_log, move.old_flusher = source, partition.flusher
        partition.exchange_log(copy, move.target, self._workers(move.target))
        partition.move = None
        self._table.count_move(move.source, move.target)
        self._tasks.begin(move, functools.partial(self._finish, move), "removal of the old copy of a replica")
        log.info(
            "a replica was moved", topic=partition.topic, partition=partition.index, source=move.source.path,
            target=move.target.path,
        )  # fmt: skip
        return True

    def _copy_tail(self, copy: PartitionLog, source: PartitionLog) -> bool:
        left = self._chunk_bytes()
        while copy.log_end_offset < source.log_end_offset:
            if copy.log_end_offset < source.log_start_offset or source.needs_disk(copy.log_end_offset) or left <= 0:
                return False
            chunk = read_chunk(source, copy.log_end_offset, left)
            if not isinstance(chunk, bytes):
                return False
            copied = append_chunk(copy, range_of(source), chunk)
            self._throttle.record(copied)
            left -= max(copied, 1)
        return True

    async def _finish(self, move: LogMove) -> None:
        """Remove the old copy. If a disk fails, the next start does it."""
        partition, old_log, old_flusher = move.partition, move.old_log, move.old_flusher
        assert old_log is not None
        assert old_flusher is not None
        try:
            with suppress(LogRetired):
                await partition.flusher.flush()  # makes the new name durable
            if not self._is_stopped:
                with suppress(TimeoutError):
                    await asyncio.wait_for(move.hurry.wait(), old_log.config.file_delete_delay_ms / 1000)
            await old_flusher.retire()
            old_log.release()
            if move.source.failure is None:
                files = self._workers(move.source).files
                renamed = await files.run(remove_old_copy, move, self._host)
                del self._moves[move]
                await self._table.checkpoint([move.source, move.target])
                if self.after_move is not None:
                    await self.after_move(partition, move.source)
                await files.run(self._host.disk.remove_tree, renamed)
        except Exception as problem:
            log.error("the old copy of a moved replica stays until the next start", reason=repr(problem))
        finally:
            self._moves.pop(move, None)
            move.ended.set()

    # Ending

    async def _give_up(self, move: LogMove, problem: OSError) -> None:
        log.error(
            "a replica could not be moved", topic=move.partition.topic, partition=move.partition.index,
            target=move.target.path, reason=str(problem),
        )  # fmt: skip
        if not is_refusal(problem) and problem.errno is not None:
            self._table.fail_directory(move.target, problem)
        await self._discard(move)

    async def _discard(self, move: LogMove) -> None:
        if move.partition.move is move:
            move.partition.move = None
        if move.copy is not None:
            move.copy.release()
        if move.target.failure is None:
            try:
                await self._workers(move.target).files.run(_remove_if_present, self._host, move.path)
            except OSError as problem:
                log.error("an incomplete copy stays", path=move.path, reason=str(problem))
        self._moves.pop(move, None)
        move.ended.set()

    async def forget(self, partitions: Sequence[Partition]) -> None:
        """The partitions are removed: their copies go first."""
        for move in [each for each in self._moves if each.partition in partitions]:
            move.is_cancelled = True
            move.hurry.set()
            await move.ended.wait()

    async def stop(self) -> None:
        """Nothing of a move touches a file after this returns. Copies that are not complete are continued later."""
        self._is_stopped = True
        for move in tuple(self._moves):
            move.hurry.set()
        await self._tasks.settle()
        for move in self._moves:
            move.ended.set()
            if move.copy is not None:
                with suppress(OSError):
                    await self._workers(move.target).flushes.run(move.copy.flush)
                move.copy.release()

    def _workers(self, directory: LogDirectory) -> DirectoryWorkers:
        return self._host.workers.for_directory(directory.path)


def _remove_if_present(host: Host, path: str) -> None:
    if host.disk.exists(path):
        host.disk.remove_tree(path)
