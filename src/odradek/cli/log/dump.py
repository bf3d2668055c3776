"""`odradek log dump`: segments, indexes, snapshots and checkpoints as tables for people and JSON lines for programs."""

from __future__ import annotations

import itertools
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from odradek.cli.framework.commands import command
from odradek.cli.framework.options import flag, format_option
from odradek.cli.framework.output import faint, fields_of, one_line, print_columns, print_json, say, strong, values_of
from odradek.cli.log import stored_files
from odradek.conventions.failures import Failure
from odradek.conventions.figures import count_text, iso_text, size_text
from odradek.protocol.malformed import MalformedMessage
from odradek.record_text import text_fields

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from odradek.protocol.records import Record


COUNTS = "first_offset last_offset batches records size_bytes"
BATCHES_AT_ONCE = 5000
FLAGS = ("transaction", "control", "append time", "delete horizon")


@dataclass
class Dump:
    """The options of the command, and the number of problems found."""

    show_records: bool
    show_values: bool
    verify: bool
    as_json: bool
    problems: int = 0

    def report(self, path: str, problem: str) -> None:
        self.problems += 1
        if self.as_json:
            print_json({"kind": "problem", "file": path, "problem": problem})
        else:
            say(f"  {click.style('problem', fg='red')} {os.path.basename(path)}: {problem}")


@command(
    examples=[
        ("the segments of a partition", "odradek log dump data/pump-0"),
        ("every batch of a segment", "odradek log dump data/pump-0/00000000000000000000.log"),
        ("every record, with key and value", "odradek log dump --values data/pump-0/00000000000000000000.log"),
        ("check for damage; exit code 1 if there is any", "odradek log dump --verify data/pump-0 data/pump-1"),
        ("indexes, snapshots, checkpoints", "odradek log dump data/pump-0/leader-epoch-checkpoint"),
    ]
)
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=click.Path(exists=True))
@click.option("--records/--no-records", default=False, help="Show every record.")
@flag("--values", "Show keys, values and headers of records; implies --records.")
@flag("--verify", "Check checksums, records and indexes; exit code 1 if one is wrong.")
@format_option
def dump(paths: tuple[str, ...], records: bool, values: bool, verify: bool, as_json: bool) -> None:
    """Show segments (.log), indexes (.index, .timeindex, .txnindex), producer snapshots (.snapshot), checkpoints.

    The directory of a partition is shown as a table of its segments; in full with --records, --values or --format json.
    """
    wanted = Dump(records or values, values, verify, as_json)
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


def entries_text(rows: Sequence[stored_files.Row]) -> str:
    return f"{len(rows):,} {'entry' if len(rows) == 1 else 'entries'}"


def read_side_file(path: str, wanted: Dump) -> tuple[str, list[stored_files.Row]]:
    """The kind and the rows of an index, snapshot or checkpoint. Problems are reported, not returned."""
    reader = stored_files.reader_for(path)
    if reader is None:
        raise Failure(f"{path}: not a log file of a broker (.log, .index, .timeindex, .snapshot, …-checkpoint)")
    kind, read_rows = reader
    with open(path, "rb") as file:
        found = list(read_rows(path, file.read()))
    rows = [row for row in found if row["kind"] != "problem"]
    for row in found:
        if row["kind"] == "problem":
            wanted.report(path, row["problem"])
    segment = os.path.splitext(path)[0] + ".log"
    if wanted.verify and path.endswith(".index") and os.path.exists(segment):
        with stored_files.mapped(segment) as data:
            batches = [item for item in stored_files.scan_segment(data) if isinstance(item, stored_files.BatchAt)]
            starts = {item.position: item.header.base_offset for item in batches}
            for problem in stored_files.index_problems(((row["offset"], row["position"]) for row in rows), starts):
                wanted.report(path, problem)
    return kind, rows


def dump_segment(path: str, wanted: Dump) -> None:
    base_offset = stored_files.base_offset_of(path)
    with stored_files.mapped(path) as data:
        summary = stored_files.summarise(data)
        if wanted.as_json:
            place = {"kind": "segment", "file": path, "base_offset": base_offset}
            print_json({**place, **fields_of(summary, f"{COUNTS} codecs min_time max_time")})
        else:
            say(f"{strong(path)}  {summary_text(summary)}")
        batches = (item for item in stored_files.scan_segment(data) if not isinstance(item, stored_files.TornTail))
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
    report_problems(path, summary, wanted)


