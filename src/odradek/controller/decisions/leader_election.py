"""The election of a partition's leader. Pure.

A leader comes from the in-sync set, or from the eligible leader set when the in-sync set is empty (KIP-966), in the
order of the replicas. When both sets are empty, the last known leader is elected. Any other replica is elected only by
an unclean election, which may lose records that were acknowledged.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, NamedTuple

from odradek.protocol.sentinels import NO_LEADER

if TYPE_CHECKING:
    from collections.abc import Callable, Collection


class ElectionKind(enum.Enum):
    ONLINE = enum.auto()  # keep the leader if it can lead, otherwise elect one from the in-sync or the eligible set
    PREFERRED = enum.auto()  # as ONLINE, but the first replica replaces the leader if it is in sync
    UNCLEAN = enum.auto()  # as ONLINE, but any active replica may lead if no other can


class Candidates(NamedTuple):
    """The replicas in their order, and the sets that an election chooses from."""

    replicas: tuple[int, ...]
    in_sync: Collection[int]
    eligible: Collection[int]
    last_known_leader: int | None


class Election(NamedTuple):
    """`is_unclean` when the leader may lack acknowledged records."""

    leader: int
    is_unclean: bool = False


def elect(kind: ElectionKind, current_leader: int, candidates: Candidates, can_lead: Callable[[int], bool]) -> Election:
    replicas, in_sync, eligible, last_known_leader = candidates
    has_records = in_sync or eligible

    def is_clean(replica: int) -> bool:
        return replica in has_records and can_lead(replica)

    if kind is ElectionKind.PREFERRED and is_clean(replicas[0]):
        return Election(replicas[0])
    for replica in (current_leader, *replicas):
        if replica in replicas and is_clean(replica):
            return Election(replica)
    if not has_records and last_known_leader in replicas and can_lead(last_known_leader):
        return Election(last_known_leader, is_unclean=True)
    if kind is ElectionKind.UNCLEAN:
        for replica in replicas:
            if can_lead(replica):
                return Election(replica, is_unclean=True)
    return Election(NO_LEADER)
