"""`odradek log dump`: segments, indexes, snapshots and checkpoints as tables for people and JSON lines for programs."""

from __future__ import annotations

import itertools
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import click

from odradek.cli.framework.commands import command
from odradek.cli.framework.options import flag, format_option
from odradek.cli.framework.output import faint, fields_of, one_line, print_columns, print_json, say, strong, values_of
from odradek.cli.log import check
from odradek.conventions.failures import Failure
from odradek.conventions.figures import count_text, iso_text, size_text
from odradek.log.checkpoints import decode_checkpoint
from odradek.log.leader_epochs import decode_leader_epochs
from odradek.log.producer_entry import ProducerBatch
from odradek.log.producer_snapshot import decode_snapshot
from odradek.log.transaction_index import decode_transaction_index
from odradek.protocol.compression import Compression
from odradek.protocol.malformed import MalformedMessage
from odradek.protocol.records import Record, read_records
from odradek.record_text import text_fields

if TYPE_CHECKING:
    from odradek.protocol.batch import BatchHeader


COUNTS = "first_offset last_offset batches records size_bytes"
BATCHES_AT_ONCE = 5000
MOST_OBJECTS = check.LARGEST_BATCH_BYTES // 256  # records and headers of a batch
NO_BATCH = ProducerBatch(-1, -1, 0, -1)
FLAGS = ("transaction", "control", "append time", "delete horizon")


@dataclass
class Dump:
    """The options of the command, and the number of problems found."""

    show_records: bool
    show_values: bool
    as_json: bool
    problems: int = 0

    def report(self, path: str, problem: str) -> None:
        self.problems += 1
        if self.as_json:
            print_json({"kind": "problem", "file": path, "problem": problem})
        else:
            say(f"  {click.style('problem', fg='red')} {os.path.basename(path)}: {problem}")


@command(
    ("the segments of a partition", "odradek log dump data/pump-0"),
    ("every batch of a segment", "odradek log dump data/pump-0/00000000000000000000.log"),
    ("every record, with key and value", "odradek log dump --values data/pump-0/00000000000000000000.log"),
    ("indexes, snapshots, checkpoints", "odradek log dump data/pump-0/leader-epoch-checkpoint"),
)
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=click.Path(exists=True))
@click.option("--records/--no-records", default=False, help="Show every record.")
@flag("--values", "Show keys, values and headers of records; implies --records.")
@format_option
def dump(paths: tuple[str, ...], records: bool, values: bool, as_json: bool) -> None:
    """Show segments (.log), indexes (.index, .timeindex, .txnindex), producer snapshots (.snapshot), checkpoints.

    The directory of a partition is shown as a table of its segments; in full with --records, --values or --format json.
    """
    wanted = Dump(records or values, values, as_json)
    for number, path in enumerate(paths):
        if number and not as_json:
            say()
        if os.path.isdir(path):
            dump_directory(path, wanted)
        else:
            dump_file(path, wanted)
    if wanted.problems:
        raise Failure(f"{count_text(wanted.problems, 'problem')} found, shown above")


def dump_file(path: str, wanted: Dump) -> None:
    if path.endswith(".log"):
        dump_segment(path, wanted)
        return
    kind, rows = read_side_file(path, wanted)
    if wanted.as_json:
        for row in rows:
            print_json({**row, "file": path})
        return
    say(f"{strong(path)}  {kind} · {entries_text(rows)}")
    if rows:
        names = [name for name in rows[0] if name != "kind"]
        titles = [name.upper().replace("_", " ") for name in names]
        print_columns(titles, [[row[name] for name in names] for row in rows], indent="  ")


def entries_text(rows: Sequence[Row]) -> str:
    return f"{len(rows):,} {'entry' if len(rows) == 1 else 'entries'}"


def read_side_file(path: str, wanted: Dump) -> tuple[str, list[Row]]:
    """The kind and the rows of an index, snapshot or checkpoint. What cannot be read is reported."""
    reader = reader_for(path)
    if reader is None:
        raise Failure(f"{path}: not a log file of a broker (.log, .index, .timeindex, .snapshot, …-checkpoint)")
    kind, read_rows = reader
    rows: list[Row] = []
    try:
        with open(path, "rb") as file:
            rows.extend(read_rows(path, file.read()))
    except MalformedMessage as problem:
        wanted.report(path, str(problem))
    return kind, rows


