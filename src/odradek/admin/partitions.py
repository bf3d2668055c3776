"""Reassignments of replicas: the plan, the requests that begin and cancel it, and its throttle; moves between log
directories; elections of leaders.

Replicas stay where they are, as far as the brokers allow it and have an equal share. New ones go to racks and machines
without a replica of the partition first, then to the broker with the fewest. Plan files and the settings of
the throttle are those of kafka-reassign-partitions, so that either tool can continue the work of the other.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from odradek.admin.broker_requests import TOPICS_PER_REQUEST, BrokerRequests, by_topic, describe_resources, in_parts
from odradek.admin.errors import NoSuchTopic, check, error_text
from odradek.admin.settings import Kind, alter_request, changes_to
from odradek.conventions.failures import Failure
from odradek.conventions.figures import count_text
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages import alter_partition_reassignments as reassigning
from odradek.protocol.messages import alter_replica_log_dirs as moving
from odradek.protocol.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse, TopicPartitions
from odradek.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsResponse

if TYPE_CHECKING:
    from odradek.admin.broker_requests import KnownBroker
    from odradek.admin.cluster_state import ClusterState, PartitionState
    from odradek.admin.log_directories import Copy, Sizes

    Values = Mapping[str, str | None]

Replicas = tuple[int, ...]
Assignment = dict[tuple[str, int], Replicas]


class Place(NamedTuple):
    """Where a broker is."""

    rack: str | None
    machine: str


class Move(NamedTuple):
    partition: PartitionState
    after: Replicas
    size_bytes: int | None = None  # of the partition on its leader; None if it is not known

    @property
    def before(self) -> Replicas:
        return self.partition.replicas

    @property
    def adding(self) -> Replicas:
        return tuple(replica for replica in self.after if replica not in self.before)

    @property
    def removing(self) -> Replicas:
        return tuple(replica for replica in self.before if replica not in self.after)

    @property
    def bytes_to_copy(self) -> int | None:
        return None if self.size_bytes is None else self.size_bytes * len(self.adding)


def plan_moves(
    partitions: Sequence[PartitionState], places: Mapping[int, Place], replication_factor: int | None = None
) -> list[Move]:
    """Spread partitions evenly over these brokers, each with its own replication factor without one. Changes only."""
    factors = {each: replication_factor or len(each.target) for each in partitions}
    for partition, factor in factors.items():
        if factor > len(places):
            raise Failure(
                f"{partition.name} needs {factor} brokers for its replicas, and {len(places)} remain: add brokers, or "
                "give a lower --replication-factor"
            )
    share = _share(sum(factors.values()), len(places))
    load: Counter[int] = Counter()
    kept: dict[PartitionState, list[int]] = {}
    for partition, factor in factors.items():
        found: list[int] = []
        kept[partition] = found
        for replica in partition.target:
            if replica in places and len(found) < factor and load[replica] < share:
                found.append(replica)
                load[replica] += 1
    for partition, factor in factors.items():
        while len(kept[partition]) < factor:
            chosen = _next_broker(kept[partition], places, load)
            kept[partition].append(chosen)
            load[chosen] += 1
    while _move_one(kept, places, load):
        pass
    after = _with_even_leaders(kept, len(places))
    return [Move(partition, after[partition]) for partition in partitions if after[partition] != partition.target]


def _share(total: int, brokers: int) -> int:
    return -(-total // brokers)


def _next_broker(taken: Sequence[int], places: Mapping[int, Place], load: Mapping[int, int]) -> int:
    racks = {places[broker].rack for broker in taken}
    machines = {places[broker].machine for broker in taken}
    return min(
        (broker for broker in places if broker not in taken),
        key=lambda broker: (
            places[broker].rack in racks - {None}, places[broker].machine in machines, load[broker], broker
        ),
    )  # fmt: skip


def _move_one(kept: Mapping[PartitionState, list[int]], places: Mapping[int, Place], load: Counter[int]) -> bool:
    """Move one replica to a broker with at least two fewer, if the partition keeps as many racks and machines."""
    by_load = sorted(places, key=lambda broker: (load[broker], broker))
    for heavy in reversed(by_load):
        for light in by_load:
            if load[heavy] - load[light] < 2:
                break
            for replicas in reversed(list(kept.values())):
                if heavy not in replicas or light in replicas:
                    continue
                moved = [light if replica == heavy else replica for replica in replicas]
                if _spread(moved, places) >= _spread(replicas, places):
                    replicas[:] = moved
                    load[heavy] -= 1
                    load[light] += 1
                    return True
    return False


def _spread(replicas: Sequence[int], places: Mapping[int, Place]) -> tuple[int, int]:
    return len({places[broker].rack for broker in replicas}), len({places[broker].machine for broker in replicas})


def _with_even_leaders(kept: Mapping[PartitionState, list[int]], brokers: int) -> dict[PartitionState, Replicas]:
    """The first replica is the preferred leader. Leaders stay where they are, up to an equal share."""
    share = _share(len(kept), brokers)
    leads: Counter[int] = Counter()
    firsts: dict[PartitionState, int] = {}
    for partition, replicas in kept.items():
        first = partition.target[0] if partition.target else None
        if first in replicas and leads[first] < share:
            firsts[partition] = first
            leads[first] += 1
    for partition, replicas in kept.items():
        if partition not in firsts:
            firsts[partition] = min(replicas, key=lambda broker: (leads[broker], replicas.index(broker)))
            leads[firsts[partition]] += 1
    return {
        partition: (firsts[partition], *(replica for replica in replicas if replica != firsts[partition]))
        for partition, replicas in kept.items()
    }


def select_partitions(state: ClusterState, names: Sequence[str], indexes: Sequence[int]) -> list[PartitionState]:
    """All partitions without names; a Failure names a topic or a partition that does not exist."""
    if not names:
        return list(state.partitions)
    known = {partition.topic for partition in state.partitions}
    for name in names:
        if name not in known:
            raise NoSuchTopic(f"there is no topic {name}; `odradek topic list` shows those that exist", name)
    found = state.of_topics(names)
    missing = sorted(set(indexes) - {partition.index for partition in found})
    if missing:
        raise Failure(f"topic {names[0]} has no partition {missing[0]}; it has {count_text(len(found), 'partition')}")
    return [partition for partition in found if not indexes or partition.index in indexes]


class MoveGoal(NamedTuple):
    """Which topics are spread over which brokers; without topics, everything that the drained brokers have."""

    topics: Sequence[str] = ()
    indexes: Sequence[int] = ()  # of a topic; all without any
    to: Sequence[int] = ()  # all that run without any
    drain: Sequence[int] = ()
    replication_factor: int | None = None


def planned_moves(state: ClusterState, goal: MoveGoal) -> list[Move]:
    running = {broker.broker_id for broker in state.brokers.values() if not broker.is_fenced}
    wanted = set(goal.to) or running
    for broker in sorted(wanted - running):
        raise Failure(f"broker {broker} does not run; running brokers: {', '.join(map(str, sorted(running)))}")
    wanted = wanted - set(goal.drain)
    partitions = select_partitions(state, goal.topics, goal.indexes)
    if not goal.topics:
        partitions = [each for each in partitions if set(each.target) & set(goal.drain)]
    places = {broker: Place(state.brokers[broker].rack, state.brokers[broker].host) for broker in sorted(wanted)}
    return plan_moves(partitions, places, goal.replication_factor)


def with_sizes(moves: Sequence[Move], sizes: Sizes) -> list[Move]:
    return [
        move._replace(size_bytes=sizes.get((move.partition.leader, move.partition.topic, move.partition.index)))
        for move in moves
    ]


def read_plan_file(path: str) -> Assignment:
    """The replicas of each partition; a Failure names what is wrong."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    try:
        content = json.loads(text)
        found = {
            (str(each["topic"]), int(each["partition"])): tuple(int(broker) for broker in each["replicas"])
            for each in content["partitions"]
        }
    except ValueError as problem:
        raise Failure(f"{path} is no valid plan: {problem}") from None
    except (KeyError, TypeError) as problem:
        raise Failure(
            f"{path} is no plan ({type(problem).__name__}: {problem}): expected "
            '{"version": 1, "partitions": [{"topic": "pump", "partition": 0, "replicas": [1, 2]}]}'
        ) from None
    if not found:
        raise Failure(f"{path} has no partitions")
    return found


