"""Requests that wait for the high watermark: fetches (long polls) and produce requests with acks=all.

Both are woken by `Partition.advance_high_watermark`, by a partition that stops leading, and by their timeout.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol

from odradek.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from odradek.host.clock import Clock
    from odradek.log.partition_log import PartitionLog


class FetchedPartition(Protocol):
    @property
    def waiting_fetches(self) -> dict[WaitingFetch, None]: ...


class AcknowledgingPartition(Protocol):
    @property
    def waiting_acknowledgements(self) -> dict[WaitingAcknowledgement, None]: ...

    def acknowledgement(self, required_offset: int) -> ErrorCode | None:
        """The answer to an append; None while it must wait for the high watermark."""


class WaitingFetch:
    """One long poll over several partitions. Each advance of a high watermark counts down the missing bytes; for a
    reader with read_committed (`is_committed_only`), each advance of a last stable offset. The fetch of a follower has
    no partitions here: a `ReplicaWatch` counts down.

    It is registered when it is constructed: its task starts later, and records that are committed in between count.
    """

    __slots__ = ("_future", "_missing_bytes", "_on_end", "_partitions", "_timer", "is_committed_only")

    def __init__(
        self,
        partitions: Sequence[FetchedPartition],
        missing_bytes: int,
        timeout_ms: int,
        clock: Clock,
        *,
        is_committed_only: bool = False,
        on_end: Callable[[], None] | None = None,
    ) -> None:
        """`on_end` is called when the wait ends in any way, also if it was never awaited."""
        self.is_committed_only = is_committed_only
        self._on_end = on_end
        self._partitions = partitions
        self._missing_bytes = missing_bytes
        self._future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._timer = clock.call_after(timeout_ms, self.finish)
        for partition in partitions:
            partition.waiting_fetches[self] = None

    def count_down(self, size_bytes: int | None) -> None:
        """Records of this size were committed; None when the size is unknown, which ends the wait."""
        if size_bytes is not None:
            self._missing_bytes -= size_bytes
        if size_bytes is None or self._missing_bytes <= 0:
            self.finish()

    def finish(self) -> None:
        """Wake the request. It runs in a later turn of the event loop, so producers are answered first."""
        if not self._future.done():
            self._future.set_result(None)
        self._unregister()

    async def wait(self) -> None:
        """Return when `finish` was called, or after the timeout."""
        try:
            await self._future
        except asyncio.CancelledError:
            self._unregister()
            raise

    def _unregister(self) -> None:
        self._timer.cancel()
        for partition in self._partitions:
            partition.waiting_fetches.pop(self, None)
        if self._on_end is not None:
            self._on_end()


def size_between(log: PartitionLog, start_offset: int, end_offset: int) -> int | None:
    """The bytes of these records; None when finding it would read files, or their file cannot be opened."""
    if log.needs_disk(start_offset):
        return None
    try:
        records = log.read(start_offset, 1 << 62, end_offset, whole_first_batch=True)
    except OSError:  # the fetches that are woken report it
        return None
    return None if records is None or isinstance(records, ErrorCode) else len(records)


class WaitingAcknowledgement:
    """One append of a produce request with acks=all, until the high watermark reaches `required_offset`."""

    __slots__ = ("_partition", "_request", "error", "required_offset")

    def __init__(self, partition: AcknowledgingPartition, required_offset: int, request: WaitingProduce) -> None:
        self._partition = partition
        self._request = request
        self.required_offset = required_offset
        self.error: ErrorCode | None = None  # None while it waits
        partition.waiting_acknowledgements[self] = None

    def check(self) -> None:
        """Finish if the partition can be answered for."""
        error = self._partition.acknowledgement(self.required_offset)
        if error is not None:
            self.finish(error)

    def finish(self, error: ErrorCode) -> None:
        if self.error is None:
            self.error = error
            self._partition.waiting_acknowledgements.pop(self, None)
            self._request.one_finished()

    def fail(self, problem: BaseException) -> None:
        """The flush that it waits for failed. An exception that is no OSError is a bug, and raised in the request."""
        if isinstance(problem, OSError):
            self.finish(ErrorCode.KAFKA_STORAGE_ERROR)
        else:
            self._request.fail(problem)

    def unregister(self) -> None:
        self._partition.waiting_acknowledgements.pop(self, None)


class WaitingProduce:
    """The answer to one produce request with acks=all: it waits for all its partitions, with one timeout."""

    __slots__ = ("_acknowledgements", "_future", "_pending_count", "_timer")

    def __init__(self, appends: Iterable[tuple[AcknowledgingPartition, int]], timeout_ms: float, clock: Clock) -> None:
        """`appends`: partitions, and the offset that the high watermark of each must reach."""
        self._future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._timer = clock.call_after(timeout_ms, self._time_out)
        self._acknowledgements = [WaitingAcknowledgement(partition, offset, self) for partition, offset in appends]
        self._pending_count = len(self._acknowledgements)
        for each in self._acknowledgements:
            each.check()  # the high watermark may have moved since the append

    async def wait(self) -> list[ErrorCode]:
        """The outcome of each append, in their order; REQUEST_TIMED_OUT where the timeout came first."""
        try:
            await self._future
        finally:
            self._timer.cancel()
            for each in self._acknowledgements:
                each.unregister()
        return [each.error or ErrorCode.NONE for each in self._acknowledgements]

    def one_finished(self) -> None:
        self._pending_count -= 1
        if self._pending_count == 0 and not self._future.done():
            self._future.set_result(None)

    def fail(self, problem: BaseException) -> None:
        if not self._future.done():
            self._future.set_exception(problem)

    def _time_out(self) -> None:
        for each in self._acknowledgements:
            each.finish(ErrorCode.REQUEST_TIMED_OUT)
