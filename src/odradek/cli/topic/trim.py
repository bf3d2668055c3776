"""`odradek topic trim`: delete the oldest records of a topic (DeleteRecords)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from odradek.admin.topics import delete_records
from odradek.cli.client.options import cluster_options, topic_argument
from odradek.cli.framework.commands import command
from odradek.cli.framework.confirmation import confirm, yes_option
from odradek.cli.framework.output import print_columns, print_json, say
from odradek.cli.framework.parameter_types import OFFSET, PARTITION
from odradek.cli.framework.times import TimeType
from odradek.conventions.failures import Failure
from odradek.conventions.figures import count_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odradek.admin.cluster import Cluster

WAYS = "give one of --before-offset, --before-time, --keep-last, --all"


@dataclass(frozen=True, slots=True)
class Trim:
    """Records from `earliest` to `start` (exclusive) of a partition are deleted.

    `deleted` counts offsets: compaction leaves offsets without a record, so it is the largest number of records.
    """

    partition: int
    earliest: int
    start: int
    latest: int

    @property
    def deleted(self) -> int:
        return max(self.start - self.earliest, 0)


@command(
    examples=[
        ("everything before an offset, after a question", "odradek topic trim pump -p 0 --before-offset 1200"),
        ("what is older than a day, in all partitions", "odradek topic trim pump --before-time -1d --yes"),
        ("all but the last 1,000 records of each partition", "odradek topic trim pump --keep-last 1000 --yes"),
        ("every record; the topic stays", "odradek topic trim pump --all --yes"),
    ]
)
@topic_argument
@click.option("--before-offset", type=OFFSET, metavar="N", help="Delete records before this offset.")
@click.option(
    "--before-time", type=TimeType(), metavar="TIME", help="Delete records before a time: ISO, epoch ms, or -1h."
)
@click.option("--keep-last", type=OFFSET, metavar="N", help="Delete all but the last N offsets of each partition.")
@click.option("--all", "everything", is_flag=True, help="Delete all records.")
@click.option(
    "--partition", "-p", "partitions", type=PARTITION, metavar="N", multiple=True,
    help="Only this partition. Default: all. Repeatable.",
)  # fmt: skip
@yes_option
@cluster_options
def trim(topic: str, partitions: tuple[int, ...], yes: bool, cluster: Cluster, as_json: bool, **ways: Any) -> None:
    """Delete the oldest records of a topic, up to an offset or a time. The offsets of the others do not change."""
    if sum(value is not None and value is not False for value in ways.values()) != 1:
        raise click.UsageError(WAYS)
    trims = plan_trims(cluster, topic, cluster.choose_partitions(topic, partitions), **ways)
    total = sum(each.deleted for each in trims)
    if total:
        confirm(f"Delete at most {count_text(total, 'record')} of topic {topic}?", yes)
        apply_trims(cluster, topic, [each for each in trims if each.deleted])
    if as_json:
        for each in trims:
            print_json(
                {
                    "topic": topic,
                    "partition": each.partition,
                    "earliest_offset_before": each.earliest,
                    "earliest_offset": max(each.start, each.earliest),
                    "latest_offset": each.latest,
                    "deleted_offsets": each.deleted,
                }
            )
        return
    print_columns(
        ["PARTITION", "EARLIEST BEFORE", "EARLIEST", "LATEST", "DELETED"],
        [(t.partition, t.earliest, max(t.start, t.earliest), t.latest, t.deleted) for t in trims],
    )
    say(f"deleted at most {count_text(total, 'record')} of topic {topic}" if total else "nothing to delete")


def plan_trims(
    cluster: Cluster,
    topic: str,
    partitions: Sequence[int],
    *,
    before_offset: int | None,
    before_time: int | None,
    keep_last: int | None,
    everything: bool,
) -> list[Trim]:
    """The new start of each partition; Failure for an offset past the end of one."""
    earliest = cluster.earliest_offsets(topic, partitions)
    latest = cluster.latest_offsets(topic, partitions)
    starts = dict(latest)
    if before_offset is not None:
        for partition in partitions:
            if before_offset > latest[partition]:
                most = min(latest[each] for each in partitions)
                raise Failure(
                    f"topic {topic}, partition {partition} ends at offset {latest[partition]}, "
                    f"before {before_offset}; give at most {most}, or other partitions with --partition"
                )
        starts = dict.fromkeys(partitions, before_offset)
    elif keep_last is not None:
        starts = {partition: latest[partition] - keep_last for partition in partitions}
    elif before_time is not None:
        starts = cluster.first_offsets(topic, before_time, earliest, latest)
    elif not everything:
        raise AssertionError(WAYS)
    return [Trim(each, earliest[each], starts[each], latest[each]) for each in partitions]


def apply_trims(cluster: Cluster, topic: str, trims: Sequence[Trim]) -> None:
    """Failure names every partition that was not trimmed."""
    failures = delete_records(cluster, topic, {each.partition: each.start for each in trims})
    if failures:
        raise Failure("; ".join(each.message for each in failures))
