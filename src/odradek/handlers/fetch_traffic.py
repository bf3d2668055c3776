"""Counts the bytes and records of fetch responses by topic.

The number of records in a slice of a segment file is not known without reading it. It is estimated: the bytes divided
by the mean size of a record in the partition. Reading a whole partition once gives the exact number, except in a
compacted log: its mean is that of offsets, of which some have no record, so the estimate is too high.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from odradek.handlers.fetch_sessions import FetchedPartition
    from odradek.metrics.topic_traffic import TopicTraffic
    from odradek.replica.fetch_result import FetchResult
    from odradek.replica.partition import Partition


def count_fetched(
    traffic: TopicTraffic,
    results: Iterable[tuple[FetchedPartition, Partition | None, FetchResult]],
    *,
    is_replica: bool,
) -> None:
    for _, partition, result in results:
        if partition is None or result.records is None:
            continue
        size_bytes = len(result.records)
        if is_replica:
            traffic.replication_bytes_out += size_bytes
            continue
        log = partition.log
        log_bytes = log.size_bytes
        records = size_bytes * (log.log_end_offset - log.log_start_offset) / log_bytes if log_bytes else 0.0
        traffic.fetched(partition.topic, size_bytes, records)
