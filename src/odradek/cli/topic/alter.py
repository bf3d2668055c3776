"""`odradek topic alter`: more partitions, other settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from odradek.cli.client.kafka_admin import AlterConfigOpType, ConfigEntry, ConfigResource, NewPartitions, ResourceType
from odradek.cli.framework.commands import command
from odradek.cli.framework.options import cluster_options, complete_topics
from odradek.cli.framework.output import count_text, print_json, say
from odradek.cli.framework.parameter_types import CONFIG_NAME, PAIR, PARTITION_COUNT, TOPIC_NAME

if TYPE_CHECKING:
    from odradek.cli.client.cluster import Cluster


Pairs = tuple[tuple[str, str], ...]


@command(
    examples=[
        ("twelve partitions instead of fewer", "odradek topic alter pump --partitions 12"),
        ("keep records for an hour", "odradek topic alter pump --config retention.ms=3600000"),
        ("back to the default", "odradek topic alter pump --delete-config retention.ms"),
    ]
)
@click.argument("name", type=TOPIC_NAME, shell_complete=complete_topics)
@click.option(
    "--partitions",
    "-p",
    type=PARTITION_COUNT,
    metavar="N",
    help="The new number of partitions; it can only grow.",
)
@click.option(
    "--config", "-c", "configs", metavar="KEY=VALUE", type=PAIR, multiple=True, help="Set a config. Repeatable."
)
@click.option(
    "--delete-config",
    "-d",
    "deletions",
    metavar="KEY",
    type=CONFIG_NAME,
    multiple=True,
    help="Return a config to its default. Repeatable.",
)
@cluster_options
def alter(
    *, name: str, partitions: int | None, configs: Pairs, deletions: tuple[str, ...], cluster: Cluster, as_json: bool
) -> None:
    """Add partitions to a topic, or change its configs."""
    if partitions is None and not configs and not deletions:
        raise click.UsageError("nothing to alter: give --partitions, --config or --delete-config")
    if configs or deletions:
        alter_configs(cluster, name, configs, deletions)
    if partitions is not None:
        cluster.finish(cluster.admin().create_partitions([NewPartitions(name, partitions)])[name], f"topic {name}")
    if as_json:
        print_json({"topic": name, "partitions": partitions, "set": dict(configs), "deleted": list(deletions)})
        return
    if partitions is not None:
        say(f"topic {name} now has {count_text(partitions, 'partition')}")
    for key, value in configs:
        say(f"topic {name}: {key} = {value}")
    for key in deletions:
        say(f"topic {name}: {key} is the default again")


def alter_configs(cluster: Cluster, name: str, configs: Pairs, deletions: tuple[str, ...]) -> None:
    changes = [ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET) for key, value in configs]
    changes += [ConfigEntry(key, None, incremental_operation=AlterConfigOpType.DELETE) for key in deletions]
    resource = ConfigResource(ResourceType.TOPIC, name, incremental_configs=changes)
    for future in cluster.admin().incremental_alter_configs([resource]).values():
        cluster.finish(future, f"topic {name}")
