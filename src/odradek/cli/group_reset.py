"""`odradek group reset`: where a group goes on reading. Shows before and after; only --execute changes anything."""

from __future__ import annotations

import csv
import time
from typing import IO, TYPE_CHECKING

import click
from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition

from odradek.cli.commands import command
from odradek.cli.failure import Failure
from odradek.cli.group_state import read_group, read_offsets
from odradek.cli.options import cluster_options
from odradek.cli.output import count_text, note, print_columns, print_json, say
from odradek.cli.parameter_types import INT32_MAX, INT64_MAX, OFFSET, TEXT, TOPIC_NAME, NumberType
from odradek.cli.times import DurationType, TimeType

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from odradek.cli.cluster import Cluster
    from odradek.cli.group_state import Place

REQUEST_TIMEOUT_S = 15.0
SHIFT = NumberType(-INT64_MAX, INT64_MAX)
MAKES_SENSE = "give one of --to-earliest, --to-latest, --to-time, --by-duration, --to-offset, --shift, --from-file"


@command(
    examples=[
        ("what would change", "odradek group reset billing --to-earliest"),
        ("do it", "odradek group reset billing --to-earliest --execute"),
        ("one topic, or some partitions of it", "odradek group reset billing --topic pump:0,2 --to-time -1h --execute"),
        ("skip ten records everywhere", "odradek group reset billing --shift 10 --execute"),
        ("from lines of topic,partition,offset", "odradek group reset billing --from-file offsets.csv --execute"),
    ]
)
@click.argument("name", type=TEXT)
@click.option(
    "--topic",
    "topics",
    metavar="TOPIC[:P,P…]",
    type=TOPIC_NAME,
    multiple=True,
    help="Only this topic, or these partitions of it; all that the group has committed if absent. Repeatable.",
)
@click.option("--to-earliest", is_flag=True, help="To the first record that is kept.")
@click.option("--to-latest", is_flag=True, help="To the end: only new records are read.")
@click.option("--to-time", type=TimeType(), metavar="TIME", help="To the first record at or after a time.")
@click.option("--by-duration", type=DurationType(), metavar="DURATION", help="To the first record this long ago.")
@click.option("--to-offset", type=OFFSET, metavar="OFFSET", help="To this offset.")
@click.option("--shift", type=SHIFT, metavar="N", help="Forward by N records, or back when N is negative.")
@click.option(
    "--from-file",
    type=click.File("r", encoding="utf-8", errors="replace"),
    metavar="FILE",
    help="To what the file says: topic,partition,offset a line.",
)
@click.option("--execute", is_flag=True, help="Do it; without this only what would change is shown.")
@cluster_options
def reset(
    *,
    name: str,
    topics: tuple[str, ...],
    to_earliest: bool,
    to_latest: bool,
    to_time: int | None,
    by_duration: int | None,
    to_offset: int | None,
    shift: int | None,
    from_file: IO[str] | None,
    execute: bool,
    cluster: Cluster,
    as_json: bool,
) -> None:
    """Move the committed offsets of a group, which must have no members while that is done."""
    ways = [to_earliest, to_latest, *(each is not None for each in (to_time, by_duration, to_offset, shift, from_file))]
    if sum(ways) != 1:
        raise click.UsageError(MAKES_SENSE)
    before = committed_offsets(cluster, name, is_new_allowed=bool(topics) or from_file is not None)
    wanted = read_file(from_file) if from_file is not None else None
    places = choose_places(cluster, topics, before) if wanted is None else sorted(wanted)
    if not places:
        raise Failure(f"group {name} has committed nothing; name a topic with --topic")
    if by_duration is not None:
        to_time = int(time.time() * 1000) - by_duration
    bounds = read_bounds(cluster, places)

    def goal(place: Place) -> int:
        earliest, latest = bounds[place]
        if wanted is not None:
            return wanted[place]
        if shift is not None:
            return before.get(place, earliest) + shift
        if to_offset is not None:
            return to_offset
        return earliest if to_earliest else latest

    after = at_time(cluster, places, bounds, to_time) if to_time is not None else clip(places, bounds, goal)
    show(name, before, after, execute, as_json)
    if not execute:
        note("nothing was changed; --execute does it")
        return
    alter(cluster, name, after)
    if not as_json:
        say(f"group {name}: {count_text(len(after), 'offset')} set")


