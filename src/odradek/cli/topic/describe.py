"""`odradek topic describe`: the partitions of topics, the offsets that they hold, and the topics' settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from odradek.admin.errors import NotAuthorized
from odradek.admin.settings import Kind, read_settings
from odradek.admin.topics import choose_topics
from odradek.cli.client.name_completion import complete_topics
from odradek.cli.client.options import THIS_USER, cluster_options
from odradek.cli.framework.commands import OptionalArgument, command
from odradek.cli.framework.output import faint, note, print_columns, print_json, say, strong
from odradek.cli.framework.parameter_types import TOPIC_NAME
from odradek.conventions.figures import count_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odradek.admin.cluster import Cluster, TopicDescription


@command(
    examples=[
        ("partitions, offsets, and settings that differ from the default", "odradek topic describe pump"),
        ("every topic but the internal ones", "odradek topic describe"),
        ("topics whose names match a pattern", "odradek topic describe 'rig-*'"),
        ("every setting, and where its value comes from", "odradek topic describe pump --all-configs"),
        ("offsets of each partition", "odradek topic describe pump --format json | jq .partitions"),
    ]
)
@click.argument(
    "names", metavar="NAME...", nargs=-1, cls=OptionalArgument, type=TOPIC_NAME, shell_complete=complete_topics
)
@click.option("--internal", is_flag=True, help="Include internal topics when describing all, or by a pattern.")
@click.option("--all-configs", is_flag=True, help="Show every setting, not only those that differ from the default.")
@cluster_options
def describe(names: tuple[str, ...], internal: bool, all_configs: bool, cluster: Cluster, as_json: bool) -> None:
    """Show partitions, offsets and settings of topics: the named ones, or all.

    A name with *, ? or [ ] is a pattern, as in a shell; quote it.
    """
    chosen = choose_topics(cluster, names, internal=internal)
    if not chosen and not as_json:
        say("no topics; `odradek topic create NAME` creates one")
    for number, description in enumerate(cluster.describe_topics(chosen) if chosen else ()):
        topic = collect(cluster, description, all_configs)
        if as_json:
            print_json(topic)
        else:
            if number:
                say()
            print_topic(topic, all_configs)


def collect(cluster: Cluster, description: TopicDescription, all_configs: bool) -> dict[str, Any]:
    """Everything that is shown of one topic, as an object of the JSON output. The settings need another right."""
    with_leader = [partition.id for partition in description.partitions if partition.leader is not None]
    earliest = cluster.earliest_offsets(description.name, with_leader)
    latest = cluster.latest_offsets(description.name, with_leader)
    partitions = [
        {
            "partition": partition.id,
            "leader": partition.leader.broker_id if partition.leader is not None else None,
            "replicas": list(partition.replicas),
            "in_sync_replicas": list(partition.in_sync),
            "earliest_offset": earliest.get(partition.id),
            "latest_offset": latest.get(partition.id),
        }
        for partition in description.partitions
    ]
    try:
        settings = read_settings(cluster, Kind.TOPIC, description.name)
        configs = {each.name: each.as_object() for each in settings if all_configs or not each.is_default}
    except NotAuthorized as failure:
        note(failure.message.replace(THIS_USER, cluster.principal))
        configs = None
    return {
        "topic": description.name,
        "topic_id": description.topic_id.replace("+", "-").replace("/", "_"),  # as Kafka's own tools print it
        "internal": description.is_internal,
        "partitions": partitions,
        "configs": configs,
    }


def offsets_text(partitions: Sequence[dict[str, Any]]) -> str:
    """The offsets between start and end: transactions and compaction leave some of them without a record."""
    known = [each for each in partitions if each["latest_offset"] is not None]
    offsets = sum(each["latest_offset"] - each["earliest_offset"] for each in known)
    if len(known) < len(partitions):
        return f"{count_text(offsets, 'offset')} in partitions with a leader"
    return count_text(offsets, "offset") if offsets else "empty"


def print_topic(topic: dict[str, Any], all_configs: bool) -> None:
    partitions = topic["partitions"]
    copies = len(partitions[0]["replicas"]) if partitions else 0
    facts = [
        count_text(len(partitions), "partition"),
        f"replication factor {copies}",
        offsets_text(partitions),
    ]
    say(f"{strong(topic['topic'])}  {' · '.join(facts)}{' · internal' if topic['internal'] else ''}")
    say(faint(f"topic id {topic['topic_id']}"))
    say()
    print_columns(
        ["PARTITION", "LEADER", "REPLICAS", "IN SYNC", "EARLIEST", "LATEST"],
        [
            (
                partition["partition"],
                "none" if partition["leader"] is None else partition["leader"],
                ",".join(map(str, partition["replicas"])),
                ",".join(map(str, partition["in_sync_replicas"])) or "-",
                "-" if partition["earliest_offset"] is None else partition["earliest_offset"],
                "-" if partition["latest_offset"] is None else partition["latest_offset"],
            )
            for partition in partitions
        ],
    )
    if topic["configs"] is None:
        return
    say()
    if not topic["configs"]:
        say("All settings have their default values.")
        return
    if not all_configs:
        say("Settings that differ from the default:")
    print_columns(
        ["SETTING", "VALUE", "SOURCE"],
        [(key, config["value"], config["source"]) for key, config in topic["configs"].items()],
    )
