"""What follows the exchange of a move: the new copy is made durable and the old one is removed, after
`file.delete.delay.ms`, because readers may have begun in it. If a disk fails, the next start does it."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

from odradek.host.disk import is_refusal
from odradek.host.logs import get_logger
from odradek.replica.flushing import LogRetired
from odradek.replica.moves import single_move
from odradek.replica.moves.markers import id_of_usable, mark_new_copy, mark_old_copy, unmark_new_copy

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from odradek.host.host import Host
    from odradek.host.workers import WorkerPool
    from odradek.log.log_directory import LogDirectory
    from odradek.replica.moves.single_move import LogMove
    from odradek.replica.partition import Partition
    from odradek.replica.partition_removal import PartitionRemovals

log = get_logger(__name__)

RETRY_S = 1.0  # between flushes that a full disk refuses


class Table(Protocol):
    """The part of the partition table that is used here."""

    removals: PartitionRemovals

    async def checkpoint(self, directories: Iterable[LogDirectory] | None = None) -> None: ...


class OldCopyRemoval:
    def __init__(self, table: Table, host: Host) -> None:
        self._table = table
        self._host = host
        self._stopping = asyncio.Event()
        self.after_move: Callable[[Partition, LogDirectory], Awaitable[None]] | None = None
        """Awaited with the partition and its former log directory when the old copy is gone."""

    def stop(self) -> None:
        """Removals that wait for a full disk end without effect; others end without a delay."""
        self._stopping.set()

    async def run(self, move: LogMove) -> None:
        """Makes the new copy of a move durable and removes the old one."""
        try:
            await self._make_durable_and_remove(move)
        except Exception as problem:
            log.error("the old copy of a moved replica stays until the next start", reason=repr(problem))
            await self._release(move)

    async def _make_durable_and_remove(self, move: LogMove) -> None:
        is_durable = await self._flush(move)
        if is_durable:
            await self._mark(move)
            await self._delay(move)
        await self._release(move)
        if is_durable:
            await self._remove(move)
        else:
            log.warning("the old copy of a moved replica stays until the next start", path=move.old_path)

    async def _flush(self, move: LogMove) -> bool:
        """Make the new copy durable, its name included. A full disk may refuse that: the flush is tried again until the
        disk has room. False if the broker stops first."""
        has_warned = False
        while True:
            try:
                await move.partition.flusher.flush()
            except LogRetired:  # the partition is removed
                return True
            except OSError as problem:
                if move.target.failure is not None or not is_refusal(problem):
                    raise
                if not has_warned:
                    log.warning("a moved replica is not durable", path=move.new_path, reason=problem)
                has_warned = True
            else:
                return True
            if move.is_cancelled:  # the partition is removed
                return True
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), RETRY_S)
            if self._stopping.is_set():
                return False

    async def _mark(self, move: LogMove) -> None:
        """Both copies, so that a start uses the new one. A full disk may have no room for a marker: then a start
        compares the copies, and an old copy without a marker is renamed without a delay."""
        await self._write_marker(move.target, _mark_new_copy, move)
        if move.source.failure is None and not await self._write_marker(move.source, _mark_old_copy, move):
            move.remove_now.set()

    async def _write_marker(
        self, directory: LogDirectory, write: Callable[[LogMove, Host], None], move: LogMove
    ) -> bool:
        try:
            await self._files(directory).run(write, move, self._host)
        except OSError as problem:
            if not is_refusal(problem):
                raise
            return False
        return True

    async def _delay(self, move: LogMove) -> None:
        assert move.old_log is not None
        if not self._stopping.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(move.remove_now.wait(), move.old_log.config.file_delete_delay_ms / 1000)

    async def _release(self, move: LogMove) -> None:
        assert move.old_log is not None
        assert move.old_flusher is not None
        await move.old_flusher.retire()
        move.old_log.release()

    async def _remove(self, move: LogMove) -> None:
        if move.source.failure is not None:
            return
        renamed = await self._files(move.source).run(single_move.rename_old_copy, move, self._host)
        move.is_removed = True
        self._table.removals.remove_renamed(move.source, [renamed])
        try:
            await self._files(move.target).run(unmark_new_copy, move.new_path, self._host)
            await self._table.checkpoint([move.source, move.target])
        except OSError as problem:  # the next checkpoint, and the next start, have the same effect
            log.error("the end of a move could not be recorded", path=move.new_path, reason=problem)
        if self.after_move is not None:
            await self.after_move(move.partition, move.source)

    def _files(self, directory: LogDirectory) -> WorkerPool:
        return self._host.workers.for_directory(directory.path).files


def _mark_new_copy(move: LogMove, host: Host) -> None:
    """Everything that the old copy has is durable in the new one."""
    mark_new_copy(move.new_path, id_of_usable(move.source), host, is_complete=True)


def _mark_old_copy(move: LogMove, host: Host) -> None:
    mark_old_copy(move.old_path, id_of_usable(move.target), host)
