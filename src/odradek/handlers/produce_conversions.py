"""Batches of Produce requests whose records must be read, and that are too large for that on the event loop.

They are converted on a worker, one request at a time, and appended on the event loop after that. The connection handles
no further request in between, and a partition that a request names again waits as well, so that the order is kept. A
batch is appended even if the client closes its connection while it waits: a client with acks=0 waits for nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from odradek.host.worker_turns import WorkerTurns
from odradek.host.workers import yield_to_event_loop
from odradek.log.append_result import CONVERT_FIRST
from odradek.log.batch_conversion import NOT_CONVERTED, Conversion, convert_on_worker

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from odradek.host.workers import WorkerPool
    from odradek.log.append_result import AppendResult
    from odradek.log.transaction_verification import VerificationGuard
    from odradek.protocol.messages.produce import PartitionProduceResponse
    from odradek.replica.partition import Partition

MOST_WAITING_REQUESTS = 64
"""Each keeps a copy of its batches. Batches of further requests are converted on the event loop."""


class DeferredAppend(NamedTuple):
    partition: Partition
    records: memoryview
    """A copy: the memory of the request is used again."""
    guard: VerificationGuard | None
    response: PartitionProduceResponse
    """Filled in when the batch was appended."""


class ProduceConversions:
    __slots__ = ("_turns", "_workers")

    def __init__(self, workers: WorkerPool) -> None:
        self._workers = workers
        self._turns = WorkerTurns(MOST_WAITING_REQUESTS)

    @property
    def are_full(self) -> bool:
        return self._turns.are_full

    def append(
        self,
        deferred: list[DeferredAppend],
        append: Callable[[DeferredAppend, Conversion], AppendResult | None],
        finish: Callable[[DeferredAppend, AppendResult | None], None],
    ) -> Awaitable[None]:
        """Appends all batches, in their order, whether or not the result is awaited. `append` returns None if the disk
        failed."""

        async def work() -> None:
            for each in deferred:
                finish(each, await self._append_one(each, append))

        return self._turns.run(work)

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
