"""`odradek produce`: records from the command line, a file or a pipe into a topic."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import IO, TYPE_CHECKING, Any

import click

from odradek.cli.client.options import cluster_options, topic_argument
from odradek.cli.framework.commands import command
from odradek.cli.framework.output import note, shows_progress
from odradek.cli.framework.parameter_types import BYTES, HEADER, PARTITION
from odradek.cli.framework.times import TimeType
from odradek.cli.records.format_string import FormatError
from odradek.cli.records.record_input import InputError, InputRecord, LineReader, line_reader
from odradek.cli.records.record_writer import RecordWriter
from odradek.conventions.failures import Failure
from odradek.conventions.figures import count_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from odradek.admin.cluster import Cluster

PROGRESS_FROM_BYTES = 1_000_000


@command(
    examples=[
        ("one record", "odradek produce pump --key rig-7 --value 'pressure 107' --header unit=bar"),
        (
            "every line of a file; the key is before the first tab",
            r"odradek produce pump -f '%k\t%v' --file rigs.tsv",
        ),
        ("JSON lines with key, value, headers, partition, timestamp", "odradek produce pump -f json < records.jsonl"),
        ("a copy of a topic", "odradek consume pump --until-end --format json | odradek produce copy -f json"),
        ("a tombstone: compaction removes the key", "odradek produce pump --key rig-7 --null-value"),
    ]
)
@topic_argument
@click.option(
    "--value", "-v", "values", type=BYTES, multiple=True, metavar="TEXT", help="Value of a record. Repeatable."
)
@click.option("--null-value", is_flag=True, help="Write one record without a value: a tombstone for --key.")
@click.option("--key", "-k", type=BYTES, metavar="TEXT", help="Key of the records that have none of their own.")
@click.option("--file", "source", type=click.File("rb"), help="Read this file instead of standard input.")
@click.option(
    "--input-format",
    "-f",
    metavar="FORMAT",
    help=r"Format of a line: `json`, or a format string with %k key, %v (or %s) value, %h headers (a=1,b=2), "
    r"%p partition, %T timestamp, %% and \t \n \xHH. Default: %v, the line is the value.",
)
@click.option("--key-separator", "-K", metavar="TEXT", help=r"Short for -f '%kTEXT%v'.")
@click.option("--null-marker", type=BYTES, metavar="TEXT", help="A key or value that equals TEXT becomes null.")
@click.option("--header", "-H", "headers", metavar="NAME=VALUE", type=HEADER, multiple=True, help="Header. Repeatable.")
@click.option("--partition", "-p", type=PARTITION, metavar="N", help="Partition. Default: chosen by the key.")
@click.option(
    "--timestamp",
    "-T",
    type=TimeType(is_written=True),
    metavar="TIME",
    help="Timestamp: ISO, epoch ms, or -1h. Default: now.",
)
@click.option(
    "--acks",
    type=click.Choice(["0", "1", "all"]),
    default="all",
    show_default=True,
    help="Replicas to wait for: none, the leader, or all in-sync replicas.",
)
@click.option(
    "--compression",
    "-z",
    type=click.Choice(["none", "gzip", "snappy", "lz4", "zstd"]),
    default="none",
    show_default=True,
    help="Compression of the batches.",
)
@click.option("--idempotent", is_flag=True, help="Write no duplicates when a request is retried (enable.idempotence).")
@cluster_options
def produce(
    *,
    topic: str,
    values: tuple[bytes, ...],
    null_value: bool,
    source: IO[bytes] | None,
    acks: str,
    compression: str,
    idempotent: bool,
    cluster: Cluster,
    as_json: bool,
    **rest: Any,
) -> None:
    """Write records to a topic: --value, or one record per line of --file or standard input."""
    check_exclusions(values, null_value, source, rest)
    if idempotent and acks != "all":
        raise click.UsageError("--idempotent needs --acks all")
    reader = chosen_reader(rest.pop("input_format"), rest.pop("key_separator"))
    defaults = Defaults(**rest)
    settings = {"acks": acks, "compression.type": compression, "enable.idempotence": idempotent}
    is_new_topic = not cluster.has_topic(topic)
    writer = RecordWriter(cluster, topic, settings)
    records: Iterable[InputRecord]
    if null_value:
        records = [defaults.fill(InputRecord(), keep_null_value=True)]
    elif values:
        records = [defaults.fill(InputRecord(value=value)) for value in values]
    else:
        records = records_of(source if source is not None else sys.stdin.buffer, reader, defaults)
    try:
        stopped_after = write_all(writer, records)
    finally:  # on a failure, too, report what was written before it
        writer.finish()
        if is_new_topic and writer.written:
            report_new_topic(cluster, topic)
        writer.print_summary(as_json, is_new_topic=is_new_topic and writer.written > 0)
    writer.raise_failures(stopped_after)


def write_all(writer: RecordWriter, records: Iterable[InputRecord]) -> int | None:
    """Write records until one was refused. Returns the number of sent ones if others are left, which were not sent."""
    for number, record in enumerate(records):
        if writer.first_error is not None or not writer.write(record):
            return number
    return None


def check_exclusions(
    values: tuple[bytes, ...], null_value: bool, source: IO[bytes] | None, options: dict[str, Any]
) -> None:
    """Raise a UsageError for options of which one would have no effect."""
    if null_value and (values or source is not None):
        raise click.UsageError("--null-value writes one record; it excludes --value and --file")
    if values and source is not None:
        raise click.UsageError("--value and --file exclude each other: records come from one of them")
    for name in ("input_format", "key_separator"):
        if options[name] is not None and (values or null_value):
            option = "--" + name.replace("_", "-")
            given = "--value" if values else "--null-value"
            raise click.UsageError(f"{option} splits input lines and has no effect on {given}; use --key for the key")


def report_new_topic(cluster: Cluster, topic: str) -> None:
    with suppress(Failure):
        partitions = count_text(len(cluster.describe_topic(topic).partitions), "partition")
        note(f"the broker created topic {topic} with {partitions}, because it did not exist")


def chosen_reader(input_format: str | None, key_separator: str | None) -> LineReader:
    if key_separator is not None:
        if input_format is not None:
            raise click.UsageError("--key-separator and --input-format exclude each other")
        input_format = f"%k{key_separator.replace('%', '%%')}%v"
    try:
        return line_reader(input_format or "%v")
    except FormatError as error:
        raise click.UsageError(f"--input-format: {error}") from None


class Defaults:
    """Fields from the command line, for records that do not have their own key, partition or timestamp."""

    def __init__(
        self,
        *,
        key: bytes | None,
        headers: tuple[tuple[str, bytes], ...],
        partition: int | None,
        timestamp: int | None,
        null_marker: bytes | None,
    ) -> None:
        self.key = key
        self.headers: list[tuple[str, bytes | None]] = [*headers]
        self.partition = partition
        self.timestamp_ms = timestamp
        self.null_marker = null_marker

    def fill(self, record: InputRecord, *, keep_null_value: bool = False) -> InputRecord:
        if self.null_marker is not None and not keep_null_value:
            record.value = None if record.value == self.null_marker else record.value
            record.key = None if record.key == self.null_marker else record.key
        if record.key is None:
            record.key = self.key
        if record.partition is None:
            record.partition = self.partition
        if record.timestamp_ms is None:
            record.timestamp_ms = self.timestamp_ms
        if self.headers:
            record.headers = [*self.headers, *record.headers]
        return record


def records_of(stream: IO[bytes], reader: LineReader, defaults: Defaults) -> Iterator[InputRecord]:
    """One record per line; Failure names a line that is no record."""
    if stream.isatty():
        note("type one record per line; Ctrl-D ends the input")
    for number, line in enumerate(lines_of(stream), start=1):
        try:
            yield defaults.fill(reader(line.removesuffix(b"\n")))
        except InputError as error:
            raise Failure(f"line {number}: {error}") from None


def lines_of(stream: IO[bytes]) -> Iterator[bytes]:
    """The lines of a stream, with a progress bar if it is a large file and standard error is a terminal."""
    size_bytes = 0
    with suppress(OSError):
        size_bytes = os.fstat(stream.fileno()).st_size
    if size_bytes < PROGRESS_FROM_BYTES or not shows_progress():
        yield from stream
        return
    from odradek.cli.framework.progress import bytes_progress

    with bytes_progress("producing", size_bytes) as advance:
        for line in stream:
            advance(len(line))
            yield line
