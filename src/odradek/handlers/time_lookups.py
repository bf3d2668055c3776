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


LONGEST_WAIT_MS = 20_000.0
"""For the turns of all look-ups of a request: clients wait for 30 s by default, from the time at which they send it."""
SHARE_OF_TIMEOUT = 2 / 3  # for the same reason, where a request has a timeout
FREE_TURN_MS = 100.0  # for a turn that nobody has


def longest_wait_ms(timeout_ms: int) -> float:
    """0: the request has no timeout."""
    return min(LONGEST_WAIT_MS, timeout_ms * SHARE_OF_TIMEOUT) if timeout_ms > 0 else LONGEST_WAIT_MS


class TimeLookups:
    """Each connection has one request, and so one look-up that waits. One whose client disconnects does not wait any
    longer; one that has begun keeps its turn until the worker has finished."""

    def __init__(self) -> None:
        self._turns: dict[LogDirectory, WorkerTurns] = {}

    async def run(self, partition: Partition, search: Callable[[Pause], Found], deadline: float) -> Found | ErrorCode:
        """REQUEST_TIMED_OUT if the turn does not come before the deadline, by the time of the event loop, or the broker
        stops. A turn that is free is taken after the deadline too: other look-ups of the request may have waited in a
        directory that hangs."""
        directory, files = partition.directory, partition.workers.files
        turns = self._turns.get(directory)
        if turns is None:
            turns = self._turns[directory] = WorkerTurns(most_waiting=0)
        if turns.is_free:
            deadline = max(deadline, turns.deadline_after(FREE_TURN_MS))
        if not await turns.take(deadline):
            return ErrorCode.REQUEST_TIMED_OUT
        return await turns.run_taken(lambda: files.run(search, yield_to_event_loop))

    def close(self) -> None:
        """Before the logs are closed: no look-up begins after it."""
        for turns in self._turns.values():
            turns.close()
