"""Rules of the in-sync set. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def committed_offset(leader_end_offset: int, in_sync_follower_end_offsets: Iterable[int]) -> int:
    """What every in-sync replica has: the high watermark. A leader alone commits what it appends."""
    return min((leader_end_offset, *in_sync_follower_end_offsets))


def has_enough_replicas(in_sync_count: int, min_insync_replicas: int, replica_count: int) -> bool:
    """Whether acks=all may be taken at all. A partition is never asked for more replicas than it was given: a topic
    with one replica on a broker with `min.insync.replicas=2` works, as in Kafka."""
    return in_sync_count >= min_insync_replicas or in_sync_count >= replica_count
