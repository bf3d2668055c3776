"""Writes the markers that end a transaction, to each of its partitions, until all of them are committed.

On a broker that leads all the partitions, with one replica each, this needs no task: the markers are appended, and
committed, before `write` returns. Those of a transaction with many partitions are appended in slices, between which the
event loop serves other requests.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias, TypeVar

from odradek.host.logs import get_logger
from odradek.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Sequence

    from odradek.coordinator.transactions.transaction import TransactionVersion
    from odradek.host.clock import Clock
    from odradek.protocol.control_records import EndTransactionMarker
    from odradek.protocol.topic_partition import TopicPartition

log = get_logger(__name__)

T = TypeVar("T")

RETRY_AFTER_MS = 100.0
LONGEST_RETRY_AFTER_MS = 5_000.0
PARTITIONS_PER_SLICE = 100  # a few milliseconds

# The partition has taken the marker, or no marker can ever be written: the topic was deleted, or a later coordinator or
# producer of the transactional id has ended the transaction.
_SETTLED = frozenset(
    {
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.TRANSACTION_COORDINATOR_FENCED,
    }
)


Outcome: TypeAlias = "ErrorCode | Awaitable[ErrorCode]"


class PartitionMarkers(Protocol):
    """The partitions' leaders."""

    def append_marker(
        self,
        partition: TopicPartition,
        marker: EndTransactionMarker,
        version: TransactionVersion,
        *,
        is_repeated: bool,
    ) -> Outcome:
        """The outcome, at once or when the marker is committed. Those that are repeated must not hold up others: their
        partition may be slow."""


class _Job(NamedTuple):
    marker: EndTransactionMarker
    version: TransactionVersion
    is_wanted: Callable[[], bool]
    done: Callable[[], None]
    failed: Callable[[], None]


class MarkerWriter:
    def __init__(self, leaders: PartitionMarkers, clock: Clock, run: Callable[..., None]) -> None:
        """`run` starts a task that ends with the coordinator."""
        self._leaders = leaders
        self._clock = clock
        self._run = run

    def write(
        self,
        marker: EndTransactionMarker,
        version: TransactionVersion,
        partitions: Iterable[TopicPartition],
        *,
        is_wanted: Callable[[], bool],
        done: Callable[[], None],
        failed: Callable[[], None],
    ) -> None:
        """`done` is called once, when no partition is left; never if `is_wanted` becomes false first. After an
        exception in the background `failed` is called instead: then, and after one that is raised here, the markers
        must be written again."""
        job = _Job(marker, version, is_wanted, done, failed)
        in_order = sorted(partitions)
        if len(in_order) > PARTITIONS_PER_SLICE:
            self._run(self._supervise(job, self._write_all, in_order))
        elif waiting := self._append(job, in_order):
            self._run(self._supervise(job, self._finish, waiting))
        else:
            done()

    @staticmethod
    async def _supervise(job: _Job, write: Callable[[_Job, T], Awaitable[None]], partitions: T) -> None:
        try:
            await write(job, partitions)
        except Exception as problem:
            log.error("the markers of a transaction could not be written", id=job.marker.producer_id, exc_info=problem)
            if job.is_wanted():
                job.failed()

    def _append(
        self, job: _Job, partitions: Iterable[TopicPartition], *, is_repeated: bool = False
    ) -> dict[TopicPartition, Outcome]:
        """The partitions whose outcome is open, or an error that passes."""
        outcomes = {
            each: self._leaders.append_marker(each, job.marker, job.version, is_repeated=is_repeated)
            for each in partitions
        }
        return {each: outcome for each, outcome in outcomes.items() if not _is_settled(outcome)}

    async def _write_all(self, job: _Job, partitions: Sequence[TopicPartition]) -> None:
        waiting = await self._append_in_slices(job, partitions)
        if job.is_wanted():
            await self._finish(job, waiting)

    async def _append_in_slices(
        self, job: _Job, partitions: Sequence[TopicPartition], *, is_repeated: bool = False
    ) -> dict[TopicPartition, Outcome]:
        """The same as `_append`; it stops if the markers are not wanted any more."""
        waiting: dict[TopicPartition, Outcome] = {}
        for first in range(0, len(partitions), PARTITIONS_PER_SLICE):
            if first:
                await asyncio.sleep(0)
            if not job.is_wanted():
                break
            in_slice = partitions[first : first + PARTITIONS_PER_SLICE]
            waiting |= self._append(job, in_slice, is_repeated=is_repeated)
        return waiting

    async def _finish(self, job: _Job, waiting: dict[TopicPartition, Outcome]) -> None:
        delay_ms = RETRY_AFTER_MS
        while waiting:
            errors = dict(zip(waiting, await asyncio.gather(*map(_wait, waiting.values())), strict=True))
            failed = [partition for partition, error in errors.items() if not _is_settled(error)]
            if failed:
                log.debug("transaction markers are written again", partitions=len(failed), delay_ms=delay_ms)
                await self._pause(delay_ms)
                delay_ms = min(2 * delay_ms, LONGEST_RETRY_AFTER_MS)
            waiting = await self._append_in_slices(job, failed, is_repeated=True)
            if not job.is_wanted():
                return
        job.done()

    async def _pause(self, delay_ms: float) -> None:
        passed = asyncio.Event()
        timer = self._clock.call_after(delay_ms, passed.set)
        try:
            await passed.wait()
        finally:
            timer.cancel()


async def _wait(outcome: Outcome) -> ErrorCode:
    return outcome if isinstance(outcome, ErrorCode) else await outcome


def _is_settled(outcome: Outcome) -> bool:
    return isinstance(outcome, ErrorCode) and outcome in _SETTLED
