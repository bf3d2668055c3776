"""`odradek topic describe`: where a topic's partitions are, what offsets they hold, which configs it has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from odradek.cli.client.kafka_admin import ConfigResource, ConfigSource, ResourceType
from odradek.cli.framework.commands import command
from odradek.cli.framework.options import cluster_options, topic_argument
from odradek.cli.framework.output import count_text, faint, print_columns, print_json, say, strong

if TYPE_CHECKING:
    from odradek.cli.client.cluster import Cluster
    from odradek.cli.client.kafka_admin import ConfigEntry, TopicDescription


@command(
    examples=[
        ("partitions, offsets, and configs that differ from the default", "odradek topic describe pump"),
        ("every config with where it comes from", "odradek topic describe pump --all-configs"),
        ("how many records each partition holds", "odradek topic describe pump --format json | jq .partitions"),
    ]
)
@topic_argument(several=True)
@click.option("--all-configs", is_flag=True, help="Show every config, not only those that differ from the default.")
@cluster_options
def describe(names: tuple[str, ...], all_configs: bool, cluster: Cluster, as_json: bool) -> None:
    """Show partitions, offsets and configs of topics."""
    for place, description in enumerate(cluster.describe_topics(dict.fromkeys(names))):
        topic = collect(cluster, description, all_configs)
        if as_json:
            print_json(topic)
        else:
            if place:
                say()
            print_topic(topic, all_configs)


def collect(cluster: Cluster, description: TopicDescription, all_configs: bool) -> dict[str, Any]:
    """All that is shown of one topic, as the JSON output has it."""
    led = [partition.id for partition in description.partitions if partition.leader is not None]
    earliest = cluster.earliest_offsets(description.name, led)
    latest = cluster.latest_offsets(description.name, led)
    partitions = [
        {
            "partition": partition.id,
            "leader": partition.leader.id if partition.leader is not None else None,
            "replicas": [node.id for node in partition.replicas],
            "in_sync_replicas": [node.id for node in partition.isr],
            "earliest_offset": earliest.get(partition.id),
            "latest_offset": latest.get(partition.id),
        }
        for partition in sorted(description.partitions, key=lambda partition: partition.id)
    ]
    return {
        "topic": description.name,
        "topic_id": str(description.topic_id).replace("+", "-").replace("/", "_"),  # as Kafka's own tools print it
        "internal": description.is_internal,
        "partitions": partitions,
        "configs": read_configs(cluster, description.name, all_configs),
    }


def read_configs(cluster: Cluster, name: str, all_configs: bool) -> dict[str, dict[str, Any]]:
    (future,) = cluster.admin().describe_configs([ConfigResource(ResourceType.TOPIC, name)]).values()
    entries: dict[str, ConfigEntry] = cluster.finish(future, f"configs of topic {name}")
    return {
        key: {"value": entry.value, "source": source_name(entry), "default": entry.is_default}
        for key, entry in sorted(entries.items())
        if all_configs or not entry.is_default
    }


def source_name(entry: ConfigEntry) -> str:
    return str(ConfigSource(entry.source).name).removesuffix("_CONFIG").lower().replace("_", " ")


def print_topic(topic: dict[str, Any], all_configs: bool) -> None:
    partitions = topic["partitions"]
    copies = len(partitions[0]["replicas"]) if partitions else 0
    records = sum((p["latest_offset"] or 0) - (p["earliest_offset"] or 0) for p in partitions)
    facts = [
        count_text(len(partitions), "partition"),
        f"replication factor {copies}",
        f"at most {count_text(records, 'record')}",
    ]
    say(f"{strong(topic['topic'])}  {' · '.join(facts)}{' · internal' if topic['internal'] else ''}")
    say(faint(f"topic id {topic['topic_id']}"))
    say()
    print_columns(
        ["PARTITION", "LEADER", "REPLICAS", "IN SYNC", "EARLIEST", "LATEST"],
        [
            (
                partition["partition"],
                partition["leader"],
                ",".join(map(str, partition["replicas"])),
                ",".join(map(str, partition["in_sync_replicas"])),
                partition["earliest_offset"],
                partition["latest_offset"],
            )
            for partition in partitions
        ],
    )
    say()
    if not topic["configs"]:
        say("All configs have their defaults.")
        return
    if not all_configs:
        say("Configs that differ from the default:")
    print_columns(
        ["CONFIG", "VALUE", "SET BY"],
        [(key, config["value"], config["source"]) for key, config in topic["configs"].items()],
    )
