"""`odradek group reset`: moves committed offsets. Without --execute it only shows what would change."""

from __future__ import annotations

import time
from typing import IO, TYPE_CHECKING

import click

from odradek.admin.resets import (
    Goal,
    alter,
    choose_partitions,
    committed_offsets,
    consequence,
    plan_moves,
    read_file,
)
from odradek.cli.client.options import cluster_options, group_argument
from odradek.cli.framework.commands import command
from odradek.cli.framework.output import note, print_columns, print_json, say
from odradek.cli.framework.parameter_types import OFFSET, TOPIC_NAME, NumberType
from odradek.cli.framework.times import DurationType, TimeType
from odradek.conventions.failures import Failure
from odradek.conventions.figures import INT64_MAX, count_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odradek.admin.cluster import Cluster
    from odradek.admin.resets import Move

SHIFT = NumberType(-INT64_MAX, INT64_MAX)
EXACTLY_ONE = "give one of --to-earliest, --to-latest, --to-time, --by-duration, --to-offset, --shift, --from-file"


@command(
    examples=[
        ("show what would change", "odradek group reset billing --to-earliest"),
        ("apply it", "odradek group reset billing --to-earliest --execute"),
        ("some partitions of a topic", "odradek group reset billing --topic pump:0,2 --to-time -1h --execute"),
        ("skip ten records everywhere", "odradek group reset billing --shift 10 --execute"),
        ("from lines of topic,partition,offset", "odradek group reset billing --from-file offsets.csv --execute"),
    ]
)
@group_argument
@click.option(
    "--topic",
    "topics",
    metavar="TOPIC[:P,P…]",
    type=TOPIC_NAME,
    multiple=True,
    help="Only this topic, or these of its partitions. Default: all with a committed offset. Repeatable.",
)
@click.option("--to-earliest", is_flag=True, help="To the earliest record.")
@click.option("--to-latest", is_flag=True, help="To the end, so that only new records are read.")
@click.option("--to-time", type=TimeType(), metavar="TIME", help="To the first record written at or after a time.")
@click.option(
    "--by-duration",
    type=DurationType(),
    metavar="DURATION",
    help="To the first record written since this long ago, such as 1h.",
)
@click.option("--to-offset", type=OFFSET, metavar="OFFSET", help="To this offset in every partition.")
@click.option("--shift", type=SHIFT, metavar="N", help="Forward by N records, or back when N is negative.")
@click.option(
    "--from-file",
    type=click.File("r", encoding="utf-8", errors="replace"),
    metavar="FILE",
    help="To the offsets in a file with topic,partition,offset on each line.",
)
@click.option("--execute", is_flag=True, help="Apply the change. Without this option it is only shown.")
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
    """Move the committed offsets of a group. The group must have no active members."""
    ways = [to_earliest, to_latest, *(each is not None for each in (to_time, by_duration, to_offset, shift, from_file))]
    if sum(ways) != 1:
        raise click.UsageError(EXACTLY_ONE)
    if from_file is not None and topics:
        raise click.UsageError("--from-file and --topic exclude each other: the file names its topics")
    before = committed_offsets(cluster, name, is_new_allowed=bool(topics) or from_file is not None)
    wanted = read_file(from_file) if from_file is not None else {}
    keys = sorted(wanted) if from_file is not None else choose_partitions(cluster, topics, before)
    if not keys:
        nothing = (
            "the file contains no offsets"
            if from_file is not None
            else f"group {name} has no committed offsets; name a topic with --topic"
        )
        raise Failure(nothing)
    if by_duration is not None:
        to_time = int(time.time() * 1000) - by_duration
    if from_file is not None:
        goal = Goal("offsets", offsets=wanted)
    elif to_time is not None:
        goal = Goal("time", to_time)
    elif shift is not None:
        goal = Goal("shift", shift)
    elif to_offset is not None:
        goal = Goal("offset", to_offset)
    else:
        goal = Goal("earliest" if to_earliest else "latest")
    moves = plan_moves(cluster, before, keys, goal)
    if as_json and execute:
        alter(cluster, name, moves)  # first, because the rows say that it was done
        show(name, moves, execute, as_json)
        return
    show(name, moves, execute, as_json)
    if any(each.change or each.before is None for each in moves):
        apply_or_remind(cluster, name, moves, execute)


def apply_or_remind(cluster: Cluster, name: str, moves: Sequence[Move], execute: bool) -> None:
    if not execute:
        note("nothing was changed; add --execute to apply it")
        return
    alter(cluster, name, moves)
    say(f"group {name}: {count_text(len(moves), 'offset')} set")


def show(name: str, moves: Sequence[Move], is_done: bool, as_json: bool) -> None:
    if as_json:
        for each in moves:
            print_json(
                {
                    "group": name,
                    "topic": each.topic,
                    "partition": each.partition,
                    "before": each.before,
                    "after": each.after,
                    "executed": is_done,
                }
            )
    else:
        print_columns(["TOPIC", "PARTITION", "BEFORE", "AFTER", "CHANGE"], [as_row(each) for each in moves])
        say(consequence(moves))
    for clipping in filter(None, (each.clipping for each in moves)):
        note(clipping)


def as_row(move: Move) -> tuple[object, ...]:
    if move.before is None:
        return move.topic, move.partition, "-", move.after, "new"
    return move.topic, move.partition, move.before, move.after, f"{move.change:+}" if move.change else "0"