TIMEOUT_MS = 15_000
PREFERRED, UNCLEAN = 0, 1
ELECTION_ADVICE = {
    ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE: "the preferred leader is not running, or not in sync",
    ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE: "no replica is running that may lead; start one of its brokers",
}


class Refused(Failure):
    """The controller has refused all partitions, so that nothing has begun."""


def alter_reassignments(requests: BrokerRequests, targets: Mapping[tuple[str, int], tuple[int, ...] | None]) -> None:
    """Begin a reassignment of each partition, or cancel it where the target is None. A Failure names all refusals."""
    partitions = [
        (topic, reassigning.ReassignablePartition(partition_index=index, replicas=None if to is None else list(to)))
        for (topic, index), to in targets.items()
    ]
    refused: list[str] = []
    asked = 0
    for part in in_parts(partitions):
        topics = [reassigning.ReassignableTopic(name=topic, partitions=some) for topic, some in by_topic(part).items()]
        request = reassigning.AlterPartitionReassignmentsRequest(timeout_ms=TIMEOUT_MS, topics=topics)
        with _saying(f"{asked - len(refused)} of {len(targets)} were accepted", asked > len(refused)):
            answer = requests.ask_controller(request, reassigning.AlterPartitionReassignmentsResponse, 0)
            check(answer.error_code, answer.error_message, "reassignment", "Alter")
        asked += len(part)
        refused += [
            error_text(each.error_code, each.error_message, f"{topic.name}-{each.partition_index}")
            for topic in answer.responses
            for each in topic.partitions
            if each.error_code
        ]
    if refused and len(refused) == asked:
        raise Refused("; ".join(refused))
    if refused:
        raise Failure("; ".join(refused) + f"; the other {asked - len(refused)} were accepted")


