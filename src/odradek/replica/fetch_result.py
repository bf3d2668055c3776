"""The result of reading one partition for one fetch, and how far a reader may read."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

from odradek.protocol.errors import ErrorCode
from odradek.protocol.sentinels import NO_EPOCH, NO_LEADER, NO_OFFSET

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odradek.host.slices import FileSlice
    from odradek.log.partition_log import PartitionLog
    from odradek.log.transaction_index import AbortedTransaction


class FetchIsolation(enum.Enum):
    """The kind of reader, which bounds what it may read."""

    LOG_END = "log end"  # followers
    HIGH_WATERMARK = "high watermark"  # consumers
    TRANSACTION_COMMITTED = "last stable offset"  # consumers with isolation.level=read_committed


READ_COMMITTED = 1  # the isolation level of a request


def client_isolation(isolation_level: int) -> FetchIsolation:
    is_committed_only = isolation_level == READ_COMMITTED
    return FetchIsolation.TRANSACTION_COMMITTED if is_committed_only else FetchIsolation.HIGH_WATERMARK


class FetchResult:
    """`aborted_transactions` are those that overlap the records, for a reader with read_committed. A follower that
    `is_throttled` gets no records, and others of its partitions end the wait of its fetch."""

    __slots__ = (
        "aborted_transactions",
        "diverging_end_offset",
        "diverging_epoch",
        "error",
        "high_watermark",
        "is_throttled",
        "last_stable_offset",
        "log_start_offset",
        "preferred_read_replica",
        "records",
    )

    def __init__(
        self,
        error: ErrorCode,
        high_watermark: int = NO_OFFSET,
        last_stable_offset: int = NO_OFFSET,
        log_start_offset: int = NO_OFFSET,
        records: FileSlice | None = None,
        aborted_transactions: Sequence[AbortedTransaction] = (),
    ) -> None:
        self.error = error
        self.high_watermark = high_watermark
        self.last_stable_offset = last_stable_offset
        self.log_start_offset = log_start_offset
        self.records = records
        self.aborted_transactions = aborted_transactions
        self.diverging_epoch = NO_EPOCH
        self.diverging_end_offset = NO_OFFSET
        self.preferred_read_replica = NO_LEADER
        self.is_throttled = False

    @property
    def is_answered_at_once(self) -> bool:
        """Whether a fetch with this result, and without records, must not wait for records."""
        return (
            self.error is not ErrorCode.NONE
            or self.diverging_epoch != NO_EPOCH
            or self.preferred_read_replica != NO_LEADER
        )


def find_divergence(
    log: PartitionLog, fetch_offset: int, last_fetched_epoch: int, high_watermark: int, last_stable_offset: int
) -> FetchResult | None:
    """KIP-595: the reader's log must be a prefix of this one; otherwise the result says where they diverge."""
    epoch, end_offset = log.epoch_end_offset(last_fetched_epoch)
    if epoch == NO_EPOCH:
        return FetchResult(ErrorCode.OFFSET_OUT_OF_RANGE)
    if epoch == last_fetched_epoch and end_offset >= fetch_offset:
        return None
    result = FetchResult(ErrorCode.NONE, high_watermark, last_stable_offset, log.log_start_offset)
    result.diverging_epoch = epoch
    result.diverging_end_offset = end_offset
    return result
