"""Where `odradek group reset` would move a group: the partitions that are meant, and the offset that each is to get.

The answers are those of `kafka-consumer-groups --reset-offsets`.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

from odradek.cli.framework.failure import Failure
from odradek.cli.framework.parameter_types import INT32_MAX, INT64_MAX

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from odradek.cli.client.cluster import Cluster
    from odradek.cli.group.state import Place

Bounds = tuple[int, int]  # of a partition: its first offset and its end


@dataclass(frozen=True, slots=True)
class Move:
    """`before` is None where nothing was committed; `asked` differs from `after` where the partition ends before it."""

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
        """What the user should hear of an offset that the partition does not have."""
        if self.asked == self.after:
            return ""
        where = "past the end" if self.asked > self.after else "before the first record that is kept"
        return f"{self.topic}-{self.partition}: {self.asked} is {where}; {self.after} is taken"


def choose_places(cluster: Cluster, topics: Iterable[str], default: Iterable[Place]) -> list[Place]:
    chosen: set[Place] = set()
    for text in topics:
        topic, asked = split_topic(text)
        partitions = {each.id for each in cluster.describe_topic(topic).partitions}
        for partition in asked or partitions:
            if partition not in partitions:
                raise Failure(f"topic {topic} has no partition {partition}; it has {len(partitions)}")
            chosen.add((topic, partition))
    return sorted(chosen or default)


def split_topic(text: str) -> tuple[str, list[int]]:
    """`pump:0,2`; a colon that no numbers follow belongs to the name."""
    topic, _, numbers = text.rpartition(":")
    if not topic or not all(number.isdecimal() and len(number) <= 10 for number in numbers.split(",")):
        return text, []
    return topic, [int(number) for number in numbers.split(",")]


def read_file(lines: IO[str]) -> dict[Place, int]:
    """The format of `kafka-consumer-groups --reset-offsets --from-file`, which its `--export` writes."""
    wanted: dict[Place, int] = {}
    for number, row in enumerate(csv.reader(lines), 1):
        if not row or row[0].startswith("#"):
            continue
        try:
            topic, partition, offset = row
            place = (topic.strip(), int(partition))
            if not place[0] or not 0 <= place[1] <= INT32_MAX or not 0 <= int(offset) <= INT64_MAX:
                raise ValueError(row)
            wanted[place] = int(offset)
        except ValueError:
            raise Failure(f"line {number} of the file is not topic,partition,offset: {','.join(row)}") from None
    return wanted


def read_bounds(cluster: Cluster, places: Iterable[Place]) -> dict[Place, Bounds]:
    by_topic: dict[str, list[int]] = {}
    for topic, partition in places:
        by_topic.setdefault(topic, []).append(partition)
    bounds: dict[Place, Bounds] = {}
    for topic, partitions in by_topic.items():
        cluster.describe_topic(topic)
        earliest = cluster.earliest_offsets(topic, partitions)
        latest = cluster.latest_offsets(topic, partitions)
        bounds.update(((topic, each), (earliest[each], latest[each])) for each in partitions)
    return bounds


def plan_moves(before: Mapping[Place, int], bounds: Mapping[Place, Bounds], goal: Callable[[Place], int]) -> list[Move]:
    """Nobody can read before the first record or after the last."""
    moves = []
    for place, (earliest, latest) in sorted(bounds.items()):
        asked = goal(place)
        moves.append(Move(*place, before.get(place), asked, min(max(asked, earliest), latest)))
    return moves


def shifted(before: Mapping[Place, int], place: Place, shift: int) -> int:
    if place not in before:
        raise Failure(f"{place[0]}-{place[1]}: nothing is committed that could be shifted; leave it out with --topic")
    return before[place] + shift


def offsets_at_time(cluster: Cluster, bounds: Mapping[Place, Bounds], time_ms: int) -> dict[Place, int]:
    """The first record at or after the time, or the end where there is none."""
    if time_ms < 0:  # before 1970, where the protocol gives times meanings of their own
        return {place: earliest for place, (earliest, _latest) in bounds.items()}
    by_topic: dict[str, list[int]] = {}
    for topic, partition in bounds:
        by_topic.setdefault(topic, []).append(partition)
    found = {topic: cluster.offsets_at(topic, partitions, time_ms) for topic, partitions in by_topic.items()}
    return {
        (topic, partition): latest if found[topic][partition] < 0 else found[topic][partition]
        for (topic, partition), (_earliest, latest) in bounds.items()
    }
