"""`odradek stream`: topics that are managed together under a path."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

import click

from odradek.admin import streams
from odradek.admin.settings import suggesting_names
from odradek.admin.topics import delete_topics, grow_topic
from odradek.cli.client.options import cluster_options
from odradek.cli.framework import output
from odradek.cli.framework import parameter_types as types
from odradek.cli.framework.commands import Command, Example, Group, group
from odradek.cli.framework.options import confirm, option, repeatable, wrapped, yes_option
from odradek.conventions import figures
from odradek.conventions.failures import Failure
from odradek.conventions.figures import age_text, count_text
from odradek.security.acls.stream_permissions import PERMISSIONS

if TYPE_CHECKING:
    from odradek.admin.cluster import Cluster
    from odradek.protocol.messages.describe_streams import DescribedStream

F = TypeVar("F", bound=Callable[..., Any])
Pairs = tuple[tuple[str, str], ...]
NO_STREAMS = "no streams; `odradek stream create /PATH` creates one"
NO_TOPICS = "no topics; one is made when it is first written to, or by `odradek stream topic create`"

# The flags of MapR's maprcli and what they are here; that of the path is an argument.
_MAPR_FLAGS = {
    "-topic": "--topic",
    "-ttl": "--ttl",
    "-autocreate": "--autocreate",
    "-defaultpartitions": "--default-partitions",
    "-partitions": "--partitions",
    "-compression": "--compression",
    "-compact": "--compact",
    "-defaulttimestamptype": "--timestamp-type",
    "-timestamptype": "--timestamp-type",
    "-mincompactionlag": "--min-compaction-lag",
    "-deleteretention": "--delete-retention",
    "-consumergroup": "--group",
    "-partition": "--partition",
    **{f"-{name}perm": f"--{name}-perm" for name in PERMISSIONS},
}


class _MaprCommand(Command):
    """Understands the flags of `maprcli stream`. `-json` prints its envelope."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        read: list[str] = []
        for arg in args:
            if arg == "-json":
                ctx.meta[_AS_MAPR] = True
                read += ["--format", "json"]
            elif arg != "-path":
                read.append(_MAPR_FLAGS.get(arg, arg))
        return super().parse_args(ctx, read)


_AS_MAPR = "odradek.mapr"


def _print(found: list[dict[str, Any]], print_text: Callable[[], None], *, as_json: bool) -> None:
    if click.get_current_context().meta.get(_AS_MAPR):
        now = datetime.now().astimezone()
        output.print_json(
            {
                "timestamp": round(now.timestamp() * 1000),
                "timeofday": f"{now:%Y-%m-%d %H:%M:%S}.{now.microsecond // 1000:03} GMT{now:%z}",
                "status": "OK",
                "total": len(found),
                "data": found,
            }
        )
    elif as_json:
        for each in found:
            output.print_json(each)
    else:
        print_text()


@group(
    ("a stream, and what it has", "odradek stream create /plant/pumps --ttl 7d"),
    ("", "odradek stream describe /plant/pumps"),
    ("its topics have the path in their names", "odradek produce /plant/pumps:warning --value hot"),
    ("one change for all topics", "odradek stream edit /plant/pumps --ttl 1d"),
)
def stream() -> None:
    """Manage topics together, under a path.

    The topic /plant/pumps:warning belongs to the stream /plant/pumps. Topics have the stream's settings where they have
    none of their own. Clients that refuse such names use plant.pumps..warning. The flags of `maprcli stream` are
    understood, too.
    """


@group(("what a stream has", "odradek stream topic list /plant/pumps"), name="topic")
def stream_topic() -> None:
    """Create, list, grow and delete topics of a stream."""


@group(("how far each group has read", "odradek stream cursor list /plant/pumps"), name="cursor")
def cursor() -> None:
    """List and delete the positions of consumer groups in a stream."""


stream.add_command(stream_topic)
stream.add_command(cursor)


def _command(of: Group, *examples: Example, **settings: Any) -> Callable[[Callable[..., Any]], Command]:
    """Declares a command of this group that understands maprcli's flags."""

    def add(function: Callable[..., Any]) -> Command:
        made = click.command(cls=_MaprCommand, examples=examples, **settings)(function)
        of.add_command(made)
        return made

    return add


def _path_argument(function: F) -> F:
    return click.argument("path", metavar="PATH", type=types.name_type("stream"))(function)


