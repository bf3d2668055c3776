"""The lag of groups: in total for their trends, and as sums with the partitions that a page lists.

A group may have committed offsets in all partitions of a cluster: objects are made for the listed ones only.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from heapq import nlargest
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from odradek.admin.groups import NO_LEADER, PartitionLag, list_groups, read_committed_offsets_of, unread_records
from odradek.admin.offsets import LATEST, read_offsets_of
from odradek.admin.time_lag import longest_time_lag
from odradek.conventions.failures import Failure

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from odradek.admin.broker_requests import BrokerRequests
    from odradek.admin.cluster_state import ClusterState, PartitionState
    from odradek.admin.groups import GroupMember
    from odradek.admin.offsets import Key

MOST_LISTED = 500  # partitions
NO_END = "end not known"


@dataclass(frozen=True, slots=True)
class LagSummary:
    partitions: int = 0
    lag: int | None = None  # of the partitions whose end is known
    unknown: int = 0  # partitions whose end is not known
    behind: int = 0  # partitions with unread records
    listed: Sequence[PartitionLag] = ()  # all, or those that need attention: with an unknown end, then the largest lags
    read_at_s: float | None = None  # by the monotonic clock, if it was read before the page was requested

    @property
    def untimed(self) -> int:
        """Partitions that are behind, or may be, for an unknown time."""
        timed = sum(1 for each in self.listed if each.time_lag_ms is not None and each.lag)
        return self.behind + self.unknown - timed

    @property
    def time_lag_ms(self) -> int | None:
        """The longest of all partitions, if it is known of all that are behind."""
        return None if self.untimed else longest_time_lag(self.listed)

    def with_owners(self, members: Sequence[GroupMember]) -> LagSummary:
        """The same lags, in objects of its own, with the members that have the partitions."""
        owners = {key: member for member in members for key in member.assignment}
        rows = [replace(each, member=owners.get((each.topic, each.partition))) for each in self.listed]
        return replace(self, listed=rows)


def summarize_lags(
    committed: Mapping[Key, int | None],
    ends: Mapping[Key, int],
    failures: Mapping[Key, str],
    read_at_s: float | None = None,
) -> LagSummary:
    """`failures` say why the ends of some of these partitions are not known; partitions that do not exist have neither
    an end nor a failure."""
    lags = {
        key: end - offset if end > offset else 0
        for key, offset in committed.items()
        if offset is not None and (end := ends.get(key)) is not None
    }
    if len(committed) <= MOST_LISTED:
        listed = sorted(committed)
    else:
        listed = list(islice(failures, MOST_LISTED))
        listed += nlargest(MOST_LISTED - len(listed), lags, key=lags.__getitem__)
    return LagSummary(
        len(committed),
        sum(lags.values()) if lags else None,
        len(failures),
        sum(map(bool, lags.values())),
        [PartitionLag(*key, committed[key], ends.get(key), failure=failures.get(key, "")) for key in listed],
        read_at_s,
    )


class WideGroups:
    """The lags of groups with more partitions than a page lists, of the last time that the watch has read them.
    The caller holds a lock."""

    def __init__(self) -> None:
        self._found: Mapping[str, LagSummary] = {}
        self._changed: set[str] = set()  # groups whose offsets were changed since the reading began

    def get(self, name: str) -> LagSummary | None:
        return None if name in self._changed else self._found.get(name)

    def begin_reading(self) -> None:
        self._found = {name: each for name, each in self._found.items() if name not in self._changed}
        self._changed.clear()

    def end_reading(self, found: Mapping[str, LagSummary]) -> None:
        self._found = found

    def forget(self, name: str) -> None:
        """The offsets of the group were changed: a reading that has begun may have the old ones."""
        self._changed.add(name)


class GroupLags(NamedTuple):
    totals: dict[str, int]  # records that groups have not read; without groups with a partition whose end is not known
    wide: dict[str, LagSummary]  # of groups with more partitions than a page lists


def read_group_lags(requests: BrokerRequests, state: ClusterState, limit: int) -> GroupLags:
    """The lags of the first `limit` groups that have committed offsets."""
    try:
        names = [each.name for each in list_groups(requests)[0]][:limit]
    except Failure:
        return GroupLags({}, {})  # a cluster may refuse to list groups, and answer the rest
    read_at_s = time.monotonic()
    committed = read_committed_offsets_of(requests, names)
    wanted = {key for offsets in committed.values() for key in offsets}
    partitions = [each for each in state.partitions if (each.topic, each.index) in wanted]
    # Read after the committed offsets: older ends would hide what was written since.
    ends = read_offsets_of(requests, state.brokers, partitions, LATEST)
    existing = {(each.topic, each.index) for each in partitions}
    lags = {name: unread_records(offsets, ends, existing) for name, offsets in committed.items() if offsets}
    totals = {name: lag for name, lag in lags.items() if lag is not None}
    failures = failures_of(partitions, ends)
    wide = {
        name: summarize_lags(offsets, ends, {key: failures[key] for key in failures if key in offsets}, read_at_s)
        for name, offsets in committed.items()
        if len(offsets) > MOST_LISTED
    }
    return GroupLags(totals, wide)


def failures_of(partitions: Iterable[PartitionState], ends: Mapping[Key, int]) -> dict[Key, str]:
    """Why the ends of some of these partitions are not known."""
    return {
        (each.topic, each.index): NO_LEADER if each.is_offline else NO_END
        for each in partitions
        if (each.topic, each.index) not in ends
    }
