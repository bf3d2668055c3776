"""Reads the facts of a cluster: few requests for any number of topics, each of a bounded size."""

from __future__ import annotations

import socket
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, NamedTuple

from odradek.admin.broker_metrics import metrics_of, serves_metrics
from odradek.admin.broker_requests import BrokerRequests, answers_of, describe_resources, in_parts, live
from odradek.admin.cluster_state import MIN_IN_SYNC, ControllerLookup, MinInSync, led_partitions, read_state
from odradek.admin.doctor.findings import Facts
from odradek.admin.doctor.reader import Reader, all_at_once
from odradek.admin.errors import NotAuthorized, check
from odradek.admin.groups import fetch_committed, unread_records
from odradek.admin.log_directories import Disks, read_disks
from odradek.admin.offsets import LATEST, Key, offsets_request, read_offsets_of
from odradek.admin.settings import Kind
from odradek.admin.transactions import OpenTransaction, open_transactions_in, read_producers, without_known
from odradek.conventions.addresses import is_loopback, split_addresses
from odradek.conventions.dataclass import dataclass
from odradek.conventions.failures import Failure
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from odradek.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from odradek.protocol.messages.list_offsets import ListOffsetsResponse

if TYPE_CHECKING:
    from odradek.admin.broker_requests import KnownBroker
    from odradek.admin.cluster import Cluster
    from odradek.admin.cluster_state import ClusterState

BROKER_TIMEOUT_S = 8.0
SETTINGS = (MIN_IN_SYNC, "unclean.leader.election.enable", "retention.ms", "retention.bytes", "cleanup.policy")
INTERNAL_TOPICS = ("__consumer_offsets", "__transaction_state", "__share_group_state", "__cluster_metadata")
GROUPS_PER_REQUEST = 200
NO_COORDINATOR = frozenset({ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS})
LONGEST_TRANSACTION_MS = 15 * 60 * 1000  # the default of transaction.max.timeout.ms
NO_BROKER = "no connection to a broker"
RESTRICTED = "this user lacks Describe on the cluster, and sees some topics and groups only"
HIDDEN_WITHOUT_DESCRIBE = ("state", "topic_settings", "disks", "groups", "hanging", "ahead_ms", "open_files")
NEWEST = -3  # ListOffsets: the record with the largest timestamp
NEWEST_VERSION = 7  # of ListOffsets


@dataclass(frozen=True, slots=True)
class Contact:
    """An attempt to reach a broker at the address that it advertises. `error` is None if it answered."""

    broker_id: int
    host: str
    port: int
    error: str | None = None
    addresses: tuple[str, ...] = ()  # that the host name resolves to
    apis: Mapping[int, tuple[int, int]] = field(default_factory=dict)  # smallest and largest version by API key
    features: Mapping[str, int] = field(default_factory=dict)  # finalized levels

    @property
    def place(self) -> str:
        return f"broker {self.broker_id} at {self.host}:{self.port}"


class GroupFacts(NamedTuple):
    """`lag` is the number of records that the group has not read, None if it is not known."""

    name: str
    state: str
    lag: int | None = 0


class GroupChange(NamedTuple):
    """What a second sample of a group shows: its state, and by how much the lag has grown."""

    later_state: str
    growth: int = 0
    growth_per_s: float = 0.0


class Limits(NamedTuple):
    """Thresholds that a user may set."""

    most_lag: int = 100_000
    most_partitions_per_broker: int = 4_000


@dataclass(slots=True, kw_only=True)
class ClusterFacts(Facts):
    unreachable: Failure | None = None  # why no broker has answered
    state: ClusterState | None = None
    contacts: Sequence[Contact] | None = None
    topic_settings: Mapping[str, Mapping[str, str]] | None = None
    disks: Disks | None = None
    groups: Sequence[GroupFacts] | None = None  # with the lag of the second sample, if there is one
    group_changes: Mapping[str, GroupChange] = field(default_factory=dict)  # by name, of groups in both samples
    hanging: Sequence[OpenTransaction] | None = None
    ahead_ms: Mapping[str, int] | None = None  # by partition of an internal topic: newest record minus this clock
    open_files: Mapping[int, tuple[int, int]] | None = None  # open and allowed, of the brokers that report them
    from_elsewhere: bool = False  # the client connected to an address that is not of its own machine
    limits: Limits = field(default_factory=Limits)

    @property
    def brokers(self) -> Mapping[int, KnownBroker] | None:
        """Every user may list the brokers."""
        return None if self.state is None else self.state.brokers