def dump_segment(path: str, wanted: Dump) -> None:
    base_offset = check.base_offset_of(path)
    with check.mapped(path) as data:
        summary = summarise(data)
        if wanted.as_json:
            place = {"kind": "segment", "file": path, "base_offset": base_offset}
            print_json({**place, **fields_of(summary, f"{COUNTS} codecs min_time max_time")})
        else:
            say(f"{strong(path)}  {summary_text(summary)}")
        batches = (item for item in check.scan_segment(data) if not isinstance(item, check.TornTail))
        if wanted.as_json:
            for item in batches:
                print_json({"kind": "batch", "file": path, **batch_row(item)})
                for row in record_rows(path, data, item, wanted) if wanted.show_records else ():
                    print_json({"kind": "record", "file": path, **row})
        elif wanted.show_records:
            for item in batches:
                print_batch_line(item)
                print_records(list(record_rows(path, data, item, wanted)), with_values=wanted.show_values)
        else:  # in groups: the widths of columns are computed for each, because a segment may have millions of batches
            while group := list(itertools.islice(batches, BATCHES_AT_ONCE)):
                print_batches(group)
    report_problem(path, summary, wanted)


def report_problem(path: str, summary: SegmentSummary, wanted: Dump) -> None:
    if summary.problem is not None:
        wanted.report(path, summary.problem)


def record_rows(path: str, data: memoryview, item: check.BatchAt, wanted: Dump) -> Iterator[dict[str, Any]]:
    try:
        batch = data[item.position : item.position + item.header.size_bytes]
        largest = check.LARGEST_BATCH_BYTES
        for record in read_records(batch, largest, escapes_names=True, most_objects=MOST_OBJECTS):
            yield record_row(record, with_values=wanted.show_values)
    except MalformedMessage as error:
        wanted.report(path, f"position {item.position}: the records are malformed: {error}")


def dump_directory(path: str, wanted: Dump) -> None:
    """Show a partition: a row per segment, then the other files; every file in full with --records or JSON."""
    names = sorted(os.listdir(path))
    segments = [os.path.join(path, name) for name in names if name.endswith(".log")]
    if not segments:
        raise Failure(f"{path}: no segments (.log) in it; name the directory of a partition, such as data/pump-0")
    others = [os.path.join(path, name) for name in names if reader_for(name) is not None]
    if wanted.show_records or wanted.as_json:
        for name in [*segments, *others]:
            dump_file(name, wanted)
        return
    summaries: dict[str, SegmentSummary] = {}
    for segment in segments:
        with check.mapped(segment) as data:
            summaries[segment] = summarise(data)
    records = sum(each.records for each in summaries.values())
    size_bytes = sum(each.size_bytes for each in summaries.values())
    facts = [count_text(len(segments), "segment"), count_text(records, "record"), size_text(size_bytes)]
    say(f"{strong(path)}  {' · '.join(facts)}")
    print_segments(summaries)
    for segment, summary in summaries.items():
        report_problem(segment, summary, wanted)
    contents = [read_side_file(other, wanted) for other in others]
    say()
    width = max((len(os.path.basename(other)) for other in others), default=0)
    for other, (kind, rows) in zip(others, contents, strict=True):
        say(f"  {os.path.basename(other).ljust(width)}  {faint(f'{kind}, {entries_text(rows)}')}")


@dataclass
class SegmentSummary:
    """Counts and ranges of one segment."""

    batches: int = 0
    records: int = 0
    size_bytes: int = 0
    first_offset: int | None = None
    last_offset: int | None = None
    min_timestamp_ms: int | None = None
    max_timestamp_ms: int | None = None
    codecs: Counter[str] = field(default_factory=Counter)
    problem: str | None = None

    @property
    def min_time(self) -> str | None:
        return None if self.min_timestamp_ms is None else iso_text(self.min_timestamp_ms)

    @property
    def max_time(self) -> str | None:
        return None if self.max_timestamp_ms is None else iso_text(self.max_timestamp_ms)

    def add(self, item: check.BatchAt | check.TornTail) -> None:
        if isinstance(item, check.TornTail):
            self.problem = f"position {item.position}: {item.problem}"
            return
        header = item.header
        self.batches += 1
        self.records += max(header.record_count, 0)
        self.first_offset = header.base_offset if self.first_offset is None else self.first_offset
        self.last_offset = header.last_offset
        if header.base_timestamp >= 0:
            # The delete horizon of a batch takes the place of its first timestamp.
            has_no_first = header.uses_log_append_time or header.delete_horizon_ms is not None
            earliest = header.max_timestamp if has_no_first else header.base_timestamp
            self.min_timestamp_ms = min(earliest, self.min_timestamp_ms or earliest)
            self.max_timestamp_ms = max(header.max_timestamp, self.max_timestamp_ms or header.max_timestamp)
        self.codecs[codec_name(header)] += 1


