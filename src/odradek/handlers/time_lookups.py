"""Look-ups by time, which read and decompress a batch on a worker: one at a time in each log directory, so that their
memory is bounded and cold fetches of the directory do not queue behind them."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from odradek.host.worker_turns import WorkerTurns
from odradek.host.workers import yield_to_event_loop
from odradek.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.log.log_directory import LogDirectory
    from odradek.log.timestamp_search import TimestampOffset
    from odradek.protocol.records import Pause
    from odradek.replica.partition import Partition

Found = TypeVar("Found", bound="TimestampOffset | None")


LONGEST_WAIT_MS = 30_000
"""For the turn of a look-up: clients wait as long for an answer by default."""


class TimeLookups:
    """Each connection has one request, and so one look-up that waits. One whose client disconnects does not wait any
    longer; one that has begun keeps its turn until the worker has finished."""

    def __init__(self) -> None:
        self._turns: dict[LogDirectory, WorkerTurns] = {}

    async def run(self, partition: Partition, search: Callable[[Pause], Found]) -> Found | ErrorCode:
        """REQUEST_TIMED_OUT if the turn does not come in time, or the broker stops."""
        directory, files = partition.directory, partition.workers.files
        turns = self._turns.get(directory)
        if turns is None:
            turns = self._turns[directory] = WorkerTurns(most_waiting=0)
        if not await turns.take(turns.deadline_after(LONGEST_WAIT_MS)):
            return ErrorCode.REQUEST_TIMED_OUT
        return await turns.run_taken(lambda: files.run(search, yield_to_event_loop))

    def close(self) -> None:
        """Before the logs are closed: no look-up begins after it."""
        for turns in self._turns.values():
            turns.close()
