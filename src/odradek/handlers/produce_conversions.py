"""Batches of Produce requests whose records must be read, and that are too large for that on the event loop.

They are converted on a worker, one batch at a time, and appended on the event loop after that. Requests take turns with
their batches. The connection handles no further request in between, and a partition that a request names again waits as
well, so that the order is kept. A batch is appended even if the client closes its connection while it waits: a client
with acks=0 waits for nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from odradek.host.worker_turns import WorkerTurns
from odradek.host.workers import yield_to_event_loop
from odradek.log.append_result import CONVERT_FIRST, AppendResult
from odradek.log.batch_conversion import NOT_CONVERTED, Conversion, convert_on_worker
from odradek.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from odradek.host.receive_budget import ReceiveBudget
    from odradek.host.workers import WorkerPool
    from odradek.log.transaction_verification import VerificationGuard
    from odradek.protocol.messages.produce import PartitionProduceResponse
    from odradek.replica.partition import Partition

MOST_WAITING_REQUESTS = 64
"""Before each batch of a request, at most one batch of each other request is converted."""
MOST_WAITING_CHECKS = 2_000
"""The same where the batches are only decompressed, which takes a few milliseconds at most."""
MOST_WAITING_BYTES = 16 << 20
"""Limits the copies of waiting batches, without the one that is converted. One batch of any size may wait."""
ENTRY_BYTES = 1 << 10  # of memory, about, for a waiting batch besides its copy
SHORTEST_WAIT_MS = 1_000  # for clients that send a timeout of 0 because acks=1 does not use it


class DeferredAppend(NamedTuple):
    partition: Partition
    records: memoryview
    """A copy: the memory of the request is used again."""
    guard: VerificationGuard | None
    response: PartitionProduceResponse
    """Filled in when the batch was appended."""


class ProduceConversions:
    __slots__ = ("_receive_budget", "_turns", "_waiting_bytes", "_workers")

    def __init__(self, workers: WorkerPool, receive_budget: ReceiveBudget) -> None:
        self._workers = workers
        self._receive_budget = receive_budget
        self._turns = WorkerTurns(MOST_WAITING_CHECKS)
        self._waiting_bytes = 0

    def has_room(self, batch_bytes: int, request_bytes: int, *, is_decompressed_only: bool) -> bool:
        """Whether a batch may wait, besides those of other requests and `request_bytes` of its own request."""
        if not is_decompressed_only and self._turns.count > MOST_WAITING_REQUESTS:
            return False
        waiting_bytes = self._waiting_bytes + request_bytes
        is_alone = waiting_bytes == 0
        return not self._turns.are_full and (
            is_alone or waiting_bytes + batch_bytes + ENTRY_BYTES <= MOST_WAITING_BYTES
        )

    def append(
        self,
        deferred: Sequence[DeferredAppend],
        timeout_ms: int,
        append: Callable[[DeferredAppend, Conversion], AppendResult | None],
        finish: Callable[[DeferredAppend, AppendResult | None], None],
    ) -> Awaitable[None]:
        """Appends all batches, in their order, whether or not the result is awaited; REQUEST_TIMED_OUT for those whose
        turn does not come in time. `append` returns None if the disk failed."""
        deadline = self._turns.deadline_after(max(timeout_ms, SHORTEST_WAIT_MS))
        waiting_bytes = sum(memory_of(each) for each in deferred)
        copied_bytes = sum(len(each.records) for each in deferred)
        self._waiting_bytes += waiting_bytes
        self._receive_budget.keep_copy(copied_bytes)

        async def work() -> None:
            nonlocal waiting_bytes
            try:
                await append_in_turn()
            finally:
                self._waiting_bytes -= waiting_bytes
                self._receive_budget.drop_copy(copied_bytes)

        async def append_in_turn() -> None:
            nonlocal waiting_bytes
            for each in deferred:
                has_turn = await self._turns.take(deadline)
                waiting_bytes -= memory_of(each)
                self._waiting_bytes -= memory_of(each)
                if not has_turn:
                    finish(each, AppendResult(ErrorCode.REQUEST_TIMED_OUT))
                    continue
                try:
                    finish(each, await self._append_one(each, append))
                finally:
                    self._turns.end()

        return self._turns.start(work)

    async def _append_one(
        self, each: DeferredAppend, append: Callable[[DeferredAppend, Conversion], AppendResult | None]
    ) -> AppendResult | None:
        """The configuration of the topic may change while the worker converts: then it converts the batch again."""
        result = append(each, NOT_CONVERTED)
        while result is CONVERT_FIRST:
            config = each.partition.log.config
            conversion = await self._workers.run(convert_on_worker, each.records, config, yield_to_event_loop)
            result = append(each, conversion)
        return result

    def close(self) -> None:
        """Before the logs are closed: nothing is appended after it."""
        self._turns.close()


def memory_of(deferred: DeferredAppend) -> int:
    return len(deferred.records) + ENTRY_BYTES
