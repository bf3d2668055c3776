"""Writes that share a batch: those that reach one shard in the same turn of the event loop.

The first such write of a turn is appended at once, so an idle broker adds no latency and a write that comes alone pays
for no queue. Further ones are collected, and appended as one batch at the end of the turn. Only writes whose decisions
commute may be collected: each must be right whichever of the others is appended before it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from odradek.host.logs import get_logger

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from odradek.coordinator.runtime.coordinator_record import CoordinatorRecord
    from odradek.protocol.errors import ErrorCode

log = get_logger(__name__)


class PendingWrite(NamedTuple):
    records: Sequence[CoordinatorRecord]
    replay: Callable[[], None]  # the same change of state as replaying the records one by one
    done: Callable[[ErrorCode], None]


class PendingWrites:
    """Writes of one shard that are decided and not appended."""

    def __init__(self) -> None:
        self._writes: list[PendingWrite] = []
        self._size_bytes = 0

    def __len__(self) -> int:
        return len(self._writes)

    def has_room(self, size_bytes: int, limit_bytes: int) -> bool:
        return self._size_bytes + size_bytes <= limit_bytes

    def add(self, write: PendingWrite, size_bytes: int) -> None:
        self._writes.append(write)
        self._size_bytes += size_bytes

    def take(self) -> Sequence[PendingWrite]:
        writes = self._writes
        if writes:
            self._writes, self._size_bytes = [], 0
        return writes


class HasPendingWrites(Protocol):
    """A shard that collects writes."""

    def append_pending(self) -> None: ...


class TurnOfWrites:
    """The present turn of the event loop: which shards have appended a shared write in it. One per event loop."""

    def __init__(self, call_soon: Callable[[Callable[[], None]], object]) -> None:
        self._call_soon = call_soon
        self._shards: dict[HasPendingWrites, None] = {}  # in the order of their first write
        self._deferred: list[Callable[[], None]] = []
        self._has_end = False  # of which the event loop knows

    def is_first(self, shard: HasPendingWrites) -> bool:
        """Whether this is the shard's first shared write in this turn."""
        shards = self._shards
        if shard in shards:
            return False
        shards[shard] = None
        if not self._has_end:
            self._schedule_end()
        return True

    def defer(self, work: Callable[[], None]) -> None:
        """Do this at the end of the turn, after the collected writes: when the requests that arrived together are
        answered, and before any request that follows from an answer is read."""
        self._deferred.append(work)
        if not self._has_end:
            self._schedule_end()

    def _schedule_end(self) -> None:
        self._has_end = True
        self._call_soon(self.end)

    def end(self) -> None:
        """Append the collected writes, and do the deferred work. Called by the event loop after the requests that
        arrived together. An exception of one shard is logged: the writes of the others must be appended and
        answered."""
        self._has_end = False  # what is written and deferred from here on belongs to the next turn
        shards, self._shards = self._shards, {}
        for shard in shards:
            try:
                shard.append_pending()
            except Exception as problem:
                log.error("collected coordinator writes could not be appended", exc_info=problem)
        deferred, self._deferred = self._deferred, []
        for work in deferred:
            try:
                work()
            except Exception as problem:
                log.error("the deferred work of a coordinator failed", exc_info=problem)
