"""The lag of a group in time: the age of the first record of each partition that the group has not read."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from odradek.admin.errors import NotAuthorized
from odradek.admin.records.fetched_batches import NO_TIMESTAMP, FetchedRecord, UnreadableBatch
from odradek.admin.records.record_fetcher import FetchSettings, RecordFetcher

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odradek.admin.cluster import Cluster
    from odradek.admin.groups import PartitionLag
    from odradek.admin.offsets import Key
    from odradek.conventions.failures import Failure

PATIENCE_S = 5.0  # to read the first unread record of each partition
# Small fetches: one record of each partition is enough. Lag counts the records of open transactions, so that their age
# counts, too. A partition that ends with the marker of a transaction has no record after it: its lag is zero.
SETTINGS = FetchSettings(
    32 * 1024 * 1024,
    max_wait_ms=50,
    partition_bytes=65_536,
    isolation_level="read_uncommitted",
    offset_reset="earliest",
)


def longest_time_lag(lags: Sequence[PartitionLag]) -> int | None:
    """None if it is not known of a partition that is behind: the first unread record there may be the oldest."""
    known = [each.time_lag_ms for each in lags if each.time_lag_ms is not None]
    return max(known) if known and not count_untimed(lags) else None


def count_untimed(lags: Sequence[PartitionLag]) -> int:
    """Partitions that are behind, or may be, and whose lag in time is not known."""
    return sum(1 for each in lags if each.time_lag_ms is None and (each.lag or each.failure))


def add_time_lags(cluster: Cluster, lags: Sequence[PartitionLag]) -> set[str]:
    """Set the time lag of each partition; zero if it has no unread record. Returns the topics that the user may not
    read. Their partitions, and those that do not answer in time, have no time lag."""
    behind = {(each.topic, each.partition): each for each in lags if each.lag}
    for each in lags:
        if each.lag == 0:
            each.time_lag_ms = 0
    denied: set[str] = set()
    if not behind:
        return denied

    def leave_out(key: Key, failure: Failure) -> None:
        behind.pop(key, None)
        if isinstance(failure, NotAuthorized):
            denied.add(key[0])

    def skip(unreadable: UnreadableBatch) -> None:
        """The age of the first unread record is not known."""
        key = unreadable.topic, unreadable.partition
        behind.pop(key, None)
        fetcher.remove([key])

    fetcher = RecordFetcher(cluster, SETTINGS, skip, leave_out)
    try:
        fetcher.assign((key, lag.committed_offset or 0) for key, lag in behind.items())
        deadline = time.monotonic() + PATIENCE_S
        while behind and time.monotonic() < deadline:
            for record in fetcher.poll(0.1):
                if (lag := behind.pop((record.topic(), record.partition()), None)) is not None:
                    _take(record, lag)
            for key in [each for each in behind if fetcher.is_at_end(each)]:
                behind.pop(key).time_lag_ms = 0
            fetcher.remove(each for each in fetcher.keys if each not in behind)
    finally:
        fetcher.close()
    return denied


def _take(record: FetchedRecord, lag: PartitionLag) -> None:
    kind, written_ms = record.timestamp()
    if kind != NO_TIMESTAMP:
        lag.time_lag_ms = max(int(time.time() * 1000) - written_ms, 0)