@contextmanager
def _saying(what_was_done: str, is_any: bool) -> Iterator[None]:
    """A Failure of a later request says what became of the earlier ones."""
    try:
        yield
    except Failure as failure:
        if is_any:
            raise Failure(f"{failure.message}; {what_was_done}") from None
        raise


def move_replicas(requests: BrokerRequests, broker: KnownBroker, copies: Iterable[Copy], directory: str) -> None:
    """Begin to copy replicas to another log directory of their broker. The move of a replica that is in the directory
    is cancelled. A Failure names all refusals."""
    by_name = by_topic(each.key for each in copies)
    topics = [moving.AlterReplicaLogDirTopic(name=topic, partitions=some) for topic, some in by_name.items()]
    request = moving.AlterReplicaLogDirsRequest(dirs=[moving.AlterReplicaLogDir(path=directory, topics=topics)])
    refused = [
        error_text(each.error_code, None, f"{topic.topic_name}-{each.partition_index}")
        for topic in requests.ask(broker, request, moving.AlterReplicaLogDirsResponse, 2).results
        for each in topic.partitions
        if each.error_code
    ]
    if refused:
        raise Failure("; ".join(refused))


class ElectionResult(NamedTuple):
    topic: str
    partition: int
    error: ErrorCode
    reason: str


