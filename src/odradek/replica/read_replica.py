"""Which replica a consumer reads from (KIP-392): the leader decides, and names it in its answer. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable


class ReadableReplica(NamedTuple):
    """A follower that is in sync and has the offset that is fetched."""

    node_id: int
    rack: str | None
    log_end_offset: int
    caught_up_ms: float


def choose_read_replica(client_rack: str, leader_rack: str | None, followers: Iterable[ReadableReplica]) -> int | None:
    """The replica in the client's rack, as Kafka's RackAwareReplicaSelector; None for the leader. Of several followers
    it is the one with the longest log, then the one that was caught up last, then the one with the smallest id."""
    if not client_rack or client_rack == leader_rack:
        return None
    nearest = [each for each in followers if each.rack == client_rack]
    if not nearest:
        return None
    return max(nearest, key=lambda each: (each.log_end_offset, each.caught_up_ms, -each.node_id)).node_id
