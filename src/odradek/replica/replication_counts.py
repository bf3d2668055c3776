"""Counters of a broker's replication, for its metrics."""

from __future__ import annotations


class ReplicationCounts:
    """`bytes_in` are record batches that this broker fetched as a follower; the changes are those of in-sync sets of
    partitions that it leads."""

    __slots__ = ("bytes_in", "in_sync_expands", "in_sync_shrinks")

    def __init__(self) -> None:
        self.bytes_in = 0
        self.in_sync_expands = 0
        self.in_sync_shrinks = 0
