"""`odradek topic`: create, list, alter and delete topics through the wire protocol's admin requests."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from odradek.cli.commands import command, group
from odradek.cli.failure import Failure
from odradek.cli.kafka_admin import AlterConfigOpType, ConfigEntry, ConfigResource, NewPartitions, ResourceType
from odradek.cli.options import cluster_options, complete_topics, topic_argument
from odradek.cli.output import count_text, print_columns, print_json, say
from odradek.cli.parameter_types import CONFIG_NAME, PAIR, PARTITION_COUNT, REPLICATION_FACTOR, TOPIC_NAME

if TYPE_CHECKING:
    from odradek.cli.cluster import Cluster

REQUEST_TIMEOUT_S = 15.0

Pairs = tuple[tuple[str, str], ...]


@group(
    lazy={
        "create": ("odradek.cli.topic:create", "Create a topic."),
        "list": ("odradek.cli.topic:list_topics", "List the topics of the cluster."),
        "describe": ("odradek.cli.topic_describe:describe", "Show partitions, offsets and configs of topics."),
        "alter": ("odradek.cli.topic:alter", "Add partitions to a topic, or change its configs."),
        "delete": ("odradek.cli.topic:delete", "Delete topics and all their records."),
    },
    examples=[
        ("a topic with six partitions", "odradek topic create pump --partitions 6"),
        ("where its records are", "odradek topic describe pump"),
    ],
)
def topic() -> None:
    """Create, list, describe, alter and delete topics."""


def partition_count(cluster: Cluster, name: str) -> int | None:
    """How many partitions a topic has now; None where the cluster has not heard of it yet."""
    try:
        return len(cluster.describe_topic(name).partitions)
    except Failure:
        return None


@command(
    examples=[
        ("the broker's defaults", "odradek topic create pump"),
        ("six partitions, records kept for a day", "odradek topic create pump -p 6 --config retention.ms=86400000"),
        ("in a script that may run twice", "odradek topic create pump --if-not-exists --format json"),
    ]
)
@click.argument("name", type=TOPIC_NAME)
@click.option(
    "--partitions",
    "-p",
    type=PARTITION_COUNT,
    metavar="N",
    help="Partitions; the broker's num.partitions if absent.",
)
@click.option(
    "--replication-factor",
    "-r",
    type=REPLICATION_FACTOR,
    metavar="N",
    help="Copies of each partition; the broker's default if absent.",
)
@click.option(
    "--config",
    "-c",
    "configs",
    metavar="KEY=VALUE",
    type=PAIR,
    multiple=True,
    help="A config of the topic. Repeatable.",
)
@click.option("--if-not-exists", is_flag=True, help="Succeed when the topic exists already; it is left as it is.")
@cluster_options
def create(
    *,
    name: str,
    partitions: int | None,
    replication_factor: int | None,
    configs: Pairs,
    if_not_exists: bool,
    cluster: Cluster,
    as_json: bool,
) -> None:
    """Create a topic."""
    created = cluster.create_topic(name, partitions or -1, replication_factor or -1, dict(configs))
    if not created and not if_not_exists:
        raise Failure(f"topic {name} exists already; pass --if-not-exists to accept that")
    count = partitions if created and partitions else partition_count(cluster, name)
    if as_json:
        print_json({"topic": name, "created": created, "partitions": count})
    else:
        size = "" if count is None else f" with {count_text(count, 'partition')}"
        say(f"created topic {name}{size}" if created else f"topic {name} exists already{size}")


@command(
    "list",
    examples=[
        ("every topic but the internal ones", "odradek topic list"),
        ("names only, for a script", "odradek topic list --format json | jq -r .topic"),
    ],
)
@click.option("--internal", is_flag=True, help="Show internal topics (their names start with __) too.")
@cluster_options
def list_topics(internal: bool, cluster: Cluster, as_json: bool) -> None:
    """List the topics of the cluster."""
    found = cluster.admin().list_topics(timeout=REQUEST_TIMEOUT_S).topics
    rows = [
        (name, len(metadata.partitions), len(metadata.partitions[0].replicas) if 0 in metadata.partitions else 0)
        for name, metadata in sorted(found.items())
        if internal or not name.startswith("__")
    ]
    if as_json:
        for name, partitions, replicas in rows:
            print_json({"topic": name, "partitions": partitions, "replication_factor": replicas})
    elif rows:
        print_columns(["TOPIC", "PARTITIONS", "REPLICAS"], rows)
    else:
        say("no topics yet; `odradek topic create NAME` makes one")


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


@command(
    examples=[
        ("after a question", "odradek topic delete pump"),
        ("several, without a question", "odradek topic delete pump valve --yes"),
    ]
)
@topic_argument(several=True)
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@cluster_options
def delete(names: tuple[str, ...], yes: bool, cluster: Cluster, as_json: bool) -> None:
    """Delete topics and all their records."""
    if not yes:
        if not sys.stdin.isatty():
            raise click.UsageError("deleting takes --yes where nobody can be asked")
        if not click.confirm(f"Delete {', '.join(names)} and all records?", err=True):
            raise Failure("nothing was deleted")
    failures = []
    for name, future in cluster.admin().delete_topics(list(names)).items():
        try:
            cluster.finish(future, f"topic {name}")
        except Failure as failure:
            failures.append(failure)
            continue
        if as_json:
            print_json({"topic": name, "deleted": True})
        else:
            say(f"deleted topic {name}")
    if failures:
        raise Failure("; ".join(failure.message for failure in failures))
