"""Changes of in-sync sets on their way to the controller (AlterPartition): collected, sent together, and repeated until
their outcome is known."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING

from odradek.controller.decisions.in_sync_sets import InSyncResult
from odradek.host.logs import get_logger
from odradek.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odradek.controller.decisions.in_sync_sets import InSyncProposal
    from odradek.host.clock import Clock, Timer
    from odradek.replica.replication_context import InSyncChannel, Proposer

log = get_logger(__name__)

RETRY_AFTER_MS = 100.0
LONGEST_RETRY_AFTER_MS = 2_000.0
PROPOSALS_PER_REQUEST = 1_000


class InSyncRequests:
    """One request at a time is on its way. Proposals that are made during a request go with the next one."""

    def __init__(self, channel: InSyncChannel, clock: Clock) -> None:
        self._channel = channel
        self._clock = clock
        self._waiting: dict[Proposer, None] = {}
        self._sending: asyncio.Task[None] | None = None
        self._retry_timer: Timer | None = None
        self._retry_after_ms = RETRY_AFTER_MS
        self._is_stopped = False

    def add(self, proposer: Proposer) -> None:
        self._waiting[proposer] = None
        self._begin()

    def stop(self) -> None:
        self._is_stopped = True
        if self._retry_timer is not None:
            self._retry_timer.cancel()
        if self._sending is not None:
            self._sending.cancel()

    def _begin(self) -> None:
        if self._waiting and self._sending is None and self._retry_timer is None and not self._is_stopped:
            self._sending = asyncio.ensure_future(self._send())
            self._sending.add_done_callback(self._sent)

    async def _send(self) -> None:
        taken = list(self._waiting)[:PROPOSALS_PER_REQUEST]
        for proposer in taken:
            del self._waiting[proposer]
        sent = [(each, proposal) for each in taken if (proposal := each.proposal()) is not None]
        if not sent:
            return
        results: Sequence[InSyncResult]
        try:
            results = await self._channel.propose([proposal for _, proposal in sent])
        except Exception as problem:
            log.warning("in-sync sets could not be changed; retrying", partitions=len(sent), reason=problem)
            results = [InSyncResult(ErrorCode.UNKNOWN_SERVER_ERROR)] * len(sent)
        refusals = Counter(result.error.name for result in results if result.error is not ErrorCode.NONE)
        if refusals:
            log.info("changes of in-sync sets were refused", **refusals)
        unknown = [
            proposer
            for (proposer, proposal), result in zip(sent, results, strict=True)
            if not _resolve(proposer, proposal, result)
        ]
        self._waiting |= dict.fromkeys(unknown)
        if unknown and not self._is_stopped:
            self._retry_timer = self._clock.call_after(self._retry_after_ms, self._retry)
            self._retry_after_ms = min(2 * self._retry_after_ms, LONGEST_RETRY_AFTER_MS)
        else:
            self._retry_after_ms = RETRY_AFTER_MS

    def _sent(self, sending: asyncio.Task[None]) -> None:
        self._sending = None
        if not sending.cancelled() and (problem := sending.exception()) is not None:
            log.error("a change of in-sync sets failed", exc_info=problem)
        self._begin()

    def _retry(self) -> None:
        self._retry_timer = None
        self._begin()


def _resolve(proposer: Proposer, proposal: InSyncProposal, result: InSyncResult) -> bool:
    """A defect that shows in one partition leaves its proposal to be repeated, and the others are resolved."""
    try:
        return proposer.resolve(proposal, result)
    except Exception as problem:
        log.error("the answer to a change of an in-sync set could not be applied; retrying", exc_info=problem)
        return False
