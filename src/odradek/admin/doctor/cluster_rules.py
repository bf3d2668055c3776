"""Rules on a cluster: brokers, partitions, topics, disks, groups, transactions, the processes of brokers, clocks."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from odradek.admin.doctor.cluster_facts import INTERNAL_TOPICS, Contact, GroupChange, GroupFacts, Limits
from odradek.admin.doctor.findings import Checks, Finding, problem, problem_if, warning
from odradek.admin.errors import RefusedConnection
from odradek.conventions.addresses import is_loopback
from odradek.conventions.figures import age_text, count_text, size_text
from odradek.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from odradek.admin.broker_requests import KnownBroker
    from odradek.admin.cluster_state import ClusterState, PartitionState
    from odradek.admin.log_directories import Disks, LogDirectory
    from odradek.admin.transactions import OpenTransaction
    from odradek.conventions.failures import Failure

    TopicSettings = Mapping[str, Mapping[str, str]]

ENOUGH_REPLICAS = 3
IMBALANCE_RATIO = 0.1  # leader.imbalance.per.broker.percentage of Kafka
SMALLEST_IMBALANCE = 3
NEARLY_FULL_RATIO = 0.85
FULL_RATIO = 0.95
SKEW_RATIO = 2.0
SMALLEST_SKEW_BYTES = 10 * 10**9
NO_LIMIT = "-1"
MOST_OF_A_VOLUME = 0.9
REBALANCING = frozenset({"PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling"})
SMALLEST_GROWTH = 1_000
FASTER = "Add members, up to one for each partition, or make them faster"
FEWEST_FILES = 4_096
MOST_USED_RATIO = 0.8
LARGEST_SKEW_MS = 5_000

CHECKS = Checks()


@CHECKS.rule("no-broker")
def no_broker_answers(unreachable: Failure | None = None) -> Iterator[Finding]:
    if isinstance(unreachable, RefusedConnection):
        advice = "Correct the user and the -X properties, or the profile: odradek cluster info -b HOST:PORT"
        yield problem("brokers and this client do not agree on security", [unreachable.message], advice)
    elif unreachable is not None:
        advice = "Check the address, and that a broker runs there: odradek cluster info -b HOST:PORT"
        yield problem("no broker answers", [unreachable.message], advice)


@CHECKS.rule("broker-unreachable")
def unreachable_brokers(brokers: Mapping[int, KnownBroker], contacts: Sequence[Contact]) -> Iterator[Finding]:
    """Fenced brokers have a finding of their own."""
    fenced = {each.broker_id for each in brokers.values() if each.is_fenced}
    if silent := [each for each in contacts if each.error is not None and each.broker_id not in fenced]:
        yield problem(
            "brokers do not answer at the addresses that they advertise",
            [f"{each.place}: {each.error}" for each in silent],
            "Start the broker, open the port, or correct advertised.listeners; then: odradek cluster status",
        )


@CHECKS.rule("broker-fenced")
def fenced_brokers(brokers: Mapping[int, KnownBroker], contacts: Sequence[Contact] = ()) -> Iterator[Finding]:
    fenced = {each.broker_id: each for each in brokers.values() if each.is_fenced}
    running = [each.broker_id for each in contacts if each.error is None and each.broker_id in fenced]
    if unreached := [fenced.pop(broker_id) for broker_id in running]:
        yield problem(
            "brokers run and are fenced: the controller does not reach them",
            [f"broker {each.broker_id} at {each.host}:{each.port}" for each in unreached],
            "Correct advertised.listeners of the listener in inter.broker.listener.name, or the network from the "
            "controller to that address; the controller's log names it",
        )
    if fenced:
        first = min(fenced)
        yield problem(
            "brokers are fenced: they are down, or do not take part in the cluster",
            [f"broker {each.broker_id} at {each.host}:{each.port}" for each in fenced.values()],
            f"Start it again; if it runs, correct its advertised.listeners. If it will not return, move its replicas "
            f"and forget it: odradek partition reassign --drain {first} --wait && odradek cluster unregister {first}",
        )


@CHECKS.rule("controller")
def no_controller(state: ClusterState) -> Iterator[Finding]:
    """A controller of Apache Kafka may be a node that is no broker."""
    controller = state.cluster.controller_id
    name = f"{'broker' if controller in state.brokers else 'node'} {controller}"
    consequence = "topics cannot be changed and no leaders are elected"
    watch = "odradek cluster status --watch"
    if state.cluster.knows_controller and controller is None:
        advice = f"Check ZooKeeper or the KRaft controllers, and the brokers' logs; then: {watch}"
        yield problem(f"the cluster has no controller: {consequence}", [], advice)
    elif not state.knows_reassignments and not state.is_restricted:
        if state.cluster.knows_controller:
            advice = f"Read its log, and restart it if it hangs; then: {watch}"
            yield problem(f"the controller, {name}, does not answer", [name], advice)
        else:
            advice = f"Check the KRaft controllers and their logs; then: {watch}"
            yield problem(f"no controller answers: {consequence}", [], advice)


@CHECKS.rule("advertised-address")
def advertised_addresses(contacts: Sequence[Contact], from_elsewhere: bool) -> Iterator[Finding]:
    """A loopback address leads a client on another machine to itself."""
    loopback = [each for each in contacts if any(map(is_loopback, each.addresses))]
    if loopback and from_elsewhere:
        yield problem(
            "brokers advertise addresses of the loopback interface, which lead other machines to themselves",
            [f"{each.place} ({', '.join(each.addresses)})" for each in loopback],
            "Set advertised.listeners to a name that clients resolve, and restart the broker",
        )
    by_address = defaultdict(list)
    for each in contacts:
        by_address[each.host, each.port].append(each.broker_id)
    if shared := {address: ids for address, ids in by_address.items() if len(ids) > 1}:
        yield problem(
            "several brokers advertise the same address, so that clients reach the wrong one",
            [f"{host}:{port}: {_brokers_text(ids)}" for (host, port), ids in shared.items()],
            "Give each broker advertised.listeners of its own, and restart it",
        )


@CHECKS.rule("mixed-versions")
def mixed_versions(contacts: Sequence[Contact]) -> Iterator[Finding]:
    """Brokers of one version serve the same APIs in the same versions, at the same feature levels."""
    by_apis, by_level = defaultdict(list), defaultdict(list)
    for each in contacts:
        if each.error is None and each.apis:
            by_apis[tuple(sorted(each.apis.items()))].append(each.broker_id)
            by_level[tuple(sorted(each.features.items()))].append(each.broker_id)
    if len(by_apis) > 1:
        yield warning(
            "brokers serve different versions of the Kafka APIs, as in the middle of an upgrade",
            [f"{_brokers_text(ids)}: {len(apis)} APIs" for apis, ids in by_apis.items()],
            "Finish the upgrade: restart the remaining brokers with the new version, one after another "
            "(odradek cluster status --wait 120 between them)",
        )
    if len(by_level) > 1:
        yield warning(
            "brokers report different feature levels",
            [
                f"{_brokers_text(ids)}: {', '.join(f'{name}={level}' for name, level in levels)}"
                for levels, ids in by_level.items()
            ],
            "Run the command again in a minute; if the levels stay different, restart the brokers that are behind",
        )


def _brokers_text(broker_ids: list[int]) -> str:
    return f"brokers {', '.join(map(str, broker_ids))}"


# Partitions


@CHECKS.rule("partition-offline")
def offline(state: ClusterState) -> Iterator[Finding]:
    if found := [each for each in state.partitions if each.is_offline]:
        yield problem(
            "partitions have no leader: they cannot be read or written",
            map(_replicas_text, found),
            "Start the brokers of the in-sync replicas. If they are lost for good, and with them the newest records: "
            f"odradek partition elect {found[0].topic} --unclean",
        )


@CHECKS.rule("under-min-isr")
def under_min_in_sync(
    state: ClusterState,
    topic_settings: TopicSettings,  # noqa: ARG001 - the partitions of `state` have min.insync.replicas of it
) -> Iterator[Finding]:
    if found := [each for each in state.partitions if each.is_under_min_in_sync and not each.is_offline]:
        yield problem(
            "partitions have fewer replicas in sync than min.insync.replicas: writes with acks=all are refused",
            [f"{_replicas_text(each)}, min.insync.replicas {each.min_in_sync}" for each in found],
            "Start the brokers whose replicas are missing, then: odradek cluster status --wait 120",
        )


@CHECKS.rule("under-replicated")
def under_replicated(state: ClusterState) -> Iterator[Finding]:
    """Partitions that are offline, or below min.insync.replicas, have findings of their own."""
    writable = (each for each in state.partitions if not each.is_offline and not each.is_under_min_in_sync)
    if found := [each for each in writable if each.is_under_replicated]:
        yield warning(
            "partitions are under-replicated: not all of their replicas are in sync",
            map(_replicas_text, found),
            "Start the missing brokers, or find out why their replicas are slow; then: odradek cluster status --watch",
        )


@CHECKS.rule("preferred-leaders")
def preferred_leaders(state: ClusterState) -> Iterator[Finding]:
    """As Kafka: when more than a tenth of the partitions that a broker should lead are led by others."""
    preferred = state.counts().preferred
    elsewhere = Counter(each.replicas[0] for each in state.partitions if each.has_other_leader)
    found = [
        f"broker {broker_id} leads {preferred[broker_id] - count} of the {preferred[broker_id]} "
        "partitions that it should lead"
        for broker_id, count in sorted(elsewhere.items())
        if count >= SMALLEST_IMBALANCE and count > IMBALANCE_RATIO * preferred[broker_id]
    ]
    if found:
        what = "leaders are not on their preferred brokers, so that the load is uneven"
        yield warning(what, found, "When all replicas are in sync: odradek partition elect")


@CHECKS.rule("reassignment-stuck")
def running_reassignments(state: ClusterState) -> Iterator[Finding]:
    """Replicas that a reassignment adds and that are on a fenced broker never come into sync."""
    running = {each.broker_id for each in state.brokers.values() if not each.is_fenced}
    if stuck := [each for each in state.partitions if not running.issuperset(each.adding)]:
        yield warning(
            "reassignments wait for brokers that do not run",
            [f"{each.name} to {', '.join(map(str, each.adding))}" for each in stuck],
            "Start these brokers, or cancel: odradek partition reassign --cancel",
        )


@CHECKS.rule("partitions-per-broker")
def partitions_per_broker(state: ClusterState, limits: Limits) -> Iterator[Finding]:
    most = limits.most_partitions_per_broker
    if found := {broker_id: count for broker_id, count in sorted(state.counts().replicas.items()) if count > most}:
        yield warning(
            f"brokers have more than {most:,} replicas: restarts and failovers take long",
            [f"broker {broker_id}: {count:,} replicas" for broker_id, count in found.items()],
            "Add brokers and move replicas to them (odradek partition reassign TOPIC --to ID,ID,…), or delete topics "
            "that nobody uses",
        )


def _replicas_text(partition: PartitionState) -> str:
    replicas, in_sync = (",".join(map(str, each)) or "none" for each in (partition.replicas, partition.in_sync))
    return f"{partition.name} (replicas {replicas}; in sync {in_sync})"


# Topics


@CHECKS.rule("replication-factor")
def replication_factor_one(state: ClusterState) -> Iterator[Finding]:
    """In a cluster of several brokers. Internal topics have a finding of their own."""
    if len(state.brokers) < 2:
        return
    found = [topic for topic, count in _replicas(state).items() if count == 1 and topic not in INTERNAL_TOPICS]
    if found:
        yield warning(
            "topics have one replica: they are unavailable without its broker, and lost with its disk",
            found,
            f"odradek partition reassign {found[0]} --replication-factor {_wanted_replicas(state)}",
        )


@CHECKS.rule("internal-topics")
def internal_topics(state: ClusterState) -> Iterator[Finding]:
    wanted = _wanted_replicas(state)
    found = {topic: count for topic, count in _replicas(state).items() if topic in INTERNAL_TOPICS and count < wanted}
    if found:
        yield problem(
            "internal topics have too few replicas: without them groups and transactions stop",
            [f"{topic}: {count} of {wanted} replicas" for topic, count in found.items()],
            f"odradek partition reassign {' '.join(found)} --replication-factor {wanted}",
        )


@CHECKS.rule("min-isr-of-all")
def no_spare_replica(state: ClusterState, topic_settings: TopicSettings) -> Iterator[Finding]:
    """min.insync.replicas of all replicas: the loss of any one of them stops writes with acks=all."""
    found = []
    for topic, count in _replicas(state).items():
        minimum = topic_settings.get(topic, {}).get("min.insync.replicas", "")
        if count > 1 and minimum.isdecimal() and int(minimum) >= count:
            found.append((topic, count, minimum))
    if found:
        topic, count, _minimum = found[0]
        yield warning(
            "topics need all of their replicas in sync: a restart of one broker stops writes with acks=all",
            [f"{name}: min.insync.replicas {minimum}, {count} replicas" for name, count, minimum in found],
            f"odradek config alter topic {topic} --set min.insync.replicas={max(count - 1, 1)}, or add a replica",
        )


@CHECKS.rule("unclean-election")
def unclean_elections(topic_settings: TopicSettings) -> Iterator[Finding]:
    name = "unclean.leader.election.enable"
    if found := [topic for topic, settings in topic_settings.items() if settings.get(name) == "true"]:
        what = "topics allow unclean leader elections, which lose acknowledged records"
        yield warning(what, found, f"odradek config alter topic {found[0]} --set {name}=false")


def _wanted_replicas(state: ClusterState) -> int:
    return min(ENOUGH_REPLICAS, len(state.brokers))


def _replicas(state: ClusterState) -> dict[str, int]:
    """The smallest number of replicas of a partition, by topic. Replicas that are added do not count."""
    smallest: dict[str, int] = {}
    for each in state.partitions:
        count = len(each.target) if each.is_reassigned else len(each.replicas)
        smallest[each.topic] = min(smallest.get(each.topic, count), count)
    return smallest


# Disks


@CHECKS.rule("log-directory-failed")
def failed_directories(disks: Disks) -> Iterator[Finding]:
    if found := [each for each in disks.directories if each.error_code]:
        yield problem(
            "log directories have failed: their replicas are offline",
            [f"{_directory_text(each)}: {ErrorCode(each.error_code).name}" for each in found],
            "Replace the disk and restart the broker; its replicas are copied from the others. "
            "Check the files first if there is no other replica: odradek log verify DIRECTORY",
        )


@CHECKS.rule("disk-full")
def full_directories(disks: Disks) -> Iterator[Finding]:
    measured = [each for each in disks.directories if each.total_bytes > 0 and each.usable_bytes >= 0]
    used = {each: 1 - each.usable_bytes / each.total_bytes for each in measured}
    for lowest, highest in ((FULL_RATIO, 2.0), (NEARLY_FULL_RATIO, FULL_RATIO)):
        if found := {each: ratio for each, ratio in used.items() if lowest <= ratio < highest}:
            yield problem_if(
                lowest == FULL_RATIO,
                f"volumes of log directories are more than {lowest:.0%} full",
                [
                    f"{_directory_text(each)}: {ratio:.0%} of {size_text(each.total_bytes)}, "
                    f"{size_text(each.usable_bytes)} left"
                    for each, ratio in found.items()
                ],
                "Keep less (odradek config alter topic TOPIC --set retention.ms=…), move replicas to other brokers "
                "(odradek partition reassign TOPIC --to ID,ID,…), or enlarge the volume",
            )


@CHECKS.rule("disk-skew")
def skewed_brokers(disks: Disks) -> Iterator[Finding]:
    """Stored bytes by broker: one holds more than twice the mean."""
    stored: Counter[int] = Counter()
    for each in disks.directories:
        stored[each.broker_id] += each.stored_bytes
    mean = stored.total() / len(stored) if stored else 0
    least = max(SKEW_RATIO * mean, mean + SMALLEST_SKEW_BYTES)
    if found := {broker_id: size for broker_id, size in stored.items() if size > least}:
        yield warning(
            "brokers hold much more than others",
            [f"broker {each}: {size_text(size)}; the mean is {size_text(mean)}" for each, size in found.items()],
            "Move replicas to the other brokers: odradek partition reassign TOPIC --to ID,ID,…",
        )


@CHECKS.rule("retention")
def retention_beyond_volume(disks: Disks, topic_settings: TopicSettings) -> Iterator[Finding]:
    """`retention.bytes` of all replicas on a broker, or records that are kept without a limit on a filling volume."""
    volumes, used, allowed = Counter[int](), Counter[int](), Counter[int]()
    for each in disks.directories:
        volumes[each.broker_id] += max(each.total_bytes, 0)
        used[each.broker_id] += max(each.total_bytes - each.usable_bytes, 0)
    growing = set()
    for broker_id, topic, _index in disks.sizes:
        settings = topic_settings.get(topic, {})
        limit = settings.get("retention.bytes", NO_LIMIT)
        if limit != NO_LIMIT:
            allowed[broker_id] += int(limit)
        elif settings.get("retention.ms") == NO_LIMIT and settings.get("cleanup.policy") == "delete":
            growing |= {topic} if used[broker_id] > NEARLY_FULL_RATIO * volumes[broker_id] > 0 else set()
    beyond = [
        f"broker {broker_id}: {size_text(size)} allowed, volumes of {size_text(volumes[broker_id])}"
        for broker_id, size in sorted(allowed.items())
        if volumes[broker_id] and size > MOST_OF_A_VOLUME * volumes[broker_id]
    ]
    if beyond:
        yield warning(
            "topics may keep more than the volumes hold (the sum of retention.bytes of all replicas)",
            beyond,
            "Lower retention.bytes of large topics: odradek config alter topic TOPIC --set retention.bytes=…",
        )
    if growing:
        yield warning(
            "topics keep their records for ever, on volumes that are nearly full",
            sorted(growing),
            f"odradek config alter topic {min(growing)} --set retention.bytes=…, "
            "or compact it (cleanup.policy=compact)",
        )


def _directory_text(directory: LogDirectory) -> str:
    return f"broker {directory.broker_id}, {directory.path}"


# Groups


@CHECKS.rule("group-lag")
def large_lag(groups: Sequence[GroupFacts], limits: Limits) -> Iterator[Finding]:
    if found := [(each, lag) for each, lag in _by_lag(groups) if lag > limits.most_lag and each.state != "Empty"]:
        yield warning(
            f"groups are more than {limits.most_lag:,} records behind",
            [f"{each.name}: {count_text(lag, 'record')}" for each, lag in found],
            f"{FASTER}: odradek group describe {found[0][0].name}",
        )


@CHECKS.rule("group-lag-growing")
def growing_lag(groups: Sequence[GroupFacts], group_changes: Mapping[str, GroupChange]) -> Iterator[Finding]:
    """Only groups with members, and only a growth that is no matter of one commit."""
    found = [
        (each.name, lag, change.growth_per_s)
        for each, lag in _by_lag(groups)
        if (change := group_changes.get(each.name)) and change.growth >= SMALLEST_GROWTH and each.state != "Empty"
    ]
    if found:
        yield warning(
            "groups fall behind: their lag grows",
            [f"{name}: {lag:,} records, +{growth_per_s:,.0f}/s" for name, lag, growth_per_s in found],
            f"{FASTER}: odradek group describe {found[0][0]}",
        )


@CHECKS.rule("group-abandoned")
def abandoned(groups: Sequence[GroupFacts]) -> Iterator[Finding]:
    if found := [(each, lag) for each, lag in _by_lag(groups) if each.state == "Empty" and lag > 0]:
        yield warning(
            "groups have unread records and no members",
            [f"{each.name}: {count_text(lag, 'record')}" for each, lag in found],
            f"Start the consumers, or remove a group that is not used: odradek group delete {found[0][0].name}",
        )


@CHECKS.rule("group-unstable")
def unstable(groups: Sequence[GroupFacts], group_changes: Mapping[str, GroupChange]) -> Iterator[Finding]:
    """Groups that are rebalancing in both samples, and groups that are dead."""
    later = {name: change.later_state for name, change in group_changes.items() if change.later_state in REBALANCING}
    if moving := [each for each in groups if each.state in REBALANCING and each.name in later]:
        yield warning(
            "groups were rebalancing in both samples: their members read nothing while they do",
            [f"{each.name}: {each.state}, then {later[each.name]}" for each in moving],
            f"Look for members that leave or exceed max.poll.interval.ms: odradek group describe {moving[0].name}",
        )
    if dead := [each.name for each in groups if each.state == "Dead"]:
        advice = f"If they stay, restart the consumers: odradek group describe {dead[0]}"
        yield warning("groups are dead: their coordinator removes them", dead, advice)


def _by_lag(groups: Sequence[GroupFacts]) -> Sequence[tuple[GroupFacts, int]]:
    """The groups whose lag is known, with it; the largest first."""
    known = [(each, each.lag) for each in groups if each.lag is not None]
    return sorted(known, key=lambda each: -each[1])


# Transactions, processes and clocks


@CHECKS.rule("transaction-hanging")
def hanging_transactions(hanging: Sequence[OpenTransaction]) -> Iterator[Finding]:
    if hanging:
        first = hanging[0]
        yield problem(
            "transactions hang: no coordinator will end them, and read_committed consumers stop at them",
            [
                f"{each.topic}-{each.partition} from offset {each.start_offset}, producer {each.producer_id}"
                for each in hanging
            ],
            f"odradek transaction abort {first.topic} --partition {first.partition} "
            f"--start-offset {first.start_offset}",
        )


@CHECKS.rule("open-files")
def few_open_files(open_files: Mapping[int, tuple[int, int]]) -> Iterator[Finding]:
    found = [
        f"broker {broker_id}: {used:,} of {limit:,} are open"
        for broker_id, (used, limit) in open_files.items()
        if limit < FEWEST_FILES or used > MOST_USED_RATIO * limit
    ]
    if found:
        yield warning(
            "brokers may open few files more: each connection and each segment in use takes one",
            found,
            "Raise the limit and restart the broker: LimitNOFILE=100000 in its systemd unit, or ulimit -n 100000",
        )


@CHECKS.rule("clock-skew")
def clock_skew(ahead_ms: Mapping[str, int]) -> Iterator[Finding]:
    """Coordinators write internal topics with the time of their broker: a record of the future shows that the broker's
    clock is ahead of this one. A clock that is behind cannot be seen."""
    if found := {partition: ahead for partition, ahead in ahead_ms.items() if ahead > LARGEST_SKEW_MS}:
        yield warning(
            "clocks of brokers are ahead of the clock of this machine: retention and time look-ups go wrong",
            [f"leader of {partition}: {age_text(ahead)} ahead" for partition, ahead in found.items()],
            "Synchronize the clocks of brokers and clients, for example with chrony: chronyc tracking",
        )
