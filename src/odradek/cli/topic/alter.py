"""`odradek topic alter`: more partitions, other settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from odradek.admin.settings import Change, Kind, Operation, alter_settings, suggesting_names
from odradek.admin.topics import grow_topic
from odradek.cli.client.name_completion import complete_topic_assignments, complete_topic_settings, complete_topics
from odradek.cli.client.options import cluster_options
from odradek.cli.framework.commands import command
from odradek.cli.framework.output import print_json, say
from odradek.cli.framework.parameter_types import PARTITION_COUNT, SETTING_NAME, TOPIC_NAME
from odradek.cli.framework.times import SETTING
from odradek.conventions.figures import count_text

if TYPE_CHECKING:
    from odradek.admin.cluster import Cluster


Pairs = tuple[tuple[str, str], ...]


@command(
    examples=[
        ("grow to twelve partitions", "odradek topic alter pump --partitions 12"),
        ("keep records for an hour", "odradek topic alter pump --config retention.ms=1h"),
        ("back to the default", "odradek topic alter pump --delete-config retention.ms"),
    ]
)
@click.argument("name", type=TOPIC_NAME, shell_complete=complete_topics)
@click.option(
    "--partitions",
    "-p",
    type=PARTITION_COUNT,
    metavar="N",
    help="New number of partitions. It can only grow.",
)
@click.option(
    "--config",
    "-c",
    "configs",
    metavar="KEY=VALUE",
    type=SETTING,
    multiple=True,
    shell_complete=complete_topic_assignments,
    help="Set a setting. Repeatable.",
)
@click.option(
    "--delete-config",
    "-d",
    "deletions",
    metavar="KEY",
    type=SETTING_NAME,
    multiple=True,
    shell_complete=complete_topic_settings,
    help="Return a setting to its default. Repeatable.",
)
@cluster_options
def alter(
    *, name: str, partitions: int | None, configs: Pairs, deletions: tuple[str, ...], cluster: Cluster, as_json: bool
) -> None:
    """Add partitions to a topic, or change its settings."""
    if partitions is None and not configs and not deletions:
        raise click.UsageError("nothing to alter: give --partitions, --config or --delete-config")
    if configs or deletions:
        changes = [Change(key, value, Operation.SET) for key, value in configs]
        changes += [Change(key, None, Operation.DELETE) for key in deletions]
        with suggesting_names([*dict(configs), *deletions]):
            alter_settings(cluster, Kind.TOPIC, name, changes)
    if partitions is not None:
        grow_topic(cluster, name, partitions)
    if as_json:
        print_json({"topic": name, "partitions": partitions, "set": dict(configs), "deleted": list(deletions)})
        return
    if partitions is not None:
        say(f"topic {name} now has {count_text(partitions, 'partition')}")
    for key, value in configs:
        say(f"topic {name}: {key} = {value}")
    for key in deletions:
        say(f"topic {name}: {key} has its default value again")
