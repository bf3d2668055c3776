"""Changes of in-sync sets on their way to the controller (AlterPartition): collected, sent together, and repeated until
their outcome is known."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple, Protocol

from odradek.host.logs import get_logger
from odradek.protocol.errors import ErrorCode
from odradek.protocol.sentinels import NO_EPOCH

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID

    from odradek.host.clock import Clock, Timer
    from odradek.replica.followers import Followers

log = get_logger(__name__)

RETRY_AFTER_MS = 100.0
LONGEST_RETRY_AFTER_MS = 2_000.0
PROPOSALS_PER_REQUEST = 1_000


class InSyncProposal(NamedTuple):
    """`partition_epoch` is that of the metadata which the proposal changes; `in_sync_replicas` are the node id and the
    broker epoch of each member, the leader included (KIP-903)."""

    topic_id: UUID
    partition_index: int
    leader_epoch: int
    partition_epoch: int
    in_sync_replicas: tuple[tuple[int, int], ...]


class InSyncResult(NamedTuple):
    """The controller's answer to one proposal, with the partition as it is after it."""

    error: ErrorCode
    leader_epoch: int = NO_EPOCH
    partition_epoch: int = NO_EPOCH
    in_sync_replicas: tuple[int, ...] = ()


class InSyncChannel(Protocol):
    async def propose(self, proposals: Sequence[InSyncProposal]) -> list[InSyncResult]:
        """The results in the order of the proposals. Any exception means that the outcome is not known."""


class InSyncRequests:
    """One request at a time is on its way. Proposals that are made meanwhile go with the next one."""

    def __init__(self, channel: InSyncChannel, clock: Clock) -> None:
        self._channel = channel
        self._clock = clock
        self._waiting: dict[Followers, None] = {}
        self._sending: asyncio.Task[None] | None = None
        self._retry_timer: Timer | None = None
        self._retry_after_ms = RETRY_AFTER_MS
        self._is_stopped = False

    def add(self, followers: Followers) -> None:
        self._waiting[followers] = None
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
        for followers in taken:
            del self._waiting[followers]
        sent = [(each, proposal) for each in taken if (proposal := each.proposal()) is not None]
        if not sent:
            return
        results: Sequence[InSyncResult]
        try:
            results = await self._channel.propose([proposal for _, proposal in sent])
        except Exception as problem:
            log.warning("in-sync sets could not be changed; retrying", partitions=len(sent), reason=str(problem))
            results = [InSyncResult(ErrorCode.UNKNOWN_SERVER_ERROR)] * len(sent)
        unknown = [
            followers
            for (followers, proposal), result in zip(sent, results, strict=True)
            if not followers.resolve(proposal, result)
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
