"""Consumer groups: which there are, their states, members and committed offsets, and how far they are behind."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, NamedTuple

from odradek.admin import errors
from odradek.admin.broker_requests import BrokerRequests, KnownBroker, ask_each, ask_loaded, by_topic, in_parts, live
from odradek.admin.cluster import CONNECT_TIMEOUT_S, Cluster, without_leader
from odradek.admin.offsets import LATEST, Key, list_offsets
from odradek.admin.records.fetched_batches import NO_TIMESTAMP, FetchedRecord, UnreadableBatch
from odradek.admin.records.record_fetcher import FetchSettings, RecordFetcher
from odradek.conventions.dataclass import dataclass
from odradek.conventions.failures import Failure, did_you_mean
from odradek.protocol.errors import ErrorCode
from odradek.protocol.malformed import MalformedMessage
from odradek.protocol.messages import consumer_group_describe, offset_fetch
from odradek.protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from odradek.protocol.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from odradek.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from odradek.protocol.schema import Message, Struct, array, int16, int32, string

if TYPE_CHECKING:
    from odradek.protocol.messages.describe_groups import DescribedGroup as ClassicGroup
    from odradek.protocol.messages.describe_groups import DescribedGroupMember as ClassicGroupMember

LIST_TIMEOUT_S = 5.0
MOST_COMPARED = 5_000  # names, with one that does not exist
GROUPS_PER_REQUEST = 10  # so that the answer for large groups is not too large
NO_LEADER = "no leader"
CONSUMERS = ("consumer", "")  # protocol types; the latter has offsets and never had members
REBALANCING = frozenset({"Assigning", "Reconciling"})  # of the consumer protocol; commands have one word for both


class ListedGroup(NamedTuple):
    name: str
    state: str
    kind: str


class GroupMember(NamedTuple):
    member_id: str
    client_id: str
    host: str
    instance_id: str | None
    assignment: tuple[Key, ...]


@dataclass(slots=True)
class GroupState:
    name: str
    state: str
    kind: str
    assignor: str
    coordinator: str
    members: list[GroupMember] = field(default_factory=list)

    @property
    def is_active(self) -> bool:
        return self.state not in ("Empty", "Dead")


@dataclass(slots=True)
class PartitionLag:
    """`committed_offset` is None if nothing is committed, `end_offset` if the topic does not exist, or if a `failure`
    hides the end."""

    topic: str
    partition: int
    committed_offset: int | None
    end_offset: int | None
    member: GroupMember | None = None
    time_lag_ms: int | None = None
    failure: str = ""

    @property
    def lag(self) -> int | None:
        if self.committed_offset is None or self.end_offset is None:
            return None
        return max(self.end_offset - self.committed_offset, 0)


def list_groups(requests: BrokerRequests) -> tuple[list[ListedGroup], dict[int, str]]:
    """Consumer groups by name; and the brokers that did not answer, with the reasons. Each broker is asked for its own:
    one that does not answer hides only those. Failure if none answered."""
    missing: dict[int, str] = {}

    def ask(broker: KnownBroker) -> list[ListedGroup]:
        answer = ask_loaded(requests, broker, ListGroupsRequest(), ListGroupsResponse, (5, 4), "groups")
        return [
            ListedGroup(each.group_id, _state_name(each.group_state), each.group_type.lower())
            for each in answer.groups
            if each.protocol_type in CONSUMERS
        ]

    brokers = requests.describe().brokers
    found = ask_each(live(brokers), ask, missing)
    for each in brokers.values():
        if each.is_fenced:
            missing[each.broker_id] = "it is fenced; groups that others have taken over are listed"
    return sorted(group for listed in found for group in listed), missing


def with_similar_names(cluster: Cluster, failure: Failure) -> Failure:
    """The failure with a suggestion, if the name of a topic or group that does not exist is like those of others."""
    if not isinstance(failure, errors.NoSuchName) or not failure.name:
        return failure
    try:
        known = cluster.topic_names() if isinstance(failure, errors.NoSuchTopic) else group_names(cluster)
    except Failure:
        return failure
    hint = did_you_mean(failure.name, known[:MOST_COMPARED]) if failure.name not in known else ""
    return Failure(f"{failure.message}; {hint}") if hint else failure


def group_names(cluster: Cluster, timeout_s: float = LIST_TIMEOUT_S) -> list[str]:
    cluster.check_reachable(min(timeout_s, CONNECT_TIMEOUT_S))
    return [each.name for each in list_groups(BrokerRequests(cluster, timeout_s))[0]]


def _state_name(state: str) -> str:
    return "Rebalancing" if state in REBALANCING else state


def read_group(cluster: Cluster, name: str) -> GroupState:
    """NoSuchGroup if there is none of this name."""
    found = describe_groups(cluster.requests, [name])[name]
    if isinstance(found, Failure):
        raise found
    return found


def describe_groups(requests: BrokerRequests, names: Iterable[str]) -> dict[str, GroupState | Failure]:
    """The state of each group by its name, or the failure that hides it."""
    described = requests.ask_coordinators(names, lambda coordinator, some: _describe(requests, coordinator, some))
    return {
        name: errors.broker_failure(found, None, f"group {name}", "Describe")
        if isinstance(found, int)
        else errors.NoSuchGroup(f"there is no group {name}; `odradek group list` shows those that exist", name)
        if found.state == "Dead"
        else found
        for name, found in described.items()
    }


def _describe(requests: BrokerRequests, coordinator: KnownBroker, names: list[str]) -> dict[str, GroupState | int]:
    """Groups of the consumer protocol (KIP-848), then those of the classic one, or error codes."""
    found: dict[str, GroupState | int] = {}
    request = consumer_group_describe.ConsumerGroupDescribeRequest(group_ids=names)
    response_type = consumer_group_describe.ConsumerGroupDescribeResponse
    try:
        for each in requests.ask(coordinator, request, response_type, (0,)).groups:
            if not each.error_code:
                found[each.group_id] = _group_of(
                    each, "consumer", each.assignor_name, coordinator, [_member(one) for one in each.members]
                )
            elif each.error_code not in (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION):
                found[each.group_id] = each.error_code
    except errors.UnsupportedRequest:  # before Apache Kafka 3.7
        pass
    classic = [name for name in names if name not in found]
    if classic:
        for group in requests.ask(coordinator, DescribeGroupsRequest(groups=classic), DescribeGroupsResponse, 5).groups:
            found[group.group_id] = group.error_code or _group_of(
                group, "classic", group.protocol_data, coordinator, [_classic_member(each) for each in group.members]
            )
    return found


def _group_of(
    group: consumer_group_describe.DescribedGroup | ClassicGroup, kind: str, assignor: str, coordinator: KnownBroker,
    members: list[GroupMember],
) -> GroupState:  # fmt: skip
    members.sort(key=lambda member: (member.client_id, member.member_id))
    address = f"{coordinator.host}:{coordinator.port}"
    return GroupState(group.group_id, _state_name(group.group_state), kind, assignor, address, members)


def _member(member: consumer_group_describe.Member) -> GroupMember:
    topics = member.assignment.topic_partitions
    assignment = tuple(sorted((each.topic_name, index) for each in topics for index in each.partitions))
    host = member.client_host.removeprefix("/")
    return GroupMember(member.member_id, member.client_id, host, member.instance_id, assignment)


class _TopicPartitions(Struct):
    topic: str = string()
    partitions: list[int] = array(int32())


class _Assignment(Message):
    """What the leader of a classic group sends to its members, whose later versions begin like this one."""

    version: int = int16()
    topics: list[_TopicPartitions] = array(_TopicPartitions)


def _classic_member(member: ClassicGroupMember) -> GroupMember:
    try:
        topics = _Assignment.decode(memoryview(member.member_assignment), 0, 0).topics
    except MalformedMessage:  # of another protocol, or empty while the group rebalances
        topics = []
    assignment = tuple(sorted((each.topic, index) for each in topics for index in each.partitions))
    host = member.client_host.removeprefix("/")
    return GroupMember(member.member_id, member.client_id, host, member.group_instance_id, assignment)


def delete_group(requests: BrokerRequests, name: str) -> None:
    """Deletes a group with its committed offsets. Failure while it has members."""

    def ask(coordinator: KnownBroker, names: list[str]) -> dict[str, int]:
        answer = requests.ask(coordinator, DeleteGroupsRequest(groups_names=names), DeleteGroupsResponse, 1)
        return {each.group_id: each.error_code for each in answer.results}

    errors.check(requests.ask_coordinators([name], ask)[name], None, f"group {name}", "Delete")


def read_committed_offsets(requests: BrokerRequests, group: str) -> dict[Key, int]:
    """The committed offsets of one group. Failure if its coordinator refuses, or does not answer."""
    found = requests.ask_coordinators([group], lambda coordinator, names: fetch_committed(requests, coordinator, names))
    offsets = found[group]
    if isinstance(offsets, int):
        raise errors.broker_failure(offsets, None, f"group {group}", "Describe")
    return offsets


def read_committed_offsets_of(
    requests: BrokerRequests, groups: Iterable[str], partitions: Iterable[Key] | None = None
) -> dict[str, dict[Key, int]]:
    """The committed offsets of groups, in these partitions or in all. A group whose coordinator refuses, or does not
    answer, is left out."""
    topics = None
    if partitions is not None:
        indexes = by_topic(partitions).items()
        new = offset_fetch.OffsetFetchRequestTopics
        topics = [new(name=topic, partition_indexes=wanted) for topic, wanted in indexes]

    def ask(coordinator: KnownBroker, names: list[str]) -> dict[str, dict[Key, int] | int]:
        found: dict[str, dict[Key, int] | int] = {}
        for some in in_parts(names, GROUPS_PER_REQUEST):
            try:
                found |= fetch_committed(requests, coordinator, some, topics)
            except Failure:
                break
        return found

    found = requests.ask_coordinators(groups, ask, patience_s=0)
    return {name: offsets for name, offsets in found.items() if not isinstance(offsets, int)}


def fetch_committed(
    requests: BrokerRequests, coordinator: KnownBroker, groups: list[str],
    topics: list[offset_fetch.OffsetFetchRequestTopics] | None = None,
) -> dict[str, dict[Key, int] | int]:  # fmt: skip
    """The offsets or the error code of each group; without topics, of all its partitions."""
    wanted = [offset_fetch.OffsetFetchRequestGroup(group_id=each, topics=topics) for each in groups]
    request = offset_fetch.OffsetFetchRequest(groups=wanted)
    return {
        group.group_id: group.error_code
        or {
            (topic.name, each.partition_index): each.committed_offset
            for topic in group.topics
            for each in topic.partitions
            if not each.error_code and each.committed_offset >= 0
        }
        for group in requests.ask(coordinator, request, offset_fetch.OffsetFetchResponse, 8).groups
    }


def read_lags(cluster: Cluster, group: GroupState) -> list[PartitionLag]:
    """The lag of every partition with a committed offset or an owner, in order."""
    committed = read_committed_offsets(cluster.requests, group.name)
    return lags_of(group, committed, *read_ends(cluster, partitions_of(group, committed)))


def partitions_of(group: GroupState, committed: Iterable[Key]) -> set[Key]:
    """Partitions with a committed offset or an owner."""
    return {*committed, *(key for member in group.members for key in member.assignment)}


def lags_of(
    group: GroupState, committed: Mapping[Key, int], ends: Mapping[Key, int], failures: Mapping[Key, str]
) -> list[PartitionLag]:
    owners = {key: member for member in group.members for key in member.assignment}
    return [
        PartitionLag(*key, committed.get(key), ends.get(key), owners.get(key), failure=failures.get(key, ""))
        for key in sorted(partitions_of(group, committed))
    ]


def read_ends(cluster: Cluster, keys: Iterable[Key]) -> tuple[dict[Key, int], dict[Key, str]]:
    """End offsets, and why others are not known. Partitions that the user cannot see, or nobody, are left out."""
    wanted = list(keys)
    # These topics alone are asked for: the names of all would come with all partitions of the cluster.
    topics = cluster.find_topics({topic for topic, _partition in wanted})
    existing = {(topic.name, each.id) for topic in topics for each in topic.partitions}
    leaderless = without_leader(topics)
    led = [key for key in wanted if key in existing and key not in leaderless]
    listed = list_offsets(cluster.requests, led, LATEST)
    failures = {key: NO_LEADER for key in wanted if key in leaderless}
    for key, failure in listed.failures.items():
        if isinstance(failure, errors.NotAuthorized):
            raise failure
        if not isinstance(failure, errors.NoSuchTopic):
            failures[key] = failure.message
    return listed.offsets, failures


def unread_records(committed: Mapping[Key, int], ends: Mapping[Key, int], existing: Collection[Key]) -> int | None:
    """Records after the committed offsets of a group, in the partitions that exist. None if the end of one of them is
    not known, as while it has no leader: the sum of the others would fall when a broker dies."""
    known = [(offset, ends.get(key)) for key, offset in committed.items() if key in existing]
    lags = [max(end - offset, 0) for offset, end in known if end is not None]
    return sum(lags) if len(lags) == len(known) else None


PATIENCE_S = 5.0  # to read the first unread record of each partition
# Small fetches: one record of each partition is enough. Lag counts the records of open transactions, so that their age
# counts, too. A partition that ends with the marker of a transaction has no record after it: its lag is zero.
SETTINGS = FetchSettings(
    32 * 1024 * 1024, max_wait_ms=50, partition_bytes=65_536, isolation_level="read_uncommitted",
    offset_reset="earliest",
)  # fmt: skip


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
        if isinstance(failure, errors.NotAuthorized):
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
