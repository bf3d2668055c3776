"""Brings the copy of a replica that is moved up to its log, one step at a time, and exchanges the two.

The exchange copies the last records and replaces the log on the event loop, without an await, so that no append comes
between. If so many records arrive that the copy falls behind, or that exchanges fail, an exchange may hold the event
loop for longer, so that a busy partition cannot delay its move for ever."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple, Protocol

from odradek.replica.moves.markers import id_of_usable, mark_new_copy
from odradek.replica.moves.rules import StepKind
from odradek.replica.moves.single_move import append_chunk, batch_for_gap, open_copy, range_of, read_chunk
from odradek.replica.replication_throttle import ReplicationThrottle

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from odradek.host.host import Host
    from odradek.host.workers import DirectoryWorkers
    from odradek.log.log_directory import LogDirectory
    from odradek.log.partition_log import PartitionLog
    from odradek.replica.moves.single_move import LogMove

CHUNK_BYTES = 1 << 20
PATIENT_EXCHANGES = 8  # that may fail before the event loop is held for longer
HOLD_MS = 50
HELD_CHUNK_BYTES = 1 << 18  # the time is looked at after each


class Table(Protocol):
    """The part of the partition table that is used here."""

    async def checkpoint(self, directories: Iterable[LogDirectory] | None = None) -> None: ...


class TailLimit(NamedTuple):
    """How much one exchange may copy on the event loop."""

    size_bytes: float
    chunk_bytes: int
    end_ms: float  # of the monotonic clock
    may_need_disk: bool


class LogCopier:
    def __init__(self, table: Table, host: Host, rate: Callable[[], float | None]) -> None:
        """`rate` is in bytes per second, for all moves together; None for no limit."""
        self._table = table
        self._host = host
        self._rate = rate
        self._throttle = ReplicationThrottle(rate, host.clock.monotonic_ms)

    async def open(self, move: LogMove) -> None:
        move.copy = await self._workers(move.target).files.run(open_copy, move, self._host)

    async def advance(self, move: LogMove, copy: PartitionLog) -> bool:
        """One step of a move; whether anything was done. A move that is not copying any more was exchanged."""
        step, files = move.step(copy), self._workers(move.target).files
        if step.kind is StepKind.TRUNCATE:
            move.is_prepared, move.truncated_to = False, None
            await files.run(copy.truncate_to, step.offset)
            return True
        move.truncated_to = None
        if step.kind is StepKind.RESTART:
            move.is_prepared = False
            await files.run(copy.truncate_fully_and_start_at, step.offset)
            return True
        if step.kind is StepKind.ADVANCE_START:
            copy.advance_log_start_offset(step.offset)
            if move.is_prepared:  # a crash after the exchange must not undo the deletion
                await self._table.checkpoint([move.target])
            return True
        if self._throttle.is_exceeded:
            return False
        if move.is_prepared:
            if self._exchange(move, copy):
                return True
            move.failed_exchanges += 1
            step = move.step(copy)  # the exchange may have copied a part
        is_close = move.catch_up.is_near or move.catch_up.falls_behind
        if step.kind is StepKind.EXCHANGE or (is_close and not move.is_prepared):
            await self._prepare(move, copy)
            return True
        return await self._copy(move, copy, step.offset)

    async def _copy(self, move: LogMove, copy: PartitionLog, offset: int) -> bool:
        partition, truncation_count = move.partition, move.truncation_count
        source, log_range = partition.log, range_of(partition.log)
        if copy.config is not source.config:
            copy.configure(source.config)
        chunk: bytes | bytearray | None
        chunk = await partition.workers.files.run(read_chunk, source, offset, self._chunk_bytes())
        if move.truncation_count != truncation_count:
            return False
        if chunk is None:
            chunk = batch_for_gap(source, offset, log_range.end_offset)
        if not chunk:
            return False
        move.is_prepared = move.is_prepared and copy.log_end_offset >= log_range.start_offset
        self._throttle.record(await self._workers(move.target).files.run(append_chunk, copy, log_range, chunk))
        move.catch_up.note_chunk(copy.log_end_offset, log_range.end_offset, source.log_end_offset)
        return True

    def _chunk_bytes(self) -> int:
        rate = self._rate()
        return CHUNK_BYTES if rate is None else max(1, min(CHUNK_BYTES, int(rate)))

    async def _prepare(self, move: LogMove, copy: PartitionLog) -> None:
        """Before the exchange, so that a crash after it costs no long recovery, and no log start goes back."""
        workers = self._workers(move.target)
        await workers.flushes.run(copy.flush)
        await workers.files.run(_mark, move, self._host)
        await self._table.checkpoint([move.target])
        move.is_prepared = True

    # The exchange

    def _exchange(self, move: LogMove, copy: PartitionLog) -> bool:
        """Copy the few records that are missing, and replace the log. False when more is missing, or not in memory, or
        records were deleted since the copy was prepared."""
        partition, path, source = move.partition, move.new_path, move.partition.log
        if move.truncated_to is not None or source.is_truncating or copy.log_start_offset != source.log_start_offset:
            return False
        if not self._copy_tail(copy, source, self._tail_limit(move)):
            return False
        copy.configure(source.config)
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
        return True

    def _tail_limit(self, move: LogMove) -> TailLimit:
        now_ms, rate = self._host.clock.monotonic_ms(), self._rate()
        if move.failed_exchanges < PATIENT_EXCHANGES and not move.catch_up.falls_behind:
            chunk_bytes = self._chunk_bytes()
            return TailLimit(chunk_bytes, chunk_bytes, now_ms + HOLD_MS, may_need_disk=False)
        # What is missing was written a moment ago: the operating system has it in memory.
        size_bytes = float("inf") if rate is None else rate
        return TailLimit(size_bytes, min(HELD_CHUNK_BYTES, self._chunk_bytes()), now_ms + HOLD_MS, may_need_disk=True)

    def _copy_tail(self, copy: PartitionLog, source: PartitionLog, limit: TailLimit) -> bool:
        left_bytes = limit.size_bytes
        while copy.log_end_offset < source.log_end_offset:
            if copy.log_end_offset < source.log_start_offset or left_bytes <= 0:
                return False
            if self._host.clock.monotonic_ms() >= limit.end_ms:
                return False
            if source.needs_disk(copy.log_end_offset) and not limit.may_need_disk:
                return False
            chunk = read_chunk(source, copy.log_end_offset, limit.chunk_bytes)
            if not chunk:
                return False
            copied = append_chunk(copy, range_of(source), chunk)
            self._throttle.record(copied)
            left_bytes -= max(copied, 1)
        return True

    def _workers(self, directory: LogDirectory) -> DirectoryWorkers:
        return self._host.workers.for_directory(directory.path)


def _mark(move: LogMove, host: Host) -> None:
    """After a crash, the marker says which of the two copies is newer."""
    mark_new_copy(move.path, id_of_usable(move.source), host, is_complete=False)
