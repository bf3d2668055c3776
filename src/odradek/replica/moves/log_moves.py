"""Moves of replicas between the log directories of this broker (AlterReplicaLogDirs): the one owner of all of them.

A move has two parts. One task for each target directory copies the logs that are to be moved there, a chunk of each in
turn, at no more than `replica.alter.log.dirs.io.max.bytes.per.second`, until the copy replaces its log (`copying`).
Then the old copy is removed (`old_copy_removal`). Moves that a stop or a crash interrupts begin again from nothing at
the next start. A partition has one move at a time: the next one waits until the last one has ended."""

from __future__ import annotations

import asyncio
import functools
from typing import TYPE_CHECKING, Protocol

from odradek.host.disk import is_refusal
from odradek.host.logs import get_logger
from odradek.log.log_directory import is_future_name_too_long
from odradek.protocol.errors import ErrorCode
from odradek.replica.leadership import LogState
from odradek.replica.moves import copying, single_move
from odradek.replica.moves.old_copy_removal import OldCopyRemoval
from odradek.replica.offset_checkpoints import CheckpointRow
from odradek.replica.periodic_tasks import SingleTasks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from odradek.configuration.broker_configs import BrokerConfig
    from odradek.host.host import Host
    from odradek.host.workers import DirectoryWorkers
    from odradek.log.log_directory import LogDirectory
    from odradek.protocol.topic_partition import TopicPartition
    from odradek.replica.moves.copying import LogCopier
    from odradek.replica.moves.single_move import LogMove
    from odradek.replica.partition import Partition
    from odradek.replica.partition_removal import PartitionRemovals
    from odradek.replica.truncating import Truncations

log = get_logger(__name__)

RATE = "replica.alter.log.dirs.io.max.bytes.per.second"
PAUSE_S = 0.1
BUSY_STEPS = 64  # of a partition that gets many records, in one turn
MOST_PREFERRED = 10_000


