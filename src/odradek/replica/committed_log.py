"""A log, whether it can be used, and how much of it is committed: its high watermark, its last stable offset, and the
requests and coordinators that wait for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.protocol.errors import ErrorCode
from odradek.replica.leadership import LogState
from odradek.replica.partition_transactions import PartitionTransactions
from odradek.replica.replica_watch import ReplicaWatches
from odradek.replica.waiting_requests import size_between

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.log.partition_log import PartitionLog
    from odradek.replica.waiting_requests import WaitingAcknowledgement, WaitingFetch


class CommittedLog:
    """The base of Partition, so that appends find everything in one object. Invariants: see `partition`."""

    __slots__ = (
        "_high_watermark_listeners",
        "high_watermark",
        "is_leader",
        "log",
        "log_state",
        "replica_watches",
        "transactions",
        "waiting_acknowledgements",
        "waiting_fetches",
    )

    def __init__(self, log: PartitionLog, log_state: LogState, high_watermark: int) -> None:
        """`high_watermark` is the checkpointed one, which the log's end may have fallen behind in a crash."""
        self.log = log
        self.log_state = log_state
        self.is_leader = False
        """Whether this broker leads the partition and its log is online: it may append and serve clients."""
        self.transactions = PartitionTransactions(self)
        self.high_watermark = min(max(high_watermark, log.log_start_offset), log.log_end_offset)
        log.producers.transactions.commit_before(self.high_watermark)
        self.replica_watches = ReplicaWatches()
        self.waiting_fetches: dict[WaitingFetch, None] = {}  # in the order of their arrival, as those below
        self.waiting_acknowledgements: dict[WaitingAcknowledgement, None] = {}
        self._high_watermark_listeners: list[Callable[[int], None]] = []

    @property
    def is_online(self) -> bool:
        return self.log_state is LogState.ONLINE

    @property
    def absence(self) -> ErrorCode:
        """Why a request that needs the leader is refused."""
        return ErrorCode.KAFKA_STORAGE_ERROR if self.log_state is LogState.FAILED else ErrorCode.NOT_LEADER_OR_FOLLOWER

    def advance_high_watermark(self, offset: int, new_bytes: int | None = None) -> None:
        """Commit the records before `offset` and wake all that wait for them; no effect if they are committed.

        `new_bytes` is the size of the newly committed records, if the caller knows it."""
        before = self.high_watermark
        if offset <= before:
            return
        assert offset <= self.log.log_end_offset, "the high watermark passed the log end"
        self.high_watermark = offset
        if self.log.producers.transactions.first_unstable_offset < offset:
            self.transactions.advance_last_stable_offset(before)
        elif self.waiting_fetches:
            size_bytes = size_between(self.log, before, offset) if new_bytes is None else new_bytes
            for fetch in tuple(self.waiting_fetches):
                fetch.count_down(size_bytes)
        if self.waiting_acknowledgements:
            self.check_acknowledgements()
        if self._high_watermark_listeners:
            for listener in tuple(self._high_watermark_listeners):
                listener(offset)

    def on_high_watermark(self, listener: Callable[[int], None]) -> Callable[[], None]:
        """Call the listener with each new high watermark, until the returned function is called."""
        self._high_watermark_listeners.append(listener)
        return lambda: self._high_watermark_listeners.remove(listener)

    @property
    def last_stable_offset(self) -> int:
        """The end of what a read_committed consumer may read: the first offset of the oldest transaction that is open
        or whose marker is not below the high watermark; else the high watermark."""
        return self.transactions.last_stable_offset_at(self.high_watermark)

    def check_acknowledgements(self) -> None:
        for each in tuple(self.waiting_acknowledgements):
            each.check()

    def wake_waiting_fetches(self) -> None:
        self.replica_watches.wake()
        for fetch in tuple(self.waiting_fetches):
            fetch.finish()
