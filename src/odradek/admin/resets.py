"""Resets of groups: which partitions, to which offsets, and the commit of these. Commands and the console translate
their input to a `Goal`; the results are those of `kafka-consumer-groups --reset-offsets`."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from functools import partial
from typing import IO, NamedTuple

from odradek.admin.broker_requests import KnownBroker, by_topic, in_parts
from odradek.admin.cluster import Cluster, chosen_partitions, without_leader
from odradek.admin.errors import NoSuchGroup, check
from odradek.admin.groups import read_committed_offsets, read_group
from odradek.admin.offsets import EARLIEST, LATEST, Key, first_at, list_offsets
from odradek.conventions.dataclass import dataclass
from odradek.conventions.failures import Failure
from odradek.conventions.figures import INT32_MAX, INT64_MAX, count_text
from odradek.protocol.messages import offset_commit

COMMIT_VERSION = 6  # of Apache Kafka 2.1
Bounds = tuple[int, int]  # earliest and latest offset of a partition


@dataclass(frozen=True, slots=True)
class Goal:
    """Where to: earliest, latest, time (`number` in ms), offset (`number`), shift (by `number`), or `offsets`."""

    way: str
    number: int = 0
    offsets: Mapping[Key, int] = field(default_factory=dict)


class Move(NamedTuple):
    """`before` is None if nothing was committed. `after` is `asked`, limited to the offsets of the partition."""

    topic: str
    partition: int
    before: int | None
    asked: int
    after: int

    @property
    def change(self) -> int:
        return 0 if self.before is None else self.after - self.before

    @property
    def clipping(self) -> str:
        """A note for the user if the partition does not have the requested offset."""
        if self.asked == self.after:
            return ""
        where = "after the end" if self.asked > self.after else "before the earliest record"
        return f"{self.topic}-{self.partition}: {self.asked} is {where}; using {self.after}"


def choose_partitions(cluster: Cluster, topics: Iterable[str], default: Iterable[Key]) -> list[Key]:
    asked = [split_topic(text) for text in topics]
    described = {each.name: each for each in cluster.describe_topics({topic for topic, _partitions in asked})}
    chosen = {(topic, each) for topic, wanted in asked for each in chosen_partitions(described[topic], wanted)}
    return sorted(chosen or default)


def split_topic(text: str) -> tuple[str, list[int]]:
    """Split `pump:0,2` into a topic and partitions; a colon without numbers after it belongs to the name."""
    topic, _, numbers = text.rpartition(":")
    if not topic or not all(number.isdecimal() and len(number) <= 10 for number in numbers.split(",")):
        return text, []
    return topic, [int(number) for number in numbers.split(",")]


def read_file(lines: IO[str]) -> dict[Key, int]:
    """The format of `kafka-consumer-groups --reset-offsets --from-file`, which its `--export` writes."""
    wanted: dict[Key, int] = {}
    for number, row in enumerate(csv.reader(lines), 1):
        if not row or row[0].startswith("#"):
            continue
        try:
            topic, partition, offset = row
            key = (topic.strip(), int(partition))
            if not key[0] or not 0 <= key[1] <= INT32_MAX or not 0 <= int(offset) <= INT64_MAX:
                raise ValueError(row)
            wanted[key] = int(offset)
        except ValueError:
            raise Failure(f"line {number} of the file is not topic,partition,offset: {','.join(row)}") from None
    return wanted


def read_bounds(cluster: Cluster, keys: Iterable[Key]) -> dict[Key, Bounds]:
    """Failure for a partition that does not exist, or that has no leader."""
    wanted = list(keys)
    leaderless = without_leader(cluster.describe_topics({topic for topic, _partition in wanted}))
    for topic, partition in wanted:
        if (topic, partition) in leaderless:
            raise Failure(
                f"{topic}-{partition} has no leader, and its offsets are not known; "
                f"name the partitions to reset without it, as in {topic}:0,1"
            )
    earliest = list_offsets(cluster.requests, wanted, EARLIEST).all()
    latest = list_offsets(cluster.requests, wanted, LATEST).all()
    return {key: (earliest[key], latest[key]) for key in wanted}


def plan_moves(cluster: Cluster, before: Mapping[Key, int], keys: Iterable[Key], goal: Goal) -> list[Move]:
    """The new offset of each partition, limited to the offsets that the partition has."""
    bounds = read_bounds(cluster, keys)
    if goal.way == "time":
        earliest, latest = ({key: each[end] for key, each in bounds.items()} for end in (0, 1))
        goals: Mapping[Key, int] = first_at(cluster.requests, goal.number, earliest, latest)
    else:
        goals = {key: _goal_of(goal, key, before, bounds[key]) for key in bounds}
    return [
        Move(*key, before.get(key), goals[key], min(max(goals[key], first), last))
        for key, (first, last) in sorted(bounds.items())
    ]


def _goal_of(goal: Goal, key: Key, before: Mapping[Key, int], bounds: Bounds) -> int:
    if goal.way == "shift":
        if key not in before:
            raise Failure(f"{key[0]}-{key[1]}: no committed offset to shift; exclude the partition with --topic")
        return before[key] + goal.number
    if goal.way == "offset":
        return goal.number
    return goal.offsets[key] if goal.way == "offsets" else bounds[goal.way == "latest"]


def committed_offsets(cluster: Cluster, name: str, *, is_new_allowed: bool) -> dict[Key, int]:
    """Failure while members are active: their next commit would overwrite the change."""
    try:
        group = read_group(cluster, name)
    except NoSuchGroup:
        if is_new_allowed:
            return {}
        raise
    if group.is_active:
        members = count_text(len(group.members), "active member")
        advice = "stop them first: they would commit over the change"
        raise Failure(f"group {name} is {group.state} with {members}; {advice}")
    return read_committed_offsets(cluster.requests, name)


def consequence(moves: Sequence[Move]) -> str:
    """What the change means for the consumers of the group."""
    again = -sum(move.change for move in moves if move.change < 0)
    skipped = sum(move.change for move in moves if move.change > 0)
    new = sum(move.before is None for move in moves)
    facts = [f"{count_text(again, 'record')} to be read again"] if again else []
    facts += [f"{count_text(skipped, 'record')} to be skipped"] if skipped else []
    facts += [f"{count_text(new, 'partition')} committed for the first time"] if new else []
    return ", ".join(facts) or "no offset changes"


def alter(cluster: Cluster, name: str, moves: Sequence[Move]) -> None:
    """Failure if members have become active, or have committed since the moves were planned."""
    before = committed_offsets(cluster, name, is_new_allowed=True)
    if any(before.get((move.topic, move.partition)) != move.before for move in moves):
        raise Failure(f"group {name} has committed other offsets since the preview; look at a new preview")
    for some in in_parts(moves):
        _commit(cluster, name, some)


def _commit(cluster: Cluster, name: str, moves: Sequence[Move]) -> None:
    new_partition = partial(offset_commit.OffsetCommitRequestPartition, committed_metadata=None)
    by_name = by_topic(
        (each.topic, new_partition(partition_index=each.partition, committed_offset=each.after)) for each in moves
    )
    topics = [offset_commit.OffsetCommitRequestTopic(name=topic, partitions=some) for topic, some in by_name.items()]
    request = offset_commit.OffsetCommitRequest(group_id=name, member_id="", topics=topics)
    answers: list[offset_commit.OffsetCommitResponse] = []

    def ask(coordinator: KnownBroker, _names: list[str]) -> dict[str, int]:
        answers[:] = [cluster.requests.ask(coordinator, request, offset_commit.OffsetCommitResponse, COMMIT_VERSION)]
        codes = (each.error_code for topic in answers[0].topics for each in topic.partitions)
        return {name: next(filter(None, codes), 0)}

    error_code = cluster.requests.ask_coordinators([name], ask)[name]
    for topic in answers[0].topics if answers else ():
        for each in topic.partitions:
            check(each.error_code, None, f"group {name}, {topic.name}-{each.partition_index}", "Read")
    check(error_code, None, f"group {name}", "Read")