class Table(Protocol):
    """The part of the partition table that is used here."""

    removals: PartitionRemovals
    truncations: Truncations[Partition]

    @property
    def directories(self) -> Sequence[LogDirectory]: ...

    def find(self, topic: str, index: int) -> Partition | None: ...

    def absence(self, topic: str, index: int) -> ErrorCode: ...

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
        self.old_copies = OldCopyRemoval(table, host)
        self._preferred: dict[TopicPartition, LogDirectory] = {}  # of partitions that are not on this broker
        self._is_stopped = False
        table.truncations.on_begin(self._note_truncation)

    def __iter__(self) -> Iterator[LogMove]:
        return iter(tuple(self._moves))

    @functools.cached_property
    def _copier(self) -> LogCopier:
        return copying.LogCopier(self._table, self._host, lambda: self._broker_config().dynamic_number(RATE))

    # Requests

    def request(self, topic: str, index: int, path: str) -> ErrorCode:
        """Move a replica to the log directory with this path; to its own, to cancel a move. The directory of a
        partition that is not on this broker is remembered for its creation; the answer is an error, as in Kafka."""
        target = next((each for each in self._table.directories if each.path == path), None)
        if is_future_name_too_long(topic, index):
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
            absence = self._table.absence(topic, index)
            return ErrorCode.REPLICA_NOT_AVAILABLE if absence is ErrorCode.NOT_LEADER_OR_FOLLOWER else absence
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

    def take_chosen_directory(self, key: TopicPartition) -> LogDirectory | None:
        """The log directory that was chosen for a partition before it existed."""
        directory = self._preferred.pop(key, None)
        return None if directory is None or directory.failure is not None else directory

    def resume(self, futures: Mapping[LogDirectory, Mapping[TopicPartition, str]]) -> None:
        """Begin the moves again that the last run has not completed, one for each partition, with empty copies: they
        take the names of those of the last run, so that another crash does not end the moves."""
        for target, paths in futures.items():
            for (topic, index), path in paths.items():
                partition = self._table.find(topic, index)
                is_movable = partition is not None and partition.is_online and partition.directory is not target
                if partition is not None and is_movable and partition.move is None:
                    self._begin(partition, target, path)
                else:
                    self._table.removals.remove_renamed(target, [path])

    def _begin(self, partition: Partition, target: LogDirectory, path: str) -> None:
        move = partition.move = single_move.LogMove(partition, target, path)
        self._moves[move] = None
        self._tasks.begin(target, functools.partial(self._copy_all, target), "moves to a log directory")
        log.info(
            "a replica is moved", topic=partition.topic, partition=partition.index, source=move.source.path,
            target=target.path,
        )  # fmt: skip

    def _note_truncation(self, partition: Partition, offset: int) -> None:
        for move in self._moves:
            if move.partition is partition and move.is_copying:
                move.note_truncation(offset)

    # Checkpoints

    def targets_of(self, partition: Partition) -> list[LogDirectory]:
        """The log directories whose checkpoints may name the partition because of a copy."""
        return [each.target for each in self._moves if each.partition is partition]

    def rows(self, directory: LogDirectory) -> list[CheckpointRow]:
        """The checkpoint rows of the copies in a log directory: new copies, and old ones that are not removed. Copies
        of deleted partitions have no row."""
        rows = []
        for move in self._moves:
            if move.is_removed or move.partition.log_state is LogState.RETIRED:
                continue
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
                    has_progressed |= await self._take_turn(move)
                except Exception as problem:
                    await self._give_up(move, problem)
            if not has_progressed:
                await asyncio.sleep(PAUSE_S)

    async def _take_turn(self, move: LogMove) -> bool:
        """One step of a move, or several if its exchange has failed: the log of a busy partition must not grow by
        more than was copied while others have their turns. Whether anything was done."""
        for number in range(1 if move.failed_exchanges == 0 else BUSY_STEPS):
            if not await self._advance(move):
                return number > 0
            if self._is_stopped or not move.is_copying or move.ended.is_set():
                break
        return True

    async def _advance(self, move: LogMove) -> bool:
        partition = move.partition
        if move.is_cancelled or not partition.is_online or move.target.failure is not None:
            await self._discard(move)
            return True
        if partition.follower_log.is_truncating:
            return False
        if move.copy is None:
            return await self._open(move)
        has_progressed = await self._copier.advance(move, move.copy)
        if not move.is_copying:
            self._table.count_move(move.source, move.target)
            self._tasks.begin(move, functools.partial(self._finish, move), "removal of the old copy of a replica")
            log.info("a replica was moved", source=move.source.path, copy=move.new_path)
        return has_progressed

    async def _open(self, move: LogMove) -> bool:
        """False while an earlier move of the partition has not ended: it is cancelled, or removes the old copy."""
        earlier = [each for each in self._moves if each is not move and each.partition is move.partition]
        for each in earlier:
            each.remove_now.set()
        if not earlier:
            await self._copier.open(move)
        return not earlier

    async def _finish(self, move: LogMove) -> None:
        try:
            await self.old_copies.run(move)
        finally:
            self._moves.pop(move, None)
            move.ended.set()

    # Ending

    async def _give_up(self, move: LogMove, problem: Exception) -> None:
        is_known = isinstance(problem, OSError | single_move.MoveFailed)
        if not (
            move.is_cancelled and isinstance(problem, single_move.MoveFailed)
        ):  # files of removed partitions may be gone
            log.error(
                "a replica could not be moved", topic=move.partition.topic, partition=move.partition.index,
                target=move.target.path, reason=problem, exc_info=None if is_known else problem,
            )  # fmt: skip
        if isinstance(problem, OSError) and not is_refusal(problem):
            self._table.fail_directory(move.target, problem)
        await self._discard(move)

    async def _discard(self, move: LogMove) -> None:
        if move.partition.move is move:
            move.partition.move = None
        if move.copy is not None:
            move.copy.release()
        try:
            if move.target.failure is None:
                await self._workers(move.target).files.run(single_move.remove_if_present, move.path, self._host)
        except OSError as problem:
            log.error("an incomplete copy stays until the next start", path=move.path, reason=problem)
        finally:
            self._moves.pop(move, None)
        try:
            await self._table.checkpoint([move.target])  # without the copy
        except OSError as problem:
            log.error("checkpoints could not be written", path=move.target.path, reason=problem)
        finally:
            move.ended.set()

    async def forget(self, partitions: Sequence[Partition]) -> None:
        """The partitions are removed. Moves whose copy is in use end first; others are cancelled, and end when the disk
        of their target lets them."""
        for move in [each for each in self._moves if each.partition in partitions]:
            move.is_cancelled = True
            move.remove_now.set()
            if not move.is_copying:
                await move.ended.wait()

    async def stop(self) -> None:
        """Nothing of a move touches a file after this returns. Moves that are not complete begin again later."""
        self._is_stopped = True
        self.old_copies.stop()
        for move in tuple(self._moves):
            move.remove_now.set()
        await self._tasks.settle()
        for move in self._moves:
            move.ended.set()
            if move.copy is not None:
                move.copy.release()
        self._moves.clear()  # the last checkpoint has no incomplete copies

    def _workers(self, directory: LogDirectory) -> DirectoryWorkers:
        return self._host.workers.for_directory(directory.path)
