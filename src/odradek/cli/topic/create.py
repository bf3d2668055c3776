"""`odradek topic create`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from odradek.admin.settings import suggesting_names
from odradek.cli.client.name_completion import complete_topic_assignments
from odradek.cli.client.options import cluster_options
from odradek.cli.framework.commands import command
from odradek.cli.framework.output import print_json, say
from odradek.cli.framework.parameter_types import PARTITION_COUNT, REPLICATION_FACTOR, TOPIC_NAME
from odradek.cli.framework.times import SETTING
from odradek.conventions.failures import Failure
from odradek.conventions.figures import count_text

if TYPE_CHECKING:
    from odradek.admin.cluster import Cluster


Pairs = tuple[tuple[str, str], ...]


def partition_count(cluster: Cluster, name: str) -> int | None:
    """Number of partitions of a topic; None if the broker that answered does not know the topic."""
    try:
        return len(cluster.describe_topic(name).partitions)
    except Failure:
        return None


@command(
    examples=[
        ("with the broker's defaults", "odradek topic create pump"),
        ("three topics", "odradek topic create pump valve motor"),
        ("six partitions; records are kept for a day", "odradek topic create pump -p 6 --config retention.ms=1d"),
        ("in a script that may run twice", "odradek topic create pump --if-not-exists --format json"),
    ]
)
@click.argument("names", metavar="NAME...", nargs=-1, required=True, type=TOPIC_NAME)
@click.option(
    "--partitions",
    "-p",
    type=PARTITION_COUNT,
    metavar="N",
    help="Number of partitions. Default: the broker's num.partitions.",
)
@click.option(
    "--replication-factor",
    "-r",
    type=REPLICATION_FACTOR,
    metavar="N",
    help="Replicas of each partition. Default: the broker's default.replication.factor.",
)
@click.option(
    "--config",
    "-c",
    "configs",
    metavar="KEY=VALUE",
    type=SETTING,
    multiple=True,
    shell_complete=complete_topic_assignments,
    help="Setting of the topic. Repeatable.",
)
@click.option("--if-not-exists", is_flag=True, help="Succeed if the topic already exists, and leave it unchanged.")
@cluster_options
def create(
    *,
    names: tuple[str, ...],
    partitions: int | None,
    replication_factor: int | None,
    configs: Pairs,
    if_not_exists: bool,
    cluster: Cluster,
    as_json: bool,
) -> None:
    """Create topics. The first that cannot be created ends the command; those before it exist."""
    for name in names:
        with suggesting_names(dict(configs)):
            created = cluster.create_topic(name, partitions or -1, replication_factor or -1, dict(configs))
        if not created and not if_not_exists:
            raise Failure(f"topic {name} already exists; --if-not-exists accepts that")
        count = partitions if created and partitions else partition_count(cluster, name)
        if as_json:
            print_json({"topic": name, "created": created, "partitions": count})
        else:
            size = "" if count is None else f" with {count_text(count, 'partition')}"
            say(f"created topic {name}{size}" if created else f"topic {name} already exists{size}")
