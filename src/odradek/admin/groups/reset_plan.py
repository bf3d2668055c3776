"""The plan of `odradek group reset`: which partitions are reset, and to which offsets.

The results are those of `kafka-consumer-groups --reset-offsets`.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition

from odradek.admin.cluster import without_leader
from odradek.admin.errors import NoSuchGroup
from odradek.admin.groups.state import read_group, read_offsets
from odradek.admin.kafka_admin import OffsetSpec
from odradek.conventions.failures import Failure
from odradek.conventions.figures import INT32_MAX, INT64_MAX, count_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from odradek.admin.cluster import Cluster
    from odradek.admin.groups.state import PartitionKey

Bounds = tuple[int, int]  # earliest and latest offset of a partition


@dataclass(frozen=True, slots=True)
class Move:
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


def choose_partitions(cluster: Cluster, topics: Iterable[str], default: Iterable[PartitionKey]) -> list[PartitionKey]:
    asked = [split_topic(text) for text in topics]
    described = {each.name: each for each in cluster.describe_topics({topic for topic, _partitions in asked})}
    chosen: set[PartitionKey] = set()
    for topic, wanted in asked:
        partitions = {each.id for each in described[topic].partitions}
        for partition in wanted or partitions:
            if partition not in partitions:
                raise Failure(
                    f"topic {topic} has no partition {partition}; it has {count_text(len(partitions), 'partition')}"
                )
            chosen.add((topic, partition))
    return sorted(chosen or default)


def split_topic(text: str) -> tuple[str, list[int]]:
    """Split `pump:0,2` into a topic and partitions; a colon without numbers after it belongs to the name."""
    topic, _, numbers = text.rpartition(":")
    if not topic or not all(number.isdecimal() and len(number) <= 10 for number in numbers.split(",")):
        return text, []
    return topic, [int(number) for number in numbers.split(",")]


def read_file(lines: IO[str]) -> dict[PartitionKey, int]:
    """The format of `kafka-consumer-groups --reset-offsets --from-file`, which its `--export` writes."""
    wanted: dict[PartitionKey, int] = {}
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


def read_bounds(cluster: Cluster, keys: Iterable[PartitionKey]) -> dict[PartitionKey, Bounds]:
    """Failure for a partition that does not exist, or that has no leader."""
    wanted = list(keys)
    leaderless = without_leader(cluster.describe_topics({topic for topic, _partition in wanted}))
    for topic, partition in wanted:
        if (topic, partition) in leaderless:
            raise Failure(
                f"{topic}-{partition} has no leader, and its offsets are not known; "
                f"name the partitions to reset without it, as in {topic}:0,1"
            )
    earliest = _list_offsets(cluster, wanted, OffsetSpec.earliest())  # type: ignore[no-untyped-call]  # confluent_kafka has no types here
    latest = _list_offsets(cluster, wanted, OffsetSpec.latest())  # type: ignore[no-untyped-call]
    return {key: (earliest[key], latest[key]) for key in wanted}


def _list_offsets(cluster: Cluster, keys: Iterable[PartitionKey], spec: OffsetSpec) -> dict[PartitionKey, int]:
    listed = cluster.list_offsets(keys, spec)
    for failure in listed.failures.values():
        raise failure
    return listed.offsets


def plan_moves(
    before: Mapping[PartitionKey, int], bounds: Mapping[PartitionKey, Bounds], goal: Callable[[PartitionKey], int]
) -> list[Move]:
    """Limit each goal to the offsets that the partition has."""
    moves = []
    for key, (earliest, latest) in sorted(bounds.items()):
        asked = goal(key)
        moves.append(Move(*key, before.get(key), asked, min(max(asked, earliest), latest)))
    return moves


def shifted(before: Mapping[PartitionKey, int], key: PartitionKey, shift: int) -> int:
    if key not in before:
        raise Failure(f"{key[0]}-{key[1]}: no committed offset to shift; exclude the partition with --topic")
    return before[key] + shift


def offsets_at_time(cluster: Cluster, bounds: Mapping[PartitionKey, Bounds], time_ms: int) -> dict[PartitionKey, int]:
    """Offset of the first record at or after the time; the end of the partition if there is none."""
    if time_ms < 0:  # negative timestamps have special meanings in the protocol
        return {key: earliest for key, (earliest, _latest) in bounds.items()}
    found = _list_offsets(cluster, bounds, OffsetSpec.for_timestamp(time_ms))
    return {key: latest if found[key] < 0 else found[key] for key, (_earliest, latest) in bounds.items()}


REQUEST_TIMEOUT_S = 15.0


def committed_offsets(cluster: Cluster, name: str, *, is_new_allowed: bool) -> dict[PartitionKey, int]:
    """Failure while members are active: their next commit would overwrite the change."""
    try:
        group = read_group(cluster, name)
    except NoSuchGroup:
        if is_new_allowed:
            return {}
        raise
    if group.is_active:
        members = count_text(len(group.members), "active member")
        raise Failure(
            f"group {name} is {group.state} with {members}; stop them first: they would commit over the change"
        )
    return read_offsets(cluster, name)


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
    offsets = [TopicPartition(move.topic, move.partition, move.after) for move in moves]
    request = ConsumerGroupTopicPartitions(name, offsets)
    futures = cluster.admin().alter_consumer_group_offsets([request], request_timeout=REQUEST_TIMEOUT_S)
    for each in cluster.finish(futures[name], f"group {name}", "Read").topic_partitions:
        if each.error is not None:
            raise cluster.failure(each.error, f"group {name}, {each.topic}-{each.partition}", "Read")
