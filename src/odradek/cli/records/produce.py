"""`odradek produce`: records from the command line, a file or standard input."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import IO, TYPE_CHECKING, Any

import click
from confluent_kafka import KafkaError, KafkaException, Message, ThrottleEvent

from odradek.admin.settings import Kind, read_settings
from odradek.cli.client.options import acks_option, cluster_options, compression_option, topic_argument
from odradek.cli.framework.commands import command
from odradek.cli.framework.options import flag, option, option_names, repeatable
from odradek.cli.framework.output import note, print_json, progress_bar, say
from odradek.cli.framework.parameter_types import BYTES, HEADER, PARTITION, WRITTEN_TIME_MS
from odradek.cli.records.formats import FormatError, InputError, InputRecord, LineReader, line_reader
from odradek.conventions.dataclass import dataclass
from odradek.conventions.failures import Failure
from odradek.conventions.figures import count_text

if TYPE_CHECKING:
    from odradek.admin.cluster import Cluster


WARNS_AFTER_S = 2.0
GIVES_UP_AFTER_S = 30.0  # without an acknowledgement, while the broker does not throttle
LARGEST_RECORD_BYTES = 64_000_000  # the broker decides; this is what the client's queue holds
UNKNOWN_TOPIC_TIMEOUT_MS = 5_000
POLL_EVERY_RECORDS = 500
PROGRESS_FROM_BYTES = 1_000_000


class RecordWriter:
    """Writes to one topic; `finish` waits for every acknowledgement.

    Records have no timeout of their own: while a quota throttles the client, those that wait would expire.
    """

    def __init__(self, cluster: Cluster, topic: str, settings: dict[str, Any]) -> None:
        self.cluster = cluster
        self.topic = topic
        self.acks = str(settings["acks"])
        self.written_ranges: dict[int, list[int]] = {}  # partition -> first offset, last offset, records
        self.failures = 0
        self.first_error: KafkaError | None = None
        self.size_bytes = 0
        self._since_poll = 0
        self._reason = ""  # for which the rest was given up
        self._progressed_s = time.monotonic()
        self._is_throttled = self._has_warned = False
        settings = {
            "message.timeout.ms": 0,
            "message.max.bytes": LARGEST_RECORD_BYTES,
            "topic.metadata.propagation.max.ms": UNKNOWN_TOPIC_TIMEOUT_MS,
            "queue.buffering.max.kbytes": 65536,
            **settings,
        }
        self.producer = cluster.producer(settings, on_delivery=self._delivered, throttle_cb=self._throttled)

    @property
    def written(self) -> int:
        return sum(each[2] for each in self.written_ranges.values())

    def write(self, record: InputRecord) -> bool:
        """Returns False if the records before this one are not acknowledged, so that it was not sent."""
        optional: dict[str, Any] = {"headers": record.headers} if record.headers else {}
        if record.partition is not None:
            optional["partition"] = record.partition
        if record.timestamp_ms is not None:
            optional["timestamp"] = record.timestamp_ms
        while True:
            try:
                self.producer.produce(self.topic, record.value, record.key, **optional)
                break
            except BufferError:  # the client's queue is full: let it drain
                self.producer.poll(0.2)
                if not self._may_wait():
                    return False
            except KafkaException as error:
                partition = "" if record.partition is None else f", partition {record.partition}"
                raise self.cluster.failure(error.args[0], f"topic {self.topic}{partition}", "Write") from None
        self.size_bytes += len(record.value or b"") + len(record.key or b"")
        self._since_poll += 1
        if self._since_poll == POLL_EVERY_RECORDS:
            self._since_poll = 0
            self.producer.poll(0)
            if not len(self.producer):
                self._progressed_s = time.monotonic()
            return self._may_wait()
        return True

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.failures += 1
            self.first_error = self.first_error or error
            return
        self._progressed_s = max(self._progressed_s, time.monotonic())
        partition, offset = message.partition(), message.offset()
        each = self.written_ranges.get(partition)  # type: ignore[arg-type]  # a delivered record has a partition and an offset
        if each is None:
            self.written_ranges[partition] = [offset, offset, 1]  # type: ignore[index, list-item]  # as above
        else:
            each[1] = offset  # type: ignore[assignment]  # as above
            each[2] += 1

    def finish(self) -> None:
        """Wait until every record is acknowledged or has failed."""
        self._progressed_s = max(self._progressed_s, time.monotonic())
        while self.producer.flush(0.5):
            self._may_wait()

    def _throttled(self, event: ThrottleEvent) -> None:
        """Called by `poll`: the broker answers the next request after this time."""
        self._progressed_s = max(self._progressed_s, time.monotonic() + event.throttle_time)
        if not self._is_throttled:
            self._is_throttled = True
            note("a quota of the cluster throttles this client, so that writing takes longer (`odradek quota list`)")

    def _may_wait(self) -> bool:
        """Without progress for a while, notes what is in the way, and later gives up what is not acknowledged."""
        if self._reason:
            return False
        waited_s = time.monotonic() - self._progressed_s
        if waited_s < GIVES_UP_AFTER_S:
            if waited_s > WARNS_AFTER_S and not self._has_warned:
                self._has_warned = True
                if (obstacle := self._obstacle()) is not None:
                    note(f"waiting for up to {GIVES_UP_AFTER_S:.0f} s: {obstacle}")
            return True
        self._reason = self._obstacle() or "the broker did not acknowledge in time; is it running?"
        self.producer.purge()
        return False

    def _obstacle(self) -> str | None:
        """Why the brokers do not acknowledge, as far as they show it."""
        try:
            partitions = self.cluster.describe_topic(self.topic).partitions
            settings = {each.name: each.value for each in read_settings(self.cluster, Kind.TOPIC, self.topic)}
        except Failure:
            return None
        least = int(settings["min.insync.replicas"] or 1)
        for each in partitions:
            if each.leader is None:
                return f"partition {each.id} has no leader; `odradek topic describe {self.topic}` shows its replicas"
            if self.acks == "all" and len(each.in_sync) < min(least, len(each.replicas)):
                in_sync = count_text(len(each.in_sync), "in-sync replica")
                return (
                    f"partition {each.id} has {in_sync}, and min.insync.replicas is {least} (NOT_ENOUGH_REPLICAS); "
                    "start the brokers of its other replicas"
                )
        return None

    def raise_failures(self, stopped_after: int | None = None) -> None:
        """Failure if a record was refused. `stopped_after` is the number of records after which no more were read."""
        if self.first_error is None:
            return
        rest = "" if stopped_after is None else f"; input after record {stopped_after:,} was not sent"
        count = count_text(self.failures, "record")
        if self._reason:
            raise Failure(f"{count} not acknowledged: topic {self.topic}: {self._reason}{rest}")
        failure = self.cluster.failure(self.first_error, f"topic {self.topic}", "Write")
        from odradek.admin.groups import with_similar_names

        raise Failure(f"{count} not written: {with_similar_names(self.cluster, failure).message}{rest}")

    def print_summary(self, as_json: bool, *, is_new_topic: bool = False) -> None:
        """Print how many records were written, and to which offsets. With acks=0 the offsets are unknown."""
        ranges = [
            {"partition": partition, "first_offset": first, "last_offset": last, "records": records}
            for partition, (first, last, records) in sorted(self.written_ranges.items())
        ]
        if self.acks == "0":
            ranges = [{"partition": each["partition"], "records": each["records"]} for each in ranges]
        if as_json:
            summary = {"topic": self.topic, "records": self.written, "bytes": self.size_bytes, "partitions": ranges}
            print_json({**summary, "failed": self.failures, "topic_created": is_new_topic})
            return
        if ranges or not self.failures:
            where = f":{_ranges_text(ranges)}" if ranges else ""
            say(f"{count_text(self.written, 'record')} written to {self.topic}{where}")


def _ranges_text(ranges: list[dict[str, int]]) -> str:
    """` partition 0, offset 7`, or a line for each partition."""
    lines = []
    for each in ranges:
        first, last = each.get("first_offset"), each.get("last_offset")
        if first is None:
            span = count_text(each["records"], "record") + ", unacknowledged"
        else:
            span = f"offset {first}" if first == last else f"offsets {first}–{last}"
        lines.append(f"partition {each['partition']}, {span}")
    return " " + lines[0] if len(lines) == 1 else "".join(f"\n  {line}" for line in lines)


@command(
    ("one record", "odradek produce pump --key rig-7 --value 'pressure 107' --header unit=bar"),
    ("every line of a file; the key is before the first tab", r"odradek produce pump -f '%k\t%v' --file rigs.tsv"),
    ("JSON lines with key, value, headers, partition, timestamp", "odradek produce pump -f json < records.jsonl"),
    ("a copy of a topic", "odradek consume pump --until-end --format json | odradek produce copy -f json"),
    ("a tombstone: compaction removes the key", "odradek produce pump --key rig-7 --null-value"),
)
@topic_argument
@repeatable("--value -v values", "TEXT", BYTES, "Value of a record.")
@flag("--null-value", "Write one record without a value: a tombstone for --key.")
@option("--key -k", "TEXT", BYTES, "Key of the records that have none of their own.")
@click.option("--file", "source", type=click.File("rb"), help="Read this file instead of standard input.")
@click.option(
    "--input-format", "-f", metavar="FORMAT",
    help=r"Format of a line: `json`, or a format string with %k key, %v (or %s) value, %h headers (a=1,b=2), "
    r"%p partition, %T timestamp, %% and \t \n \xHH. Default: %v, the line is the value.",
)  # fmt: skip
@click.option("--key-separator", "-K", metavar="TEXT", help=r"Short for -f '%kTEXT%v'.")
@option("--null-marker", "TEXT", BYTES, "A key or value that equals TEXT becomes null.")
@repeatable("--header -H headers", "NAME=VALUE", HEADER, "Header.")
@option("--partition -p", "N", PARTITION, "Partition. Default: chosen by the key.")
@option("--timestamp -T", "TIME", WRITTEN_TIME_MS, "Timestamp: ISO, epoch ms, or -1h. Default: now.")
@acks_option
@compression_option
@flag("--idempotent", "Write no duplicates when a request is retried (enable.idempotence).")
@cluster_options
def produce(
    *, topic: str, values: tuple[bytes, ...], null_value: bool, source: IO[bytes] | None, acks: str, compression: str,
    idempotent: bool, cluster: Cluster, as_json: bool, **rest: Any,
) -> None:  # fmt: skip
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
            given = "--value" if values else "--null-value"
            effect = f"splits input lines and has no effect on {given}; use --key for the key"
            raise click.UsageError(f"{option_names([name])} {effect}")


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Defaults:
    """Fields from the command line, for records that do not have their own key, partition or timestamp."""

    key: bytes | None
    headers: tuple[tuple[str, bytes], ...]
    partition: int | None
    timestamp: int | None
    null_marker: bytes | None

    def fill(self, record: InputRecord, *, keep_null_value: bool = False) -> InputRecord:
        if self.null_marker is not None and not keep_null_value:
            record.value = None if record.value == self.null_marker else record.value
            record.key = None if record.key == self.null_marker else record.key
        if record.key is None:
            record.key = self.key
        if record.partition is None:
            record.partition = self.partition
        if record.timestamp_ms is None:
            record.timestamp_ms = self.timestamp
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
    with progress_bar("producing", size_bytes if size_bytes >= PROGRESS_FROM_BYTES else None) as advance:
        for line in stream:
            advance(len(line))
            yield line
