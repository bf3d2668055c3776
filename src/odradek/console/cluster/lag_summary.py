"""The lag of a group as sums, and the partitions that a page lists. Pure.

A group may have committed offsets in all partitions of a cluster: objects are made for the listed ones only.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from heapq import nlargest
from itertools import islice
from typing import TYPE_CHECKING

from odradek.admin.groups import PartitionLag
from odradek.admin.time_lag import longest_time_lag

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from odradek.admin.groups import GroupMember
    from odradek.admin.offsets import Key

MOST_LISTED = 500  # partitions


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
