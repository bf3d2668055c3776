"""`odradek produce`: records from the command line, a file or a pipe into a topic."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import IO, TYPE_CHECKING, Any

import click

from odradek.cli.framework.commands import command
from odradek.cli.framework.failure import Failure
from odradek.cli.framework.options import cluster_options, topic_argument
from odradek.cli.framework.output import note, shows_progress
from odradek.cli.framework.parameter_types import BYTES, HEADER, PARTITION
from odradek.cli.framework.times import TimeType
from odradek.cli.records.format_string import FormatError
from odradek.cli.records.record_input import InputError, InputRecord, LineReader, line_reader
from odradek.cli.records.record_writer import RecordWriter

if TYPE_CHECKING:
    from collections.abc import Iterator

    from odradek.cli.client.cluster import Cluster

PROGRESS_FROM_BYTES = 1_000_000


@command(
    examples=[
        ("one record", "odradek produce pump --key rig-7 --value 'pressure 107' --header unit=bar"),
        (
            "every line of a file; the key stands before the first tab",
            r"odradek produce pump -f '%k\t%v' --file rigs.tsv",
        ),
        ("JSON lines with key, value, headers, partition, timestamp", "odradek produce pump -f json < records.jsonl"),
        ("a copy of a topic", "odradek consume pump --until-end --format json | odradek produce copy -f json"),
        ("a tombstone: compaction forgets the key", "odradek produce pump --key rig-7 --null-value"),
    ]
)
@topic_argument()
@click.option(
    "--value", "-v", "values", type=BYTES, multiple=True, metavar="TEXT", help="The value of a record. Repeatable."
)
@click.option("--null-value", is_flag=True, help="Write one record without a value: a tombstone for --key.")
@click.option("--key", "-k", type=BYTES, metavar="TEXT", help="The key of every record that does not bring its own.")
@click.option("--file", "source", type=click.File("rb"), help="Read this file instead of stdin.")
@click.option(
    "--input-format",
    "-f",
    metavar="FORMAT",
    help=r"How a line becomes a record: `json`, or a format with %k key, %v (or %s) value, %h headers (a=1,b=2), "
    r"%p partition, %T timestamp, %% and \t \n \xHH. Default %v: the line is the value.",
)
@click.option("--key-separator", "-K", metavar="TEXT", help=r"Short for -f '%kTEXT%v'.")
@click.option(
    "--null-marker", type=BYTES, metavar="TEXT", help="A key or value of a line that is exactly TEXT is null."
)
@click.option(
    "--header", "-H", "headers", metavar="NAME=VALUE", type=HEADER, multiple=True, help="A header. Repeatable."
)
@click.option("--partition", "-p", type=PARTITION, metavar="N", help="The partition; by key if absent.")
@click.option(
    "--timestamp", "-T", type=TimeType(is_written=True), metavar="TIME", help="ISO, epoch ms or -1h; now if absent."
)
@click.option(
    "--acks", type=click.Choice(["0", "1", "all"]), default="all", show_default=True, help="Whom to wait for."
)
@click.option(
    "--compression",
    "-z",
    type=click.Choice(["none", "gzip", "snappy", "lz4", "zstd"]),
    default="none",
    show_default=True,
    help="The codec of the batches.",
)
@click.option("--idempotent", is_flag=True, help="Retries write no duplicates (enable.idempotence).")
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
    """Write records to a topic: --value, or one record a line from --file or stdin."""
    if null_value and (values or source is not None):
        raise click.UsageError("--null-value writes one record of its own; leave out --value and --file")
    if idempotent and acks != "all":
        raise click.UsageError("--idempotent needs --acks all")
    reader = chosen_reader(rest.pop("input_format"), rest.pop("key_separator"))
    defaults = Defaults(**rest)
    settings = {"acks": acks, "compression.type": compression, "enable.idempotence": idempotent}
    writer = RecordWriter(cluster, topic, settings)
    try:
        if null_value:
            writer.write(defaults.fill(InputRecord(), keep_null_value=True))
        elif values:
            for value in values:
                writer.write(defaults.fill(InputRecord(value=value)))
        else:
            stream = source if source is not None else sys.stdin.buffer
            for record in records_of(stream, reader, defaults):
                writer.write(record)
    finally:  # however it ends, what was read before stays written, and is told
        writer.finish()
        writer.print_summary(as_json)
    writer.raise_failures()


def chosen_reader(input_format: str | None, key_separator: str | None) -> LineReader:
    if key_separator is not None:
        if input_format is not None:
            raise click.UsageError("--key-separator is itself an --input-format; give one of them")
        input_format = f"%k{key_separator.replace('%', '%%')}%v"
    try:
        return line_reader(input_format or "%v")
    except FormatError as error:
        raise click.UsageError(f"--input-format: {error}") from None


class Defaults:
    """What the command line says of every record; a record's own key, partition and timestamp win."""

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
    """One record a line; a line that is none stops everything and is named."""
    if stream.isatty():
        note("one record a line; Ctrl-D ends")
    for number, line in enumerate(lines_of(stream), start=1):
        try:
            yield defaults.fill(reader(line.removesuffix(b"\n")))
        except InputError as error:
            raise Failure(f"line {number}: {error}") from None


def lines_of(stream: IO[bytes]) -> Iterator[bytes]:
    """The lines of a stream, with a progress bar when it is a big file and someone watches."""
    size_bytes = 0
    with suppress(OSError):
        size_bytes = os.fstat(stream.fileno()).st_size
    if size_bytes < PROGRESS_FROM_BYTES or not shows_progress():
        yield from stream
        return
    from odradek.cli.framework.progress import bytes_progress  # noqa: PLC0415 - rich is only for those who watch

    with bytes_progress("producing", size_bytes) as advance:
        for line in stream:
            advance(len(line))
            yield line
