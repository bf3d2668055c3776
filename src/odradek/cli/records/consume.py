"""`odradek consume`: records of topics, from a start offset or as a member of a group."""

from __future__ import annotations

import gc
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from odradek.admin.cluster import Cluster, chosen_partitions, without_leader
from odradek.admin.records.record_reader import PartitionRange, RecordReader, Start, find_ranges
from odradek.admin.topics import choose_topics, has_pattern, topics_text
from odradek.cli.client.options import cluster_options, complete_groups, complete_topics
from odradek.cli.framework import parameter_types as types
from odradek.cli.framework.commands import command
from odradek.cli.framework.interrupt import interrupt_on_terminate
from odradek.cli.framework.options import flag, option, option_names, repeatable
from odradek.cli.framework.output import note
from odradek.cli.records.formats import FormatError, RecordWriter, format_writer, json_writer, terminal_json_writer
from odradek.conventions.failures import Failure
from odradek.conventions.figures import INT64_MAX, count_text

if TYPE_CHECKING:
    from odradek.admin.records.group_reader import GroupReader

BEGINNING, END = Start(from_beginning=True), Start()
NAMES = {"earliest": BEGINNING, "beginning": BEGINNING, "latest": END, "end": END}
FORMAT_HELP = (
    r"Format of a record: %t topic, %p partition, %o offset, %k key, %v (or %s) value, %h headers (a=1,b=2), "
    r"%T timestamp in ms, %D timestamp as ISO 8601, %K and %S size of key and value in bytes (-1: null), %% percent "
    r"sign; \n \t \r \0 \e \\ \xHH. Default: %v\n, and %t\t%v\n for several topics."
)
MOST_NAMED = 20  # batches and partitions that cannot be read
OBJECTS_BETWEEN_COLLECTIONS = 100_000  # records are not in cycles: with Python's 700, looking for them takes 15 %
START_OPTIONS = ("from_beginning", "from_end", "from_time", "offset", "last")


def read_start(text: str) -> Start:
    """Where `--offset` starts. The names and `-N` are those of kcat."""
    if text in NAMES:
        return NAMES[text]
    digits = text.removeprefix("-")
    if not digits.isascii() or not digits.isdecimal() or len(digits) > 40:
        raise ValueError(f"{types.quoted(text)} is no offset; write earliest, latest, a number, or -N")
    if int(digits) > INT64_MAX:
        raise ValueError(f"{types.quoted(text)} is larger than any offset ({INT64_MAX})")
    return Start(last=int(digits)) if text.startswith("-") else Start(offset=int(digits))


