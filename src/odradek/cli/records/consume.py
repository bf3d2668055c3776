"""`odradek consume`: records of a topic on screen, from any point, without a consumer group."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from odradek.cli.framework.commands import command
from odradek.cli.framework.options import cluster_options, topic_argument
from odradek.cli.framework.parameter_types import BYTES, OFFSET, PARTITION, RECORD_COUNT
from odradek.cli.framework.times import DurationType, TimeType
from odradek.cli.records.consume_range import Start, chosen_partitions, find_ranges
from odradek.cli.records.format_string import FormatError
from odradek.cli.records.record_output import RecordWriter, format_writer, json_writer
from odradek.cli.records.record_reader import RecordReader

if TYPE_CHECKING:
    from odradek.cli.client.cluster import Cluster

FORMAT_HELP = (
    r"How a record is written: %t topic, %p partition, %o offset, %k key, %v (or %s) value, %h headers (a=1,b=2), "
    r"%T timestamp in ms, %D timestamp as ISO 8601, %K and %S length of key and value in bytes (-1: null), %% a "
    r"percent sign; \n \t \r \0 \e \\ \xHH. Default %v\n."
)


@command(
    examples=[
        ("new records as they come, until Ctrl-C", "odradek consume pump"),
        ("everything there is, then stop", "odradek consume pump --from-beginning --until-end"),
        ("the last ten of each partition, with time and key", "odradek consume pump --last 10 --timestamps --keys"),
        ("the last hour of partitions 0 and 3", "odradek consume pump --from-time -1h -p 0 -p 3"),
        ("your own format", r"odradek consume pump --from-beginning -f '%p:%o %k = %v\n'"),
        ("for a program", "odradek consume pump --from-beginning --until-end --format json | jq .value"),
    ]
)
@topic_argument()
@click.option("--from-beginning", is_flag=True, help="Start at the earliest record.")
@click.option("--from-end", is_flag=True, help="Start after the latest record: the default, unless --until-end.")
@click.option("--from-time", type=TimeType(), metavar="TIME", help="Start at a time: ISO, epoch ms, or -1h.")
@click.option("--offset", "-o", type=OFFSET, metavar="N", help="Start at this offset.")
@click.option("--last", type=OFFSET, metavar="N", help="Start N records before the end of each partition.")
@click.option(
    "--partition",
    "-p",
    "partitions",
    type=PARTITION,
    metavar="N",
    multiple=True,
    help="Read only this partition. Repeatable.",
)
@click.option("--max-records", "-n", type=RECORD_COUNT, metavar="N", help="Stop after N records.")
@click.option("--until-end", "-e", is_flag=True, help="Stop at the end of the topic as it was at the start.")
@click.option("--timeout", type=DurationType(), metavar="DURATION", help="Stop when no record came for so long (5s).")
@click.option("--output-format", "-f", metavar="FORMAT", help=FORMAT_HELP)
@click.option("--keys", is_flag=True, help="Write the key before the value.")
@click.option("--headers", is_flag=True, help="Write the headers before the value.")
@click.option("--timestamps", is_flag=True, help="Write the timestamp before the value.")
@click.option("--offsets", is_flag=True, help="Write partition:offset before the value.")
@click.option(
    "--null-marker",
    metavar="TEXT",
    type=BYTES,
    default="",
    help="What to write for a null key or value. Default: nothing.",
)
@cluster_options
def consume(
    *,
    topic: str,
    partitions: tuple[int, ...],
    max_records: int | None,
    until_end: bool,
    timeout: int | None,
    cluster: Cluster,
    as_json: bool,
    **rest: Any,
) -> None:
    """Read records from a topic, and wait for more unless told when to stop.

    No consumer group is joined and no offset is committed: others do not notice.
    """
    write = json_writer if as_json else chosen_writer(rest)
    start = chosen_start(rest, until_end)
    ranges = find_ranges(cluster, topic, chosen_partitions(cluster, topic, partitions), start)
    output = sys.stdout.buffer
    with RecordReader(cluster, topic, ranges, until_end=until_end, idle_timeout_ms=timeout) as reader:
        left = max_records
        for batch in reader.batches():
            messages = batch if left is None else batch[:left]
            output.write(b"".join(map(write, messages)))
            output.flush()
            if left is not None:
                left -= len(messages)
                if not left:
                    break


def chosen_start(options: dict[str, Any], until_end: bool) -> Start:
    given = [
        name
        for name in ("from_beginning", "from_end", "from_time", "offset", "last")
        if options[name] is not None and options[name] is not False
    ]
    if len(given) > 1:
        names = " and ".join("--" + name.replace("_", "-") for name in given)
        raise click.UsageError(f"{names} both say where to start; give one")
    return Start(
        from_beginning=options["from_beginning"] or (until_end and not given),
        from_time_ms=options["from_time"],
        offset=options["offset"],
        last=options["last"],
    )


def chosen_writer(options: dict[str, Any]) -> RecordWriter:
    """The writer for --output-format, or for the columns that --keys and its like ask for."""
    columns = {"timestamps": "%D", "offsets": "%p:%o", "keys": "%k", "headers": "%h"}
    asked = [verb for name, verb in columns.items() if options[name]]
    text = options["output_format"]
    if text is not None and asked:
        raise click.UsageError("--output-format already says what to write; leave out --keys and its like")
    try:
        return format_writer(text or "\\t".join([*asked, "%v"]) + "\\n", options["null_marker"])
    except FormatError as error:
        raise click.UsageError(f"--output-format: {error}") from None
