"""A plan of reassignments: which replicas each partition has before and after, and the JSON file of
kafka-reassign-partitions: `{"version": 1, "partitions": [{"topic", "partition", "replicas"}]}`.

Replicas stay where they are, as far as the brokers allow it and have an equal share. New ones go to racks and machines
without a replica of the partition first, then to the broker with the fewest.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from odradek.admin.errors import NoSuchTopic
from odradek.conventions.failures import Failure
from odradek.conventions.figures import count_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from odradek.admin.cluster_state import ClusterState, PartitionState
    from odradek.admin.log_directories import Sizes

Replicas = tuple[int, ...]
Assignment = dict[tuple[str, int], Replicas]


class Place(NamedTuple):
    """Where a broker is."""

    rack: str | None
    machine: str


@dataclass(frozen=True, slots=True)
class Move:
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


class NotEnoughBrokers(ValueError):
    """There are fewer brokers than a partition needs replicas."""

    def __init__(self, partition: PartitionState, needed: int, available: int) -> None:
        super().__init__(partition, needed, available)
        self.partition = partition
        self.needed = needed
        self.available = available


def plan_moves(
    partitions: Sequence[PartitionState], places: Mapping[int, Place], replication_factor: int | None = None
) -> list[Move]:
    """Spread the partitions evenly over these brokers; without a replication factor each keeps its own. Partitions that
    do not change are left out."""
    factors = {each: replication_factor or len(each.target) for each in partitions}
    for partition, factor in factors.items():
        if factor > len(places):
            raise NotEnoughBrokers(partition, factor, len(places))
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
            places[broker].rack is not None and places[broker].rack in racks,
            places[broker].machine in machines,
            load[broker],
            broker,
        ),
    )


def _move_one(kept: Mapping[PartitionState, list[int]], places: Mapping[int, Place], load: Counter[int]) -> bool:
    """Move one replica from a broker to one that has at least two fewer, if that leaves as many racks and machines with
    a replica of the partition."""
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


def planned_moves(
    state: ClusterState,
    names: Sequence[str],
    indexes: Sequence[int],
    to: Sequence[int] | None,
    drain: Sequence[int],
    replication_factor: int | None,
) -> list[Move]:
    running = {broker.broker_id for broker in state.brokers.values() if not broker.is_fenced}
    wanted = set(to) if to else running
    for broker in sorted(wanted - running):
        raise Failure(f"broker {broker} does not run; running brokers: {', '.join(map(str, sorted(running)))}")
    wanted -= set(drain)
    partitions = select_partitions(state, names, indexes)
    if not names:  # everything that a drained broker has
        partitions = [each for each in partitions if set(each.target) & set(drain)]
    places = {broker: Place(state.brokers[broker].rack, state.brokers[broker].host) for broker in sorted(wanted)}
    try:
        return plan_moves(partitions, places, replication_factor)
    except NotEnoughBrokers as problem:
        raise Failure(
            f"{problem.partition.name} needs {problem.needed} brokers for its replicas, and {problem.available} "
            "remain: add brokers, or give a lower --replication-factor"
        ) from None


def with_sizes(moves: Sequence[Move], sizes: Sizes) -> list[Move]:
    return [
        replace(move, size_bytes=sizes.get((move.partition.leader, move.partition.topic, move.partition.index)))
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