def report_problems(path: str, summary: stored_files.SegmentSummary, wanted: Dump) -> None:
    if wanted.verify:
        from odradek.cli.log.check import check_segment

        for finding in check_segment(path, lambda _size_bytes: None).findings:
            wanted.report(path, finding.text)
    elif summary.problem is not None:
        wanted.report(path, summary.problem)


def record_rows(path: str, data: memoryview, item: stored_files.BatchAt, wanted: Dump) -> Iterator[dict[str, Any]]:
    try:
        for record in stored_files.records_of(data, item.position, item.header):
            yield record_row(record, with_values=wanted.show_values)
    except MalformedMessage as error:
        if not wanted.verify:  # with --verify the summary has reported it
            wanted.report(path, f"position {item.position}: the records are malformed: {error}")


def dump_directory(path: str, wanted: Dump) -> None:
    """Show a partition: a row per segment, then the other files; every file in full with --records or JSON."""
    names = sorted(os.listdir(path))
    segments = [os.path.join(path, name) for name in names if name.endswith(".log")]
    if not segments:
        raise Failure(f"{path}: no segments (.log) in it; name the directory of a partition, such as data/pump-0")
    others = [os.path.join(path, name) for name in names if stored_files.reader_for(name) is not None]
    if wanted.show_records or wanted.as_json:
        for name in [*segments, *others]:
            dump_file(name, wanted)
        return
    summaries: dict[str, stored_files.SegmentSummary] = {}
    for segment in segments:
        with stored_files.mapped(segment) as data:
            summaries[segment] = stored_files.summarise(data)
    records, size_bytes = (
        sum(getattr(each, name) for each in summaries.values()) for name in ("records", "size_bytes")
    )
    facts = [count_text(len(segments), "segment"), count_text(records, "record"), size_text(size_bytes)]
    say(f"{strong(path)}  {' · '.join(facts)}")
    print_segments(summaries)
    for segment, summary in summaries.items():
        report_problems(segment, summary, wanted)
    contents = [read_side_file(other, wanted) for other in others]
    say()
    width = max((len(os.path.basename(other)) for other in others), default=0)
    for other, (kind, rows) in zip(others, contents, strict=True):
        say(f"  {os.path.basename(other).ljust(width)}  {faint(f'{kind}, {entries_text(rows)}')}")


def summary_text(summary: stored_files.SegmentSummary) -> str:
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


def print_segments(summaries: Mapping[str, stored_files.SegmentSummary]) -> None:
    """One row per segment."""
    rows = []
    for path, each in summaries.items():
        *counts, size_bytes = values_of(each, COUNTS)
        texts = (size_text(size_bytes), ",".join(each.codecs), each.min_time, each.max_time)
        rows.append((os.path.basename(path), *counts, *(text or "–" for text in texts)))
    print_columns(["SEGMENT", "FIRST", "LAST", "BATCHES", "RECORDS", "SIZE", "CODECS", "FROM", "TO"], rows, indent="  ")


def batch_row(item: stored_files.BatchAt) -> dict[str, Any]:
    header = item.header
    return {
        "position": item.position,
        **fields_of(header, "base_offset last_offset"),
        "records": header.record_count,
        "size_bytes": header.size_bytes,
        "codec": stored_files.codec_name(header),
        "leader_epoch": header.partition_leader_epoch,
        "max_timestamp": header.max_timestamp,
        "timestamp_type": "log_append_time" if header.uses_log_append_time else "create_time",
        **fields_of(header, "producer_id producer_epoch base_sequence"),
        "transactional": header.is_transactional,
        "control": header.is_control,
        **fields_of(header, "delete_horizon_ms magic crc"),
    }


def print_batches(items: Sequence[stored_files.BatchAt]) -> None:
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


def print_batch_line(item: stored_files.BatchAt) -> None:
    """One batch as a line above its records."""
    header = item.header
    facts = [
        f"offsets {header.base_offset}–{header.last_offset}",
        count_text(header.record_count, "record"),
        f"{header.size_bytes:,} B",
        stored_files.codec_name(header),
        f"epoch {header.partition_leader_epoch}",
    ]
    if header.producer_id >= 0:
        facts.append(f"producer {producer_text(item)}")
    say(faint(f"  batch at {item.position}: {' · '.join([*facts, *flags_of(item)])}"))


def producer_text(item: stored_files.BatchAt) -> str:
    header = item.header
    if header.producer_id < 0:
        return "–"
    return f"{header.producer_id}/{header.producer_epoch} seq {header.base_sequence}"


def flags_of(item: stored_files.BatchAt) -> list[str]:
    header = item.header
    flags = (
        header.is_transactional,
        header.is_control,
        header.uses_log_append_time,
        header.delete_horizon_ms is not None,
    )
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
