"""`odradek topic`: create, list, describe, alter, trim and delete topics."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from odradek.admin.errors import NotAuthorized
from odradek.admin.groups import with_similar_names
from odradek.admin.settings import Change, Kind, Operation, alter_settings, read_settings, suggesting_names
from odradek.admin.topics import choose_topics, delete_records, delete_topics, grow_topic, has_pattern
from odradek.cli.client import options as client
from odradek.cli.framework import output
from odradek.cli.framework import parameter_types as types
from odradek.cli.framework.commands import OptionalArgument, group
from odradek.cli.framework.options import confirm, flag, option, repeatable, yes_option
from odradek.conventions.failures import Failure
from odradek.conventions.figures import count_text
from odradek.security.authorizer import Operation as Permission

if TYPE_CHECKING:
    from odradek.admin.cluster import Cluster, TopicDescription

F = TypeVar("F", bound=Callable[..., Any])
Pairs = tuple[tuple[str, str], ...]
TRIMS = "give one of --before-offset, --before-time, --keep-last, --all"
NO_TOPICS = "no topics; `odradek topic create NAME` creates one"


@group(
    ("a topic with six partitions", "odradek topic create pump --partitions 6"),
    ("its partitions, offsets and settings", "odradek topic describe pump"),
)
def topic() -> None:
    """Create, list, describe, alter, trim and delete topics."""


def partitions_option(text: str) -> Callable[[F], F]:
    return option("--partitions -p", "N", types.PARTITION_COUNT, text)


def configs_option(text: str) -> Callable[[F], F]:
    completion = client.complete_topic_assignments
    return repeatable("--config -c configs", "KEY=VALUE", types.SETTING, text, shell_complete=completion)


@topic.command(
    ("with the broker's defaults", "odradek topic create pump"),
    ("three topics", "odradek topic create pump valve motor"),
    ("six partitions; records are kept for a day", "odradek topic create pump -p 6 --config retention.ms=1d"),
    ("in a script that may run twice", "odradek topic create pump --if-not-exists --format json"),
)
@click.argument("names", metavar="NAME...", nargs=-1, required=True, type=types.TOPIC_NAME)
@partitions_option("Number of partitions. Default: the broker's num.partitions.")
@option(
    "--replication-factor -r", "N", types.REPLICATION_FACTOR,
    "Replicas of each partition. Default: the broker's default.replication.factor.",
)  # fmt: skip
@configs_option("Setting of the topic.")
@flag("--if-not-exists", "Succeed if the topic already exists, and leave it unchanged.")
@client.cluster_options
def create(
    *, names: tuple[str, ...], partitions: int | None, replication_factor: int | None, configs: Pairs,
    if_not_exists: bool, cluster: Cluster, as_json: bool,
) -> None:  # fmt: skip
    """Create topics. The first that cannot be created ends the command; those before it exist."""
    for name in names:
        with suggesting_names(dict(configs)):
            created = cluster.create_topic(name, partitions or -1, replication_factor or -1, dict(configs))
        if not created and not if_not_exists:
            raise Failure(f"topic {name} already exists; --if-not-exists accepts that")
        count = partitions if created and partitions else partition_count(cluster, name)
        size = "" if count is None else f" with {count_text(count, 'partition')}"
        text = f"created topic {name}{size}" if created else f"topic {name} already exists{size}"
        output.print_result({"topic": name, "created": created, "partitions": count}, text, as_json=as_json)


def partition_count(cluster: Cluster, name: str) -> int | None:
    """Number of partitions of a topic; None if the broker that answered does not know the topic."""
    try:
        return len(cluster.describe_topic(name).partitions)
    except Failure:
        return None


@topic.command(
    ("all topics but the internal ones", "odradek topic list"),
    ("names only, for a script", "odradek topic list --format json | jq -r .topic"),
    name="list",
)
@flag("--internal", "Include internal topics, whose names start with __.")
@client.cluster_options
def list_topics(internal: bool, cluster: Cluster, as_json: bool) -> None:
    """List the topics of the cluster."""
    found = []
    for each in cluster.topics():
        if internal or not each.name.startswith("__"):
            replicas = len(each.partitions[0].replicas) if each.partitions else 0
            found.append({"topic": each.name, "partitions": len(each.partitions), "replication_factor": replicas})
    nothing = NO_TOPICS if found or as_json else client.nothing_visible(cluster, "topics", NO_TOPICS, Permission.ALTER)
    output.print_list(found, ["TOPIC", "PARTITIONS", "REPLICAS"], otherwise=nothing, as_json=as_json)


@topic.command(
    ("partitions, offsets, and settings that differ from the default", "odradek topic describe pump"),
    ("every topic but the internal ones", "odradek topic describe"),
    ("topics whose names match a pattern", "odradek topic describe 'rig-*'"),
    ("every setting, and where its value comes from", "odradek topic describe pump --all-configs"),
    ("offsets of each partition", "odradek topic describe pump --format json | jq .partitions"),
    short_help="Show partitions, offsets and settings of topics.",
)
@click.argument(
    "names", metavar="NAME...", nargs=-1, cls=OptionalArgument, type=types.TOPIC_NAME,
    shell_complete=client.complete_topics,
)  # fmt: skip
@flag("--internal", "Include internal topics when describing all, or by a pattern.")
@flag("--all-configs", "Show every setting, not only those that differ from the default.")
@client.cluster_options
def describe(names: tuple[str, ...], internal: bool, all_configs: bool, cluster: Cluster, as_json: bool) -> None:
    """Show partitions, offsets and settings of topics: the named ones, or all.

    A name with *, ? or [ ] is a pattern, as in a shell; quote it.
    """
    chosen = choose_topics(cluster, names, internal=internal)
    if not chosen and not as_json:
        output.say(NO_TOPICS)
    found = (collect(cluster, each, all_configs) for each in cluster.describe_topics(chosen)) if chosen else ()
    output.print_each(found, dict, lambda each: print_topic(each, all_configs), as_json=as_json)


def collect(cluster: Cluster, description: TopicDescription, all_configs: bool) -> dict[str, Any]:
    """Everything that is shown of one topic, as an object of the JSON output. The settings need another right."""
    with_leader = [partition.id for partition in description.partitions if partition.leader is not None]
    earliest = cluster.earliest_offsets(description.name, with_leader)
    latest = cluster.latest_offsets(description.name, with_leader)
    partitions = [
        {
            "partition": each.id,
            "leader": each.leader.broker_id if each.leader is not None else None,
            "replicas": each.replicas,
            "in_sync_replicas": each.in_sync,
            "earliest_offset": earliest.get(each.id),
            "latest_offset": latest.get(each.id),
        }
        for each in description.partitions
    ]
    try:
        settings = read_settings(cluster, Kind.TOPIC, description.name)
        configs = {each.name: each.as_object() for each in settings if all_configs or not each.is_default}
    except NotAuthorized as failure:
        output.note(failure.message.replace(client.THIS_USER, cluster.principal))
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
    facts = [count_text(len(partitions), "partition"), f"replication factor {copies}", offsets_text(partitions)]
    facts += ["internal"] if topic["internal"] else []
    output.say(f"{output.strong(topic['topic'])}  {' · '.join(facts)}")
    output.say(output.faint(f"topic id {topic['topic_id']}"))
    output.say()
    rows = []
    for each in partitions:
        brokers = ("none" if each["leader"] is None else each["leader"], output.joined(each["replicas"]))
        offsets = ["-" if each[name] is None else each[name] for name in ("earliest_offset", "latest_offset")]
        rows.append((each["partition"], *brokers, output.joined(each["in_sync_replicas"]), *offsets))
    output.print_columns(["PARTITION", "LEADER", "REPLICAS", "IN SYNC", "EARLIEST", "LATEST"], rows)
    configs = topic["configs"]
    if configs is None:
        return
    output.say()
    if not configs:
        output.say("All settings have their default values.")
        return
    if not all_configs:
        output.say("Settings that differ from the default:")
    settings = [(key, config["value"], config["source"]) for key, config in configs.items()]
    output.print_columns(["SETTING", "VALUE", "SOURCE"], settings)


@topic.command(
    ("grow to twelve partitions", "odradek topic alter pump --partitions 12"),
    ("keep records for an hour", "odradek topic alter pump --config retention.ms=1h"),
    ("back to the default", "odradek topic alter pump --delete-config retention.ms"),
)
@click.argument("name", type=types.TOPIC_NAME, shell_complete=client.complete_topics)
@partitions_option("New number of partitions. It can only grow.")
@configs_option("Set a setting.")
@repeatable(
    "--delete-config -d deletions", "KEY", types.SETTING_NAME,
    "Return a setting to its default.", shell_complete=client.complete_topic_settings,
)  # fmt: skip
@client.cluster_options
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
        output.print_json({"topic": name, "partitions": partitions, "set": dict(configs), "deleted": list(deletions)})
        return
    if partitions is not None:
        output.say(f"topic {name} now has {count_text(partitions, 'partition')}")
    for key, value in configs:
        output.say(f"topic {name}: {key} = {value}")
    for key in deletions:
        output.say(f"topic {name}: {key} has its default value again")


class Trim(NamedTuple):
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


@topic.command(
    ("everything before an offset, after a question", "odradek topic trim pump -p 0 --before-offset 1200"),
    ("what is older than a day, in all partitions", "odradek topic trim pump --before-time -1d --yes"),
    ("all but the last 1,000 records of each partition", "odradek topic trim pump --keep-last 1000 --yes"),
    ("every record; the topic stays", "odradek topic trim pump --all --yes"),
)
@client.topic_argument
@option("--before-offset", "N", types.OFFSET, "Delete records before this offset.")
@option("--before-time", "TIME", types.TIME_MS, "Delete records before a time: ISO, epoch ms, or -1h.")
@option("--keep-last", "N", types.OFFSET, "Delete all but the last N offsets of each partition.")
@flag("--all everything", "Delete all records.")
@repeatable("--partition -p partitions", "N", types.PARTITION, "Only this partition. Default: all.")
@yes_option
@client.cluster_options
def trim(topic: str, partitions: tuple[int, ...], yes: bool, cluster: Cluster, as_json: bool, **ways: Any) -> None:
    """Delete the oldest records of a topic, up to an offset or a time. The offsets of the others do not change."""
    if sum(value is not None and value is not False for value in ways.values()) != 1:
        raise click.UsageError(TRIMS)
    trims = plan_trims(cluster, topic, cluster.choose_partitions(topic, partitions), **ways)
    total = sum(each.deleted for each in trims)
    if total:
        confirm(f"Delete at most {count_text(total, 'record')} of topic {topic}?", yes)
        output.raise_all(delete_records(cluster, topic, {each.partition: each.start for each in trims if each.deleted}))
    rows = [(t.partition, t.earliest, max(t.start, t.earliest), t.latest, t.deleted) for t in trims]
    if as_json:
        keys = ("partition", "earliest_offset_before", "earliest_offset", "latest_offset", "deleted_offsets")
        for row in rows:
            output.print_json({"topic": topic, **dict(zip(keys, row, strict=True))})
        return
    output.print_columns(["PARTITION", "EARLIEST BEFORE", "EARLIEST", "LATEST", "DELETED"], rows)
    output.say(f"deleted at most {count_text(total, 'record')} of topic {topic}" if total else "nothing to delete")


def plan_trims(
    cluster: Cluster, topic: str, partitions: Sequence[int], *, before_offset: int | None, before_time: int | None,
    keep_last: int | None, everything: bool,
) -> list[Trim]:  # fmt: skip
    """The new start of each partition; Failure for an offset past the end of one."""
    earliest = cluster.earliest_offsets(topic, partitions)
    latest = cluster.latest_offsets(topic, partitions)
    starts = dict(latest) if everything else {}
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
    return [Trim(each, earliest[each], starts[each], latest[each]) for each in partitions]


@topic.command(
    ("after a question", "odradek topic delete pump"),
    ("several, without a question", "odradek topic delete pump valve --yes"),
    ("those whose names match a pattern", "odradek topic delete 'tmp-*'"),
)
@client.topics_argument
@yes_option
@client.cluster_options
def delete(names: tuple[str, ...], yes: bool, cluster: Cluster, as_json: bool) -> None:
    """Delete topics and all their records.

    A name with *, ? or [ ] is a pattern, as in a shell; quote it. Patterns match no internal topics.
    """
    chosen = choose_topics(cluster, names)
    topics = ", ".join(chosen)
    if has_pattern(names) and not yes:
        output.note("\n".join(chosen))
        topics = f"{'this' if len(chosen) == 1 else 'these'} {count_text(len(chosen), 'topic')}"
    confirm(f"Delete {topics} and all records?", yes)
    failures = []
    for name, failure in delete_topics(cluster, chosen).items():
        if failure is None:
            output.print_result({"topic": name, "deleted": True}, f"deleted topic {name}", as_json=as_json)
        else:
            failures.append(with_similar_names(cluster, failure))
    output.raise_all(failures)