def _attributes(function: F) -> F:
    """The options that describe a stream, passed to the command as `edit`."""

    def with_edit(
        *arguments: Any, default_partitions: int | None, autocreate: bool | None, ttl: int | None,
        compression: str | None, compact: bool | None, timestamp_type: str | None, min_compaction_lag: int | None,
        delete_retention: int | None, configs: Pairs, **values: Any,
    ) -> Any:  # fmt: skip
        settings: dict[str, str | None] = {}
        if ttl is not None:
            settings[streams.TTL_SETTING] = str(ttl) if ttl else streams.KEEPS_FOR_EVER
        if compression is not None:
            settings[streams.COMPRESSION_SETTING] = streams.compression_setting(compression)
        if compact is not None:
            settings["cleanup.policy"] = "compact" if compact else "delete"
        if timestamp_type is not None:
            settings["message.timestamp.type"] = streams.timestamp_setting(timestamp_type)
        if min_compaction_lag is not None:
            settings["min.compaction.lag.ms"] = str(min_compaction_lag)
        if delete_retention is not None:
            settings["delete.retention.ms"] = str(delete_retention)
        settings |= {name: value or None for name, value in configs}
        given = {name: values.pop(f"{name}_perm") for name in PERMISSIONS}
        permissions = {name: text for name, text in given.items() if text is not None}
        edit = streams.StreamEdit(default_partitions, autocreate, settings, permissions)
        return function(*arguments, edit=edit, **values)

    who = {
        "admin": "Who may edit and delete the stream",
        "topic": "Who may create and delete topics",
        "produce": "Who may write",
        "consume": "Who may read",
        "copy": "Who may copy the stream",
    }
    return wrapped(
        function,
        with_edit,
        option("--ttl", "TIME", _TTL, "How long records are kept: seconds, 12h, 7d; 0 for ever."),
        option("--default-partitions", "N", types.PARTITION_COUNT, "Partitions of a topic that names none."),
        option("--autocreate", "BOOL", bool, "Whether a topic is made when it is first written to."),
        option(
            "--compression", None, click.Choice(streams.COMPRESSIONS, case_sensitive=False),
            "Compression of stored records; inherit leaves it to producers.",
        ),
        option("--compact", "BOOL", bool, "Whether topics keep the last record of each key."),
        option("--timestamp-type", None, click.Choice(["createtime", "logappendtime"], case_sensitive=False),
               "Whether records have the producer's time, or that of the broker."),
        option("--min-compaction-lag", "MS", types.OFFSET, "Records are not compacted for this time."),
        option("--delete-retention", "MS", types.OFFSET, "How long deletions of keys stay visible."),
        *(
            option(f"--{name}-perm", "EXPRESSION", types.TEXT, f"{text}: u:ann|g:plant&!r:guest, or p for everybody.")
            for name, text in who.items()
        ),
        repeatable("--config -c configs", "KEY=VALUE", types.SETTING, "Another setting of the topics."),
    )  # fmt: skip


def _ttl(text: str) -> int:
    """In milliseconds; 0 is for ever."""
    ttl_ms = figures.parse_duration_ms(text)  # a number alone is seconds, as with maprcli
    if not ttl_ms and text.strip("0. "):
        raise ValueError(f"{types.quoted(text)} is less than a millisecond; 0 keeps records for ever")
    return ttl_ms


_TTL = types.ArgumentType("duration", _ttl)


@_command(
    stream,
    ("records are kept for a week", "odradek stream create /plant/pumps --ttl 7d"),
    ("four partitions for each topic", "odradek stream create /plant/pumps --default-partitions 4"),
    (
        "everybody may read, and one user may write",
        "odradek stream create /plant/pumps --consume-perm p --produce-perm u:ann",
    ),
)
@_path_argument
@_attributes
@cluster_options
def create(*, path: str, edit: streams.StreamEdit, cluster: Cluster, as_json: bool) -> None:
    """Create a stream. Its creator has every permission that is not given to others.

    The flags of maprcli are understood: -path /plant/pumps -ttl 86400 -defaultpartitions 4 -produceperm u:ann -json.
    """
    with suggesting_names(edit.settings):
        streams.create_stream(cluster, path, edit)
    _print([{"path": path, "created": True}], lambda: output.say(f"created stream {path}"), as_json=as_json)


@_command(
    stream,
    ("all topics keep their records for a day", "odradek stream edit /plant/pumps --ttl 1d"),
    ("back to the broker's default", "odradek stream edit /plant/pumps --config retention.ms="),
)
@_path_argument
@_attributes
@cluster_options
def edit(*, path: str, edit: streams.StreamEdit, cluster: Cluster, as_json: bool) -> None:
    """Change a stream: one change for all its topics. A setting without a value goes back to the default."""
    if edit == streams.StreamEdit():
        raise click.UsageError("say what to change; --help lists the options")
    with suggesting_names(edit.settings):
        streams.edit_stream(cluster, path, edit)
    _print([{"path": path, "edited": True}], lambda: output.say(f"changed stream {path}"), as_json=as_json)