def read_cluster(cluster: Cluster, reader: Reader, interval_s: float, limits: Limits) -> ClusterFacts:
    """All facts; what cannot be read is None, and `reasons` says why."""
    requests = BrokerRequests(cluster, BROKER_TIMEOUT_S)
    facts = ClusterFacts(limits=limits, reasons=reader.reasons, from_elsewhere=is_elsewhere(cluster.bootstrap_servers))
    settings = TopicSettings(requests, reader)
    lookup = ControllerLookup(requests)
    facts.state = state = reader.read(
        "state", "reading topics and their settings …",
        lambda: read_state(requests, settings, lookup, may_lack_reassignments=True),
    )  # fmt: skip
    if state is None:
        facts.unreachable = why_unreachable(requests)
        if facts.unreachable is not None:
            reader.reasons["state"] = NO_BROKER
        facts.unread_reason = reader.reasons["state"]
        return facts
    began_at = time.monotonic()
    facts.groups = reader.read("groups", "reading groups and their lag …", lambda: read_groups(requests, state, reader))
    reader.leave_out("topic_settings", settings.refusals, "topic", "DescribeConfigs", "settings of {}")
    facts.topic_settings = settings.known if settings.known or "topic_settings" not in reader.reasons else None
    facts.contacts = reader.read(
        "contacts", "connecting to each broker …",
        lambda: all_at_once(lambda broker: contact(requests, broker), state.brokers.values()),
    )  # fmt: skip
    facts.disks = reader.read("disks", "reading log directories …", lambda: read_disks(requests, state))
    facts.hanging = reader.read(
        "hanging", "looking for hanging transactions …", lambda: read_hanging(requests, state, reader)
    )
    facts.open_files = reader.read("open_files", "reading limits …", lambda: read_open_files(requests, state))
    facts.ahead_ms = reader.read(
        "ahead_ms", "comparing clocks …", lambda: newest_internal_records(requests, state, reader)
    )
    if state.is_restricted or (facts.disks is not None and facts.disks.is_denied):
        for name in HIDDEN_WITHOUT_DESCRIBE:
            reader.reasons.setdefault(name, RESTRICTED)
    if facts.groups and interval_s > 0:
        reader.pause(interval_s - (time.monotonic() - began_at))
        later = reader.read("group_changes", "reading the lag again …", lambda: read_groups(requests, state, reader))
        facts.groups, facts.group_changes = compare(facts.groups, later or (), time.monotonic() - began_at)
    return facts


def why_unreachable(requests: BrokerRequests) -> Failure | None:
    """None if a broker answers: the cluster can be reached, and refuses something."""
    try:
        requests.ask_any(ApiVersionsRequest(), ApiVersionsResponse, 0)
    except Failure as failure:
        return failure
    return None


class TopicSettings(MinInSync):
    """The settings of topics that rules use. `known` has them by topic."""

    def __init__(self, requests: BrokerRequests, reader: Reader) -> None:
        super().__init__(requests)
        self._reader = reader
        self.known: dict[str, dict[str, str]] = {}
        self.refusals: Counter[int] = Counter()  # error codes of topics whose settings could not be read

    def of(self, topics: Iterable[str]) -> Mapping[str, int]:
        for result in describe_resources(self._requests, Kind.TOPIC, topics, SETTINGS):
            self._reader.check_time()
            if not result.error_code:
                values = {each.name: each.value for each in result.configs if each.value is not None}
                self.known[result.resource_name] = values
            else:
                self.refusals[result.error_code] += 1
        return {topic: int(settings.get(MIN_IN_SYNC, "1")) for topic, settings in self.known.items()}


def contact(requests: BrokerRequests, broker: KnownBroker) -> Contact:
    """A connection to the address that a broker advertises, and its versions."""
    place = broker.broker_id, broker.host, broker.port
    addresses: tuple[str, ...] = ()
    try:
        addresses = resolve(broker.host, broker.port)
        request = ApiVersionsRequest(client_software_name="odradek-cli", client_software_version="1")
        answer = requests.ask(broker, request, ApiVersionsResponse, 3)
    except OSError as error:
        return Contact(*place, f"the name {broker.host} cannot be resolved: {error.strerror or error}")
    except Failure as failure:
        return Contact(*place, failure.message, addresses)
    apis = {each.api_key: (each.min_version, each.max_version) for each in answer.api_keys}
    features = {each.name: each.max_version_level for each in answer.finalized_features}
    return Contact(*place, None, addresses, apis, features)


