"""`odradek pipeline redrive`: dead letters go back to the topics that they came from."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import click

from odradek.admin.letters import MOST_LETTERS, MOST_READ, Redrive, Selection, plan_redrive
from odradek.admin.letters import redrive as write_back
from odradek.cli.client.options import cluster_options, topic_argument
from odradek.cli.framework.commands import command
from odradek.cli.framework.options import confirm, flag, option, repeatable, yes_option
from odradek.cli.framework.output import print_json, say
from odradek.cli.framework.parameter_types import TEXT
from odradek.conventions.failures import Failure
from odradek.conventions.figures import count_text, size_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odradek.admin.cluster import Cluster
    from odradek.pipelines.letters.ledger import Position


@command(
    ("what would be written back", "odradek pipeline redrive rigs-dead-letters --dry-run"),
    ("all of them, after a question", "odradek pipeline redrive rigs-dead-letters"),
    ("those of one step", "odradek pipeline redrive rigs-dead-letters --step readings --yes"),
    ("records by partition and offset", "odradek pipeline redrive rigs-dead-letters --record 0:17 --record 1:4"),
)
@topic_argument
@option("--pipeline", "NAME", TEXT, "Only dead letters of this pipeline.", default="")
@option("--step", "NAME", TEXT, "Only those of this source or step.", default="")
@option("--reason", "TEXT", TEXT, "Only those with this reason, up to its colon.", default="")
@repeatable("--record records", "PARTITION:OFFSET", TEXT, "Only this one.")
@option(
    "--limit", "N", click.IntRange(1, MOST_LETTERS),
    "At most so many, the oldest of each partition first.", default=MOST_LETTERS,
)  # fmt: skip
@flag("--again", "Also those that were written back before; refused if there are more than the limit.")
@flag("--dry-run", "Show what would be written, and write nothing.")
@yes_option
@cluster_options
def redrive(
    *, topic: str, pipeline: str, step: str, reason: str, records: tuple[str, ...], limit: int, again: bool,
    dry_run: bool, yes: bool, cluster: Cluster, as_json: bool,
) -> None:  # fmt: skip
    """Write dead letters back to the topics that they came from, each at most once.

    TOPIC is a dead-letter topic. Records get their original key, value, headers and partition; the headers that name
    the reason and the origin are removed. What was written back is kept in the topic `__odradek_redrives`.
    """
    positions = frozenset(parse_positions(records)) if records else None
    selection = Selection(topic, positions, pipeline, step, reason, limit=limit)
    plan = plan_redrive(cluster, selection, again=again)
    if not dry_run and plan.records:
        confirm(f"write {text_of(plan)}?", yes, refusal="nothing was written")
        # The same letters as the plan: those that arrived after it are left out.
        plan = write_back(cluster, replace(selection, ends=plan.ends), again=again)
    if as_json:
        print_json({**plan.as_object(), "is_dry_run": dry_run})
        return
    verb = "would write" if dry_run else "wrote"
    say(f"{verb} {text_of(plan)}" if plan.records else f"topic {topic} has no dead letters to write back")
    for line in omissions(plan):
        say(line)


def text_of(plan: Redrive) -> str:
    targets = ", ".join(f"{count:,} to {topic}" for topic, count in plan.topics.most_common())
    return f"{count_text(plan.records, 'dead letter')} back ({size_text(plan.size_bytes)}): {targets}"


def omissions(plan: Redrive) -> list[str]:
    found = []
    if plan.done_before:
        found.append(f"{plan.done_before:,} were written back before; --again writes them once more")
    if plan.without_origin:
        found.append(f"{plan.without_origin:,} have no origin record: rows of steps that join or aggregate")
    if plan.unreadable:
        found.append(f"{len(plan.unreadable):,} cannot be read; the first batch is {plan.unreadable[0]}")
    if plan.is_cut and plan.records:
        found.append("the limit is reached, and there are more; run it again for the next ones")
    elif plan.is_cut:
        found.append(f"only the oldest {MOST_READ:,} records were read; select later ones by --record")
    return found


def parse_positions(texts: Sequence[str]) -> list[Position]:
    positions = []
    for text in texts:
        partition, _, offset = text.partition(":")
        if not (partition.isdecimal() and offset.isdecimal()):
            raise Failure(f"--record {text}: write PARTITION:OFFSET, such as 0:17")
        positions.append((int(partition), int(offset)))
    return positions