@_command(
    stream,
    ("what it has, and who may use it", "odradek stream describe /plant/pumps"),
)
@_path_argument
@cluster_options
def describe(path: str, cluster: Cluster, as_json: bool) -> None:
    """Show a stream: its defaults, settings, permissions and size."""
    (found,) = streams.describe_streams(cluster, [path])
    _print([_as_object(found)], lambda: _print_stream(found), as_json=as_json)


def _as_object(found: DescribedStream) -> dict[str, Any]:
    return {
        "path": found.path,
        "stream_id": str(found.stream_id),
        "owner": found.owner,
        "default_partitions": found.default_partitions,
        "autocreate": found.creates_topics,
        "settings": {each.name: each.value for each in found.settings},
        "permissions": {each.name: each.expression for each in found.permissions},
        "topics": found.topic_count,
        "partitions": found.partition_count,
    }


def _print_stream(found: DescribedStream) -> None:
    facts = [
        count_text(found.topic_count, "topic"),
        count_text(found.partition_count, "partition"),
        f"owner {found.owner}",
    ]
    output.say(f"{output.strong(found.path)}  {' · '.join(facts)}")
    made = "made when they are first written to" if found.creates_topics else "made by hand"
    output.say(f"topics are {made}, with {count_text(found.default_partitions, 'partition')} each")
    output.say()
    if found.settings:
        rows = [(each.name, each.value, _explain(each.name, each.value or "")) for each in found.settings]
        output.print_columns(["SETTING", "VALUE", ""], rows)
    else:
        output.say("All settings have their default values.")
    if found.permissions:
        output.say()
        output.print_columns(
            ["PERMISSION", "WHO"], [(each.name, each.expression or "nobody") for each in found.permissions]
        )


def _explain(name: str, value: str) -> str:
    if name != streams.TTL_SETTING:
        return ""
    return "for ever" if value == streams.KEEPS_FOR_EVER else age_text(int(value))


@_command(stream, ("all streams", "odradek stream list"), name="list")
@cluster_options
def list_streams(cluster: Cluster, as_json: bool) -> None:
    """List the streams that you may see."""
    found = [_as_object(each) for each in streams.describe_streams(cluster)]
    rows = [
        {"path": e["path"], "topics": e["topics"], "partitions": e["partitions"], "owner": e["owner"]} for e in found
    ]
    titles = ["STREAM", "TOPICS", "PARTITIONS", "OWNER"]
    _print(found, lambda: output.print_list(rows, titles, otherwise=NO_STREAMS, as_json=False), as_json=as_json)


@_command(stream, ("with all topics", "odradek stream delete /plant/pumps"))
@_path_argument
@yes_option
@cluster_options
def delete(*, path: str, yes: bool, cluster: Cluster, as_json: bool) -> None:
    """Delete a stream with all its topics."""
    (found,) = streams.describe_streams(cluster, [path])
    confirm(f"delete stream {path} with {count_text(found.topic_count, 'topic')}", yes)
    streams.delete_streams(cluster, [path])
    _print([{"path": path, "deleted": True}], lambda: output.say(f"deleted stream {path}"), as_json=as_json)


@_command(stream, ("remove all records, keep the topics", "odradek stream purge /plant/pumps"))
@_path_argument
@yes_option
@cluster_options
def purge(*, path: str, yes: bool, cluster: Cluster, as_json: bool) -> None:
    """Delete all records of a stream. Its topics, settings and cursors stay."""
    (found,) = streams.describe_streams(cluster, [path])
    confirm(f"delete all records of {count_text(found.topic_count, 'topic')} in {path}", yes)
    purged, failures = streams.purge_stream(cluster, path)
    text = f"deleted all records of {count_text(len(purged), 'topic')} in {path}"
    _print([{"path": path, "purged_topics": purged}], lambda: output.say(text), as_json=as_json)
    output.raise_all(failures)


# Topics


def _topic_option(function: F) -> F:
    return option("--topic", "NAME", types.TOPIC_NAME, "The topic, without the path.", required=True)(function)