def resolve(host: str, port: int) -> tuple[str, ...]:
    """The addresses of a host name, without duplicates; OSError if it has none."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return tuple(dict.fromkeys(str(each[4][0]) for each in found))


def is_elsewhere(bootstrap_servers: str) -> bool:
    """Whether the given addresses are not loopback addresses of this machine."""
    for host, port in split_addresses(bootstrap_servers):
        try:
            if any(map(is_loopback, resolve(host, port))):
                return False
        except OSError:
            continue
    return True


def read_open_files(requests: BrokerRequests, state: ClusterState) -> dict[int, tuple[int, int]]:
    """Open and allowed files of the brokers of Odradek; other brokers do not report them."""

    def ask(broker: KnownBroker) -> tuple[int, tuple[int, int]]:
        if not serves_metrics(requests, broker):
            return broker.broker_id, (0, 0)
        metrics = metrics_of(requests, broker, ["process_"])
        return broker.broker_id, (int(metrics.total("process_open_fds")), int(metrics.total("process_max_fds")))

    found, _silent = answers_of(live(state.brokers), ask, (NotAuthorized,))  # these have findings of their own
    return {broker_id: files for broker_id, files in found if files[1] > 0}


def read_groups(requests: BrokerRequests, state: ClusterState, reader: Reader) -> list[GroupFacts]:
    """The groups of the brokers that answer, with few requests to each coordinator."""
    states: dict[str, str] = {}
    committed: dict[str, dict[Key, int]] = {}
    refusals: Counter[int] = Counter()
    for broker in live(state.brokers):
        reader.check_time()
        try:
            answer = requests.ask(broker, ListGroupsRequest(), ListGroupsResponse, 4)
        except Failure:
            continue  # a broker that does not answer has a finding of its own
        if answer.error_code not in NO_COORDINATOR:
            check(answer.error_code, None, "groups")
        listed = {each.group_id: each.group_state for each in answer.groups}
        states |= listed
        for some in in_parts(listed, GROUPS_PER_REQUEST):
            reader.check_time()
            for group, offsets in fetch_committed(requests, broker, some).items():
                if not isinstance(offsets, int):
                    committed[group] = offsets
                else:
                    refusals[offsets] += 1
    reader.leave_out("groups", refusals, "group", "Describe", "offsets of {}")
    wanted = {key for offsets in committed.values() for key in offsets}
    partitions = [each for each in state.partitions if (each.topic, each.index) in wanted]
    ends = read_offsets_of(requests, state.brokers, partitions, LATEST)
    existing = {(each.topic, each.index) for each in partitions}
    groups = [
        GroupFacts(name, group_state, unread_records(committed.get(name, {}), ends, existing))
        for name, group_state in sorted(states.items())
    ]
    if unknown := sum(1 for each in groups if each.lag is None):
        reader.reasons.setdefault("groups", f"lag of {unknown:,} groups: the leader of a partition does not answer")
    return groups


def compare(
    first: Sequence[GroupFacts], second: Sequence[GroupFacts], interval_s: float
) -> tuple[list[GroupFacts], dict[str, GroupChange]]:
    """The groups of the first sample with the lag of the second one; and what has changed in between."""
    later = {each.name: each for each in second}
    groups: list[GroupFacts] = []
    changes: dict[str, GroupChange] = {}
    for each in first:
        now = later.get(each.name, each)
        groups.append(GroupFacts(each.name, each.state, now.lag))
        if each.name in later:
            growth = 0 if each.lag is None or now.lag is None else now.lag - each.lag
            changes[each.name] = GroupChange(now.state, growth, growth / interval_s)
    return groups, changes


def read_hanging(requests: BrokerRequests, state: ClusterState, reader: Reader) -> list[OpenTransaction]:
    """Transactions that no coordinator will end. A partition that has moved or was deleted is left out."""
    now_ms = int(time.time() * 1000)
    old: list[OpenTransaction] = []
    refusals: Counter[int] = Counter()
    for broker, partitions in led_partitions(state.brokers, state.partitions):
        for some in in_parts(partitions):
            reader.check_time()
            for topic, described in read_producers(requests, broker, ((each.topic, each.index) for each in some)):
                refusals[described.error_code] += 1
                found = open_transactions_in(topic, described, broker)
                old += [each for each in found if now_ms - each.last_timestamp_ms > LONGEST_TRANSACTION_MS]
    reader.leave_out("hanging", refusals, "partition", "Read", "transactions of {}")
    return without_known(requests, old)


def newest_internal_records(requests: BrokerRequests, state: ClusterState, reader: Reader) -> dict[str, int]:
    """By how many milliseconds the newest record of each partition is ahead of this machine's clock."""
    ahead: dict[str, int] = {}
    refusals: Counter[int] = Counter()
    internal = [each for each in state.partitions if each.topic in INTERNAL_TOPICS]
    for broker, partitions in led_partitions(state.brokers, internal):
        request = offsets_request(((each.topic, each.index), NEWEST) for each in partitions)
        answer = requests.ask(broker, request, ListOffsetsResponse, NEWEST_VERSION)
        now_ms = int(time.time() * 1000)
        for topic in answer.topics:
            for found in topic.partitions:
                refusals[found.error_code] += 1
                if not found.error_code and found.timestamp >= 0:
                    ahead[f"{topic.name}-{found.partition_index}"] = found.timestamp - now_ms
    reader.leave_out("ahead_ms", refusals, "partition", "Describe", "{} of internal topics")
    return ahead