def committed_offsets(cluster: Cluster, name: str, *, is_new_allowed: bool) -> dict[Place, int]:
    """Failure while members are active: what they commit next would undo it."""
    try:
        group = read_group(cluster, name)
    except Failure:
        if is_new_allowed:
            return {}
        raise
    if group.is_active:
        members = count_text(len(group.members), "active member")
        raise Failure(f"group {name} is {group.state} with {members}; stop them first, or they commit over it")
    return read_offsets(cluster, name)


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
    """The format of `kafka-consumer-groups --reset-offsets --from-file`."""
    wanted: dict[Place, int] = {}
    for number, row in enumerate(csv.reader(lines), 1):
        if not row or row[0].startswith("#"):
            continue
        try:
            topic, partition, offset = row
            place = (topic.strip(), int(partition))
            if not place[0] or not 0 <= place[1] <= INT32_MAX:
                raise ValueError(row)
            wanted[place] = int(offset)
        except ValueError:
            raise Failure(f"line {number} of the file is not topic,partition,offset: {','.join(row)}") from None
    return wanted


def read_bounds(cluster: Cluster, places: Iterable[Place]) -> dict[Place, tuple[int, int]]:
    by_topic: dict[str, list[int]] = {}
    for topic, partition in places:
        by_topic.setdefault(topic, []).append(partition)
    bounds: dict[Place, tuple[int, int]] = {}
    for topic, partitions in by_topic.items():
        cluster.describe_topic(topic)
        earliest = cluster.earliest_offsets(topic, partitions)
        latest = cluster.latest_offsets(topic, partitions)
        bounds.update(((topic, each), (earliest[each], latest[each])) for each in partitions)
    return bounds


def clip(
    places: Iterable[Place], bounds: dict[Place, tuple[int, int]], goal: Callable[[Place], int]
) -> dict[Place, int]:
    """Nobody can read before the first record or after the last."""
    return {place: min(max(goal(place), bounds[place][0]), bounds[place][1]) for place in places}


def at_time(
    cluster: Cluster, places: Iterable[Place], bounds: dict[Place, tuple[int, int]], time_ms: int
) -> dict[Place, int]:
    if time_ms < 0:  # before 1970, where the protocol gives times meanings of their own
        return {place: bounds[place][0] for place in places}
    after: dict[Place, int] = {}
    for topic, partition in places:
        found = cluster.offsets_at(topic, [partition], time_ms)[partition]
        after[topic, partition] = bounds[topic, partition][1] if found < 0 else found
    return after


def show(name: str, before: dict[Place, int], after: dict[Place, int], is_done: bool, as_json: bool) -> None:
    rows = [(*place, before.get(place), offset) for place, offset in sorted(after.items())]
    if not as_json:
        print_columns(["TOPIC", "PARTITION", "BEFORE", "AFTER"], rows)
        return
    for topic, partition, old, new in rows:
        print_json(
            {"group": name, "topic": topic, "partition": partition, "before": old, "after": new, "executed": is_done}
        )


def alter(cluster: Cluster, name: str, offsets: dict[Place, int]) -> None:
    request = ConsumerGroupTopicPartitions(name, [TopicPartition(*place, offset) for place, offset in offsets.items()])
    futures = cluster.admin().alter_consumer_group_offsets([request], request_timeout=REQUEST_TIMEOUT_S)
    for each in cluster.finish(futures[name], f"group {name}").topic_partitions:
        if each.error is not None:
            raise cluster.failure(each.error, f"group {name}, {each.topic}-{each.partition}")