def summarise(data: memoryview) -> SegmentSummary:
    summary = SegmentSummary(size_bytes=len(data))
    for item in check.scan_segment(data):
        summary.add(item)
    return summary


def codec_name(header: BatchHeader) -> str:
    number = header.attributes & 0x07
    return Compression(number).name.lower() if number in Compression._value2member_map_ else f"codec {number}"


Row = dict[str, Any]


def offset_index_rows(path: str, data: bytes) -> Iterator[Row]:
    for offset, position in check.offset_entries(path, data):
        yield {"kind": "offset_index_entry", "offset": offset, "position": position}


def time_index_rows(path: str, data: bytes) -> Iterator[Row]:
    for timestamp_ms, offset in check.time_entries(path, data):
        times = {"timestamp": timestamp_ms, "time": iso_text(timestamp_ms)}
        yield {"kind": "time_index_entry", **times, "offset": offset}


def transaction_index_rows(_path: str, data: bytes) -> Iterator[Row]:
    for each in decode_transaction_index(data):
        names = "producer_id first_offset last_offset last_stable_offset"
        yield {"kind": "aborted_transaction", **fields_of(each, names)}


def snapshot_rows(_path: str, data: bytes) -> Iterator[Row]:
    for producer_id, entry in decode_snapshot(data):
        last = entry.batches[-1] if entry.batches else NO_BATCH._replace(timestamp=entry.last_timestamp)
        first_offset = entry.current_txn_first_offset
        yield {
            "kind": "producer",
            "producer_id": producer_id,
            "producer_epoch": entry.epoch,
            **last._asdict(),
            "time": iso_text(last.timestamp),
            "coordinator_epoch": entry.coordinator_epoch,
            "transaction_first_offset": None if first_offset < 0 else first_offset,
        }


def leader_epoch_rows(_path: str, data: bytes) -> Iterator[Row]:
    for each in decode_leader_epochs(data):
        yield {"kind": "leader_epoch", "leader_epoch": each.epoch, "start_offset": each.start_offset}


def offset_checkpoint_rows(_path: str, data: bytes) -> Iterator[Row]:
    for (topic, partition), offset in decode_checkpoint(data).items():
        yield {"kind": "checkpoint", "topic": topic, "partition": partition, "offset": offset}


def properties_rows(_path: str, data: bytes) -> Iterator[Row]:
    """`partition.metadata` and `meta.properties`: one pair per line."""
    for line in data.decode(errors="replace").splitlines():
        key, separator, value = line.partition(":") if ":" in line.split("=")[0] else line.partition("=")
        if separator and not line.startswith("#"):
            yield {"kind": "property", "property": key.strip(), "value": value.strip()}


RowReader = Callable[[str, bytes], Iterator[Row]]

READERS: dict[str, tuple[str, RowReader]] = {
    ".index": ("offset index", offset_index_rows),
    ".timeindex": ("time index", time_index_rows),
    ".txnindex": ("aborted transactions", transaction_index_rows),
    ".snapshot": ("producer snapshot", snapshot_rows),
    "leader-epoch-checkpoint": ("leader epochs", leader_epoch_rows),
    "recovery-point-offset-checkpoint": ("recovery points", offset_checkpoint_rows),
    "replication-offset-checkpoint": ("high watermarks", offset_checkpoint_rows),
    "log-start-offset-checkpoint": ("log start offsets", offset_checkpoint_rows),
    "cleaner-offset-checkpoint": ("cleaned up to", offset_checkpoint_rows),
    "partition.metadata": ("partition metadata", properties_rows),
    "meta.properties": ("directory metadata", properties_rows),
}


def reader_for(path: str) -> tuple[str, RowReader] | None:
    """The kind of a file and the function that reads it, by the file's name; None if unknown."""
    name = os.path.basename(path)
    return READERS.get(name) or READERS.get(os.path.splitext(name)[1])


def summary_text(summary: SegmentSummary) -> str:
    facts = [size_text(summary.size_bytes)]
    if summary.batches:
        facts += [f"offsets {summary.first_offset}–{summary.last_offset}", count_text(summary.records, "record")]
        facts += [f"{summary.batches:,} batch{'' if summary.batches == 1 else 'es'}"]
        facts += [" ".join(f"{codec}×{count}" for codec, count in summary.codecs.items())]
    else:
        facts.append("no batches")
    if summary.min_time is not None:
        facts.append(f"{summary.min_time} to {summary.max_time}")
    return " · ".join(facts)


