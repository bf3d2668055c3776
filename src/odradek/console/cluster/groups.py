"""Consumer groups: listed, described with their lag, reset and deleted, by the requests of `odradek group`.

A group may have committed offsets in all partitions of a cluster: objects are made for the listed ones only.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import field
from heapq import nlargest
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from odradek.admin import groups
from odradek.admin.errors import NotAuthorized
from odradek.admin.offsets import LATEST, Key, read_offsets_of
from odradek.admin.resets import Goal, Move, choose_partitions, committed_offsets, plan_moves
from odradek.conventions.dataclass import dataclass
from odradek.conventions.failures import Failure

if TYPE_CHECKING:
    from odradek.admin.broker_requests import BrokerRequests
    from odradek.admin.cluster import Cluster
    from odradek.admin.cluster_state import ClusterState, PartitionState
    from odradek.console.cluster.snapshot import Snapshot

MOST_LISTED = 500  # partitions
NO_END = "end not known"


class LagSummary(NamedTuple):
    partitions: int = 0
    lag: int | None = None  # of the partitions whose end is known
    unknown: int = 0  # partitions whose end is not known
    behind: int = 0  # partitions with unread records
    # All, or those that need attention: with an unknown end, then the largest lags.
    listed: Sequence[groups.PartitionLag] = ()

    @property
    def untimed(self) -> int:
        """Partitions that are behind, or may be, for an unknown time."""
        timed = sum(1 for each in self.listed if each.time_lag_ms is not None and each.lag)
        return self.behind + self.unknown - timed

    @property
    def time_lag_ms(self) -> int | None:
        """The longest of all partitions, if it is known of all that are behind."""
        return None if self.untimed else groups.longest_time_lag(self.listed)


def summarize_lags(
    committed: Mapping[Key, int | None], ends: Mapping[Key, int], failures: Mapping[Key, str]
) -> LagSummary:
    """`failures` say why ends are not known; partitions that do not exist have neither an end nor a failure."""
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
    total, behind = sum(lags.values()) if lags else None, sum(map(bool, lags.values()))
    rows = [groups.PartitionLag(*key, committed[key], ends.get(key), failure=failures.get(key, "")) for key in listed]
    return LagSummary(len(committed), total, len(failures), behind, rows)


def read_group_lags(requests: BrokerRequests, state: ClusterState, limit: int) -> dict[str, int]:
    """Unread records of the first `limit` groups with committed offsets, as far as all ends are known."""
    try:
        names = [each.name for each in groups.list_groups(requests)[0]][:limit]
    except Failure:
        return {}  # a cluster may refuse to list groups, and answer the rest
    committed = groups.read_committed_offsets_of(requests, names)
    wanted = {key for offsets in committed.values() for key in offsets}
    partitions = [each for each in state.partitions if (each.topic, each.index) in wanted]
    # Read after the committed offsets: older ends would hide what was written since.
    ends = read_offsets_of(requests, state.brokers, partitions, LATEST)
    existing = {(each.topic, each.index) for each in partitions}
    lags = {name: groups.unread_records(offsets, ends, existing) for name, offsets in committed.items() if offsets}
    return {name: lag for name, lag in lags.items() if lag is not None}


def failures_of(partitions: Iterable[PartitionState], ends: Mapping[Key, int]) -> dict[Key, str]:
    """Why the ends of some of these partitions are not known."""
    return {
        (each.topic, each.index): groups.NO_LEADER if each.is_offline else NO_END
        for each in partitions
        if (each.topic, each.index) not in ends
    }


MOST_LOOKED_UP = 500  # partitions whose ends are read for the page
MOST_GROUPS_OF_TOPIC = 200
MOST_TIMED = 200  # partitions whose lag is also measured in time: a record of each is read


class TopicGroup(NamedTuple):
    """A group that reads a topic: it has committed offsets of its partitions, or members that have partitions."""

    name: str
    state: str
    members: int
    committed: int  # partitions
    lag: int | None


class TopicGroups(NamedTuple):
    groups: Sequence[TopicGroup] = ()
    is_cut: bool = False  # the cluster has more groups than were read


@dataclass(frozen=True, slots=True)
class DescribedGroup:
    group: groups.GroupState
    lags: LagSummary = field(default_factory=LagSummary)
    denial: str = ""  # the permission that the user lacks for a part


def groups_of_topic(cluster: Cluster, snapshot: Snapshot, topic: str) -> TopicGroups:
    """The groups that read the topic, of the first ones by name."""
    listed = groups.list_groups(cluster.requests)[0]
    names = [each.name for each in listed[:MOST_GROUPS_OF_TOPIC]]
    partitions = snapshot.state.of_topics([topic])
    existing = [(topic, each.index) for each in partitions]
    committed = groups.read_committed_offsets_of(cluster.requests, names, existing)
    # Read after the committed offsets: older ends would hide what was written since.
    ends = read_offsets_of(cluster.requests, snapshot.state.brokers, partitions, LATEST)
    readers = {
        name: sum(any(each == topic for each, _partition in member.assignment) for member in members)
        for name, members in _members_of(cluster, names).items()
    }
    found = []
    for name, state, _kind in listed[:MOST_GROUPS_OF_TOPIC]:
        offsets, members = committed.get(name, {}), readers.get(name, 0)
        lag = groups.unread_records(offsets, ends, existing) if offsets else None
        if offsets or members:
            found.append(TopicGroup(name, state, members, len(offsets), lag))
    return TopicGroups(found, len(listed) > MOST_GROUPS_OF_TOPIC)


def count_members(cluster: Cluster, names: Sequence[str]) -> dict[str, int]:
    return {name: len(members) for name, members in _members_of(cluster, names).items()}


def _members_of(cluster: Cluster, names: Sequence[str]) -> dict[str, Sequence[groups.GroupMember]]:
    """Members of these groups; groups that cannot be described are left out."""
    described = groups.describe_groups(cluster.requests, names)
    return {name: group.members for name, group in described.items() if not isinstance(group, Failure)}


def describe_group(cluster: Cluster, snapshot: Snapshot, name: str) -> DescribedGroup:
    """Without Read on its topics the lag has no time, and without Describe on them there is none."""
    group = groups.read_group(cluster, name)
    committed = groups.read_committed_offsets(cluster.requests, name)
    partitions = groups.partitions_of(group, committed)
    try:
        is_small = len(partitions) <= MOST_LOOKED_UP
        ends, failures = groups.read_ends(cluster, partitions) if is_small else last_ends(snapshot, partitions)
    except NotAuthorized:
        return DescribedGroup(group, denial="not allowed: the lag needs Describe on the topics of the group")
    lags = summarize_lags(dict.fromkeys(partitions) | committed, ends, failures)
    owners = {key: member for member in group.members for key in member.assignment}
    for each in lags.listed:
        each.member = owners.get((each.topic, each.partition))
    denied = groups.add_time_lags(cluster, lags.listed) if lags.behind <= MOST_TIMED else set()
    denial = "not allowed: the lag in time needs Read on the topics of the group" if denied else ""
    return DescribedGroup(group, lags, denial)


def last_ends(snapshot: Snapshot, keys: Collection[Key]) -> tuple[dict[Key, int], dict[Key, str]]:
    """As `read_ends`, of the last round of the watch: reading the ends of 100,000 partitions takes seconds."""
    ends = {key: snapshot.ends[key] for key in keys if key in snapshot.ends}
    unknown = {key for key in keys if key not in ends}
    partitions = snapshot.state.partitions if unknown else ()
    return ends, failures_of((each for each in partitions if (each.topic, each.index) in unknown), ends)


def plan_reset(cluster: Cluster, name: str, goal: Goal, topics: Sequence[str]) -> list[Move]:
    """Before and after of each partition. Failure while the group has active members."""
    before = committed_offsets(cluster, name, is_new_allowed=bool(topics))
    keys = choose_partitions(cluster, topics, before)
    if not keys:
        raise Failure(f"group {name} has no committed offsets; name a topic")
    return plan_moves(cluster, before, keys, goal)