def elect_leaders(
    requests: BrokerRequests, partitions: Sequence[PartitionState], *, is_unclean: bool
) -> list[ElectionResult]:
    """The result of each partition. A Failure of a later request says how many leaders were elected before."""
    results: list[ElectionResult] = []
    kind = UNCLEAN if is_unclean else PREFERRED
    for part in in_parts((each.topic, each.index) for each in partitions):
        topics = [TopicPartitions(topic=topic, partitions=some) for topic, some in by_topic(part).items()]
        request = ElectLeadersRequest(election_type=kind, topic_partitions=topics, timeout_ms=TIMEOUT_MS)
        elected = sum(each.error is ErrorCode.NONE for each in results)
        with _saying(f"{elected} of {len(partitions)} were elected before", bool(results)):
            answer = requests.ask_controller(request, ElectLeadersResponse, 2)
            check(answer.error_code, None, "election", "Alter")
        for topic in answer.replica_election_results:
            for each in topic.partition_result:
                error = ErrorCode(each.error_code)
                reason = ELECTION_ADVICE.get(error) or (each.error_message or "").rstrip(".")
                results.append(ElectionResult(topic.topic, each.partition_id, error, reason))
    return results


DYNAMIC_TOPIC_CONFIG = 1  # the source of a setting
RATES = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
LEADERS, FOLLOWERS = "leader.replication.throttled.replicas", "follower.replication.throttled.replicas"


def set_throttle(requests: BrokerRequests, moves: Sequence[Move], rate: int) -> None:
    """Throttle the copies from the present replicas to the new ones to `rate` bytes per second on each broker."""
    leaders: dict[str, list[str]] = defaultdict(list)
    followers: dict[str, list[str]] = defaultdict(list)
    brokers: set[int] = set()
    for move in moves:
        if move.adding:
            leaders[move.partition.topic] += [f"{move.partition.index}:{broker}" for broker in move.before]
            followers[move.partition.topic] += [f"{move.partition.index}:{broker}" for broker in move.adding]
            brokers.update(move.before, move.adding)
    # Brokers first: a broker that refuses its rate leaves the topics unchanged, and a rate alone throttles nothing.
    _alter_brokers(requests, brokers, dict.fromkeys(RATES, str(rate)))
    _alter_topics(
        requests,
        {topic: {LEADERS: ",".join(leaders[topic]), FOLLOWERS: ",".join(followers[topic])} for topic in leaders},
    )


def remove_throttle(requests: BrokerRequests, topics: Iterable[str], brokers: Iterable[int]) -> None:
    throttled = _throttled_topics(requests, topics)
    _alter_topics(requests, {topic: {LEADERS: None, FOLLOWERS: None} for topic in throttled})
    _alter_brokers(requests, brokers, dict.fromkeys(RATES))


def remove_throttle_of(requests: BrokerRequests, moves: Sequence[Move]) -> None:
    brokers = {broker for move in moves for broker in (*move.before, *move.after)}
    remove_throttle(requests, {move.partition.topic for move in moves}, brokers)


def _throttled_topics(requests: BrokerRequests, topics: Iterable[str]) -> list[str]:
    """Those of the topics that have a throttle, so that the others are not changed."""
    return [
        each.resource_name
        for each in describe_resources(requests, Kind.TOPIC, sorted(topics), [LEADERS, FOLLOWERS])
        if any(config.config_source == DYNAMIC_TOPIC_CONFIG for config in each.configs)
    ]


def _alter_topics(requests: BrokerRequests, changes: Mapping[str, Values]) -> None:
    for part in in_parts(changes.items(), TOPICS_PER_REQUEST):
        request = alter_request(Kind.TOPIC, {topic: changes_to(values) for topic, values in part})
        _check(requests.ask_controller(request, IncrementalAlterConfigsResponse, 1))


def _alter_brokers(requests: BrokerRequests, brokers: Iterable[int], values: Values) -> None:
    """Only a broker itself accepts its settings. Brokers that do not run copy nothing, and are left out."""
    known = requests.describe().brokers
    for broker_id in sorted(brokers):
        broker = known.get(broker_id)
        if broker is not None and not broker.is_fenced:
            request = alter_request(Kind.BROKER, {str(broker_id): changes_to(values)})
            _check(requests.ask(broker, request, IncrementalAlterConfigsResponse, 1))


def _check(answer: IncrementalAlterConfigsResponse) -> None:
    for each in answer.responses:
        subject = f"throttle of {Kind(each.resource_type).name.lower()} {each.resource_name}"
        check(each.error_code, each.error_message, subject, "AlterConfigs")