@command(
    ("new records as they arrive, until Ctrl-C", "odradek consume pump"),
    ("all records, then stop", "odradek consume pump --from-beginning --until-end"),
    ("the last ten of each partition, with time and key", "odradek consume pump -o -10 --timestamps --keys"),
    ("the last hour of partitions 0 and 3", "odradek consume pump --from-time -1h -p 0 -p 3"),
    ("as a member of a group, which commits what it has read", "odradek consume pump --group audit"),
    ("with a format of your own", r"odradek consume pump --from-beginning -f '%p:%o %k = %v\n'"),
    ("several topics; each line begins with the topic", "odradek consume pump 'rig-*' -e"),
    ("for a program", "odradek consume pump --from-beginning --until-end --format json | jq .value"),
)
@click.argument(
    "names", metavar="TOPIC...", nargs=-1, required=True, type=types.TOPIC_NAME, shell_complete=complete_topics
)
@flag("--from-beginning", "Start at the earliest record.")
@flag("--from-end", "Start after the latest record (default without --until-end).")
@option("--from-time", "TIME", types.TIME_MS, "Start at a time: ISO, epoch ms, or -1h.")
@option(
    "--offset -o", "OFFSET", types.ArgumentType("offset", read_start),
    "Start at this offset: a number, earliest, latest, or -N for N records before the end of each partition.",
)  # fmt: skip
@option("--last", "N", types.OFFSET, "Start N records before the end of each partition (as -o -N).")
@option(
    "--group -g", "NAME", types.GROUP_NAME,
    "Join this consumer group: start at its committed offsets, and commit what was read. --from-beginning and "
    "-o earliest or latest apply where nothing is committed.", shell_complete=complete_groups,
)  # fmt: skip
@repeatable("--partition -p partitions", "N", types.PARTITION, "Read only this partition.")
@option("--max-records -n", "N", types.RECORD_COUNT, "Stop after N records.")
@flag("--until-end -e", "Stop at the end of the topics.")
@option("--timeout timeout", "DURATION", types.DURATION_MS, "Stop after this long without a record, such as 5s.")
@click.option("--output-format", "-f", metavar="FORMAT", help=FORMAT_HELP)
@flag("--keys", "Print the key before the value.")
@flag("--headers", "Print the headers before the value.")
@flag("--timestamps", "Print the timestamp before the value.")
@flag("--offsets", "Print partition:offset before the value.")
@option("--null-marker", "TEXT", types.BYTES, "Text for a null key or value. Default: nothing.", default="")
@cluster_options
def consume(
    *, names: tuple[str, ...], group: str | None, partitions: tuple[int, ...], max_records: int | None,
    until_end: bool, timeout: int | None, cluster: Cluster, as_json: bool, **rest: Any,
) -> None:  # fmt: skip
    """Read records from topics, and wait for more until Ctrl-C.

    A name with *, ? or [ ] is a pattern, as in a shell; quote it. It stands for the topics that exist at the start.

    Without --group no consumer group is joined and no offset is committed. Records are fetched over connections of our
    own: fetch.* properties do not apply, and sasl.mechanisms must be PLAIN or SCRAM, not GSSAPI or OAUTHBEARER.
    """
    write = chosen_writer(rest, as_json=as_json, with_topic=len(names) > 1 or has_pattern(names))
    start = chosen_start(rest, until_end and group is None)
    missing = MissingRecords()
    reader: RecordReader | GroupReader
    if group is not None:
        check_group_options(rest, partitions)
    topics = choose_topics(cluster, names)
    if group is not None:
        from odradek.admin.records.group_reader import GroupReader  # imports the client library

        cluster.describe_topics(topics)  # a subscription would wait for a topic that does not exist
        if sys.stderr.isatty():
            note(f"joining group {group} to read {topics_text(topics)}; Ctrl-C to stop")
        reader = GroupReader(
            cluster, topics, group,
            from_beginning=start.from_beginning or (until_end and not given_starts(rest)),
            until_end=until_end, idle_timeout_ms=timeout, on_trouble=note_retrying, notify=note,
        )  # fmt: skip
    else:
        led = led_partitions(cluster, topics, partitions, missing)
        ranges = {topic: find_ranges(cluster, topic, found, start) for topic, found in led.items()}
        reader = RecordReader(
            cluster, ranges, until_end=until_end, idle_timeout_ms=timeout,
            on_unreadable=missing.add, on_failure=lambda _key, failure: missing.add(failure.message),
            on_trouble=note_retrying,
        )  # fmt: skip
        if sys.stderr.isatty() and not until_end:
            note(waiting_text(ranges))
    gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS)
    output = sys.stdout.buffer
    with interrupt_on_terminate(), reader:  # so that a member leaves its group
        left = max_records
        for batch in reader.batches():
            records = batch if left is None else batch[:left]
            output.write(write(records))
            output.flush()
            reader.mark_written(records)
            if left is not None:
                left -= len(records)
                if not left:
                    break
    missing.check()


def note_retrying(trouble: str) -> None:
    note(f"{trouble}; retrying until Ctrl-C")


