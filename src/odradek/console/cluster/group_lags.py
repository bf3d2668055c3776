"""The total lag of each group, for its trend, and the lags of groups with many partitions, for their pages."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

from odradek.admin.groups import NO_LEADER, list_groups, read_committed_offsets_of, unread_records
from odradek.admin.offsets import LATEST, read_offsets_of
from odradek.console.cluster.lag_summary import MOST_LISTED, LagSummary, summarize_lags
from odradek.conventions.failures import Failure

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from odradek.admin.broker_requests import BrokerRequests
    from odradek.admin.cluster_state import ClusterState, PartitionState
    from odradek.admin.offsets import Key

NO_END = "end not known"


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
        name: summarize_lags(offsets, ends, _of_group(failures, offsets), read_at_s)
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


def _of_group(failures: Mapping[Key, str], committed: Mapping[Key, int]) -> dict[Key, str]:
    return {key: failure for key, failure in failures.items() if key in committed}
