"""Reading one partition for one fetch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.log.aborted_transactions import read_committed
from odradek.protocol.errors import ErrorCode
from odradek.protocol.sentinels import NO_EPOCH
from odradek.replica.fetch_result import FetchIsolation, FetchResult, find_divergence
from odradek.replica.leadership import Leadership

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odradek.log.transaction_index import AbortedTransaction
    from odradek.replica.partition import Partition

# Looking up an attribute of an enum takes longer than comparing with it.
_NONE = ErrorCode.NONE
_HIGH_WATERMARK = FetchIsolation.HIGH_WATERMARK
_TRANSACTION_COMMITTED = FetchIsolation.TRANSACTION_COMMITTED


def fetch_from(
    partition: Partition,
    fetch_offset: int,
    max_bytes: int,
    *,
    current_leader_epoch: int,
    last_fetched_epoch: int,
    whole_first_batch: bool,
    isolation: FetchIsolation = _HIGH_WATERMARK,
) -> FetchResult:
    """Records from an offset on, as a slice of the segment file."""
    log = partition.log
    high_watermark = last_stable_offset = partition.high_watermark
    if log.producers.transactions.first_unstable_offset < high_watermark:
        last_stable_offset = partition.transactions.last_stable_offset_at(high_watermark)
    if isolation is _HIGH_WATERMARK:
        end_offset = high_watermark
    else:
        end_offset = last_stable_offset if isolation is _TRANSACTION_COMMITTED else log.log_end_offset
    if fetch_offset == end_offset and partition.is_leader:  # a reader at the tail, most often
        epoch = partition.leader_epoch
        if current_leader_epoch in (NO_EPOCH, epoch) and last_fetched_epoch in (NO_EPOCH, epoch):
            return FetchResult(_NONE, high_watermark, last_stable_offset, log.log_start_offset)
    error = partition.check_epoch(current_leader_epoch)
    if error is not _NONE:
        return FetchResult(error)
    if last_fetched_epoch not in (NO_EPOCH, partition.leader_epoch):
        diverged = find_divergence(log, fetch_offset, last_fetched_epoch, high_watermark, last_stable_offset)
        if diverged is not None:
            return diverged
    aborted: Sequence[AbortedTransaction] = ()
    if isolation is _TRANSACTION_COMMITTED:
        records, aborted = read_committed(log, fetch_offset, max_bytes, end_offset, whole_first_batch=whole_first_batch)
    else:
        records = log.read(fetch_offset, max_bytes, end_offset, whole_first_batch=whole_first_batch)
    if isinstance(records, ErrorCode):
        return FetchResult(records)
    return FetchResult(_NONE, high_watermark, last_stable_offset, log.log_start_offset, records, aborted)


def end_offset_for(partition: Partition, isolation: FetchIsolation) -> int:
    """The end of what this kind of reader may read."""
    if isolation is FetchIsolation.LOG_END:
        return partition.log.log_end_offset
    if isolation is _TRANSACTION_COMMITTED:
        return partition.last_stable_offset
    return partition.high_watermark


def needs_disk(partition: Partition, fetch_offset: int, isolation: FetchIsolation = _HIGH_WATERMARK) -> bool:
    """Whether a fetch from this offset would read files to find its position. A refused fetch reads none, and neither
    does one from the end of what may be read."""
    return (
        (partition.is_leader or partition.leadership is Leadership.FOLLOWER)
        and fetch_offset != partition.high_watermark
        and partition.log.needs_disk(fetch_offset)
        and (isolation is not _TRANSACTION_COMMITTED or fetch_offset < partition.last_stable_offset)
    )