class MissingRecords:
    """Names partitions and batches that cannot be read on standard error; `check` makes the command fail for them."""

    def __init__(self) -> None:
        self.count = 0

    def add(self, unreadable: object) -> None:
        self.count += 1
        if self.count <= MOST_NAMED:
            note(f"not read: {unreadable}")

    def check(self) -> None:
        if self.count:
            missing = "1 partition or batch is" if self.count == 1 else f"{self.count:,} partitions or batches are"
            named = f"; the first {MOST_NAMED} are named" if self.count > MOST_NAMED else ""
            raise Failure(f"not all records could be read: {missing} missing{named}")


def led_partitions(
    cluster: Cluster, topics: Sequence[str], wanted: tuple[int, ...], missing: MissingRecords
) -> dict[str, list[int]]:
    """The wanted partitions that have a leader, by topic; Failure if none has."""
    described = cluster.describe_topics(topics)
    offline = without_leader(described)
    chosen = {each.name: chosen_partitions(each, wanted) for each in described}
    led = {topic: [each for each in found if (topic, each) not in offline] for topic, found in chosen.items()}
    if not any(led.values()):
        raise Failure(f"no partition of {topics_text(topics)} has a leader; `odradek cluster status` shows the brokers")
    for topic, found in chosen.items():
        for each in found:
            if each not in led[topic]:
                missing.add(f"{topic}-{each} has no leader; `odradek cluster status` shows the brokers")
    return {topic: found for topic, found in led.items() if found}


def waiting_text(ranges: Mapping[str, Sequence[PartitionRange]]) -> str:
    topics = topics_text(ranges)
    unread = sum(each.end_offset - each.start_offset for found in ranges.values() for each in found)
    if not unread:
        return f"waiting for records of {topics}; Ctrl-C to stop"
    return f"reading {topics} from {count_text(unread, 'offset')} before its end; Ctrl-C to stop"


def given_starts(options: dict[str, Any]) -> list[str]:
    """The given options that say where to start."""
    return [name for name in START_OPTIONS if options[name] is not None and options[name] is not False]


def chosen_start(options: dict[str, Any], until_end: bool) -> Start:
    given = given_starts(options)
    if len(given) > 1:
        raise click.UsageError(f"{option_names(given)} exclude each other: each says where to start")
    if options["offset"] is not None:
        start: Start = options["offset"]
        return start
    return Start(
        from_beginning=options["from_beginning"] or (until_end and not given),
        from_time_ms=options["from_time"],
        last=options["last"],
    )


def check_group_options(options: dict[str, Any], partitions: tuple[int, ...]) -> None:
    """A member of a group starts at the group's offsets, and reads the partitions that it is assigned."""
    if partitions:
        raise click.UsageError("--group and --partition exclude each other: the group assigns partitions")
    start: Start | None = options["offset"]
    if options["from_time"] is not None or options["last"] is not None or start not in (None, BEGINNING, END):
        raise click.UsageError(
            "--group starts at committed offsets; where there are none, at --from-beginning or --from-end "
            "(`odradek group reset` moves committed offsets)"
        )


def chosen_writer(options: dict[str, Any], *, as_json: bool, with_topic: bool) -> RecordWriter:
    """The writer for --output-format or --keys, --headers, --timestamps, --offsets; of several topics with names."""
    columns = {"timestamps": "%D", "offsets": "%p:%o", "keys": "%k", "headers": "%h"}
    asked = [verb for name, verb in columns.items() if options[name]]
    text = options["output_format"]
    is_for_terminal = sys.stdout.isatty()
    if as_json:
        given = [name for name in ("output_format", *columns, "null_marker") if options[name]]
        if given:
            raise click.UsageError(f"--format json has every field of a record; it excludes {option_names(given)}")
        return terminal_json_writer if is_for_terminal else json_writer
    if text is not None and asked:
        raise click.UsageError("--output-format excludes --keys, --headers, --timestamps and --offsets")
    try:
        default = "\\t".join([*(["%t"] if with_topic else []), *asked, "%v"]) + "\\n"
        return format_writer(text or default, options["null_marker"], is_for_terminal=is_for_terminal)
    except FormatError as error:
        raise click.UsageError(f"--output-format: {error}") from None