@_command(
    stream_topic,
    ("with the stream's partitions", "odradek stream topic create /plant/pumps --topic warning"),
    name="create",
)
@_path_argument
@_topic_option
@option("--partitions -p", "N", types.PARTITION_COUNT, "Number of partitions. Default: the stream's.")
@cluster_options
def create_topic(*, path: str, topic: str, partitions: int | None, cluster: Cluster, as_json: bool) -> None:
    """Create a topic in a stream."""
    name = f"{path}:{topic}"
    if not cluster.create_topic(name, partitions or -1, -1, {}):
        raise Failure(f"topic {name} already exists")
    _print([{"topic": name, "created": True}], lambda: output.say(f"created topic {name}"), as_json=as_json)


@_command(stream_topic, ("more partitions", "odradek stream topic edit /plant/pumps --topic warning -p 8"), name="edit")
@_path_argument
@_topic_option
@option("--partitions -p", "N", types.PARTITION_COUNT, "Number of partitions, more than there are.", required=True)
@cluster_options
def edit_topic(*, path: str, topic: str, partitions: int, cluster: Cluster, as_json: bool) -> None:
    """Give a topic more partitions. `odradek topic alter` changes settings that are its own."""
    name = f"{path}:{topic}"
    grow_topic(cluster, name, partitions)
    text = f"topic {name} has {count_text(partitions, 'partition')}"
    _print([{"topic": name, "partitions": partitions}], lambda: output.say(text), as_json=as_json)


@_command(stream_topic, ("every topic", "odradek stream topic list /plant/pumps"), name="list")
@_path_argument
@cluster_options
def list_topics(path: str, cluster: Cluster, as_json: bool) -> None:
    """List the topics of a stream."""
    streams.describe_streams(cluster, [path])
    names = streams.topics_of(cluster, path)
    found = [{"topic": each.name, "partitions": len(each.partitions)} for each in cluster.find_topics(names)]
    _print(
        found,
        lambda: output.print_list(found, ["TOPIC", "PARTITIONS"], otherwise=NO_TOPICS, as_json=False),
        as_json=as_json,
    )


@_command(stream_topic, ("", "odradek stream topic delete /plant/pumps --topic warning"), name="delete")
@_path_argument
@_topic_option
@yes_option
@cluster_options
def delete_topic(*, path: str, topic: str, yes: bool, cluster: Cluster, as_json: bool) -> None:
    """Delete a topic of a stream."""
    name = f"{path}:{topic}"
    confirm(f"delete topic {name}", yes)
    for failure in delete_topics(cluster, [name]).values():
        if failure is not None:
            raise failure
    _print([{"topic": name, "deleted": True}], lambda: output.say(f"deleted topic {name}"), as_json=as_json)


# Cursors


@_command(cursor, ("how far each group has read", "odradek stream cursor list /plant/pumps"), name="list")
@_path_argument
@option("--group", "GROUP", types.TEXT, "Only this group.")
@option("--topic", "NAME", types.TOPIC_NAME, "Only this topic, without the path.")
@cluster_options
def list_cursors(*, path: str, group: str | None, topic: str | None, cluster: Cluster, as_json: bool) -> None:
    """List the cursors of a stream: the next offset that each group reads."""
    found = [
        each._asdict()
        for each in streams.cursors_of(cluster, path, group)
        if topic is None or each.topic == f"{path}:{topic}"
    ]
    titles = ["GROUP", "TOPIC", "PARTITION", "NEXT OFFSET"]
    _print(found, lambda: output.print_list(found, titles, otherwise="no cursors", as_json=False), as_json=as_json)


@_command(cursor, ("a group that is gone", "odradek stream cursor delete /plant/pumps --group shift"), name="delete")
@_path_argument
@option("--group", "GROUP", types.GROUP_NAME, "The group whose cursors are deleted.", required=True)
@option("--topic", "NAME", types.TOPIC_NAME, "Only this topic, without the path.")
@option("--partition", "N", types.PARTITION, "Only this partition of the topic.")
@yes_option
@cluster_options
def delete_cursor(
    *, path: str, group: str, topic: str | None, partition: int | None, yes: bool, cluster: Cluster, as_json: bool
) -> None:
    """Delete the cursors of a group. It must not be reading the topics."""
    found = [
        each
        for each in streams.cursors_of(cluster, path, group)
        if (topic is None or each.topic == f"{path}:{topic}") and partition in (None, each.partition)
    ]
    confirm(f"delete {count_text(len(found), 'cursor')} of group {group} in {path}", yes)
    streams.delete_cursors(cluster, group, found)
    text = f"deleted {count_text(len(found), 'cursor')} of group {group}"
    _print([each._asdict() for each in found], lambda: output.say(text), as_json=as_json)