def print_segments(summaries: Mapping[str, SegmentSummary]) -> None:
    """One row per segment."""
    rows = []
    for path, each in summaries.items():
        *counts, size_bytes = values_of(each, COUNTS)
        texts = (size_text(size_bytes), ",".join(each.codecs), each.min_time, each.max_time)
        rows.append((os.path.basename(path), *counts, *(text or "–" for text in texts)))
    print_columns(["SEGMENT", "FIRST", "LAST", "BATCHES", "RECORDS", "SIZE", "CODECS", "FROM", "TO"], rows, indent="  ")


def batch_row(item: check.BatchAt) -> dict[str, Any]:
    header = item.header
    return {
        "position": item.position,
        **fields_of(header, "base_offset last_offset"),
        "records": header.record_count,
        "size_bytes": header.size_bytes,
        "codec": codec_name(header),
        "leader_epoch": header.partition_leader_epoch,
        "max_timestamp": header.max_timestamp,
        "timestamp_type": "log_append_time" if header.uses_log_append_time else "create_time",
        **fields_of(header, "producer_id producer_epoch base_sequence"),
        "transactional": header.is_transactional,
        "control": header.is_control,
        **fields_of(header, "delete_horizon_ms magic crc"),
    }


def print_batches(items: Sequence[check.BatchAt]) -> None:
    titles = ["POSITION", "FIRST", "LAST", "RECORDS", "BYTES", "CODEC", "EPOCH", "MAX TIMESTAMP", "PRODUCER", "FLAGS"]
    fields = ("position", "base_offset", "last_offset", "records", "size_bytes", "codec", "leader_epoch")
    rows = []
    for item in items:
        row = batch_row(item)
        last = (iso_text(item.header.max_timestamp), producer_text(item), ", ".join(flags_of(item)))
        rows.append([*(row[name] for name in fields), *last])
    print_columns(titles, rows, indent="  ")


def record_row(record: Record, *, with_values: bool) -> dict[str, Any]:
    row: dict[str, Any] = {"offset": record.offset, "timestamp": record.timestamp, "time": iso_text(record.timestamp)}
    for name, data in (("key", record.key), ("value", record.value)):
        row[f"{name}_size_bytes"] = None if data is None else len(data)
    if with_values:
        row.update(text_fields("key", record.key))
        row.update(text_fields("value", record.value))
        row["headers"] = [{"key": name, **text_fields("value", value)} for name, value in record.headers]
    return row


def print_batch_line(item: check.BatchAt) -> None:
    """One batch as a line above its records."""
    header = item.header
    facts = [
        f"offsets {header.base_offset}–{header.last_offset}",
        count_text(header.record_count, "record"),
        f"{header.size_bytes:,} B",
        codec_name(header),
        f"epoch {header.partition_leader_epoch}",
    ]
    if header.producer_id >= 0:
        facts.append(f"producer {producer_text(item)}")
    say(faint(f"  batch at {item.position}: {' · '.join([*facts, *flags_of(item)])}"))


def producer_text(item: check.BatchAt) -> str:
    header = item.header
    if header.producer_id < 0:
        return "–"
    return f"{header.producer_id}/{header.producer_epoch} seq {header.base_sequence}"


def flags_of(item: check.BatchAt) -> list[str]:
    header = item.header
    has_horizon = header.delete_horizon_ms is not None
    flags = (header.is_transactional, header.is_control, header.uses_log_append_time, has_horizon)
    return [name for name, is_set in zip(FLAGS, flags, strict=True) if is_set]


def print_records(rows: Sequence[dict[str, Any]], *, with_values: bool) -> None:
    titles = ["OFFSET", "TIMESTAMP", "KEY BYTES", "VALUE BYTES", *(["KEY", "VALUE", "HEADERS"] if with_values else [])]
    cells: list[list[object]] = []
    for row in rows:
        cells.append([row["offset"], row["time"], row["key_size_bytes"], row["value_size_bytes"]])
        if with_values:
            headers = ",".join(f"{header['key']}={header['value']}" for header in row["headers"])
            cells[-1] += [one_line(row["key"]), one_line(row["value"]), one_line(headers)]
    print_columns(titles, cells, indent="    ")
