"""`odradek log dump`: segments, indexes, snapshots and checkpoints as tables for people and JSON lines for programs."""

from __future__ import annotations

import mmap
import os
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from odradek.cli.framework.commands import command
from odradek.cli.framework.options import format_option
from odradek.cli.framework.output import faint, print_columns, print_json, say, strong
from odradek.cli.log.rows import (
    batch_row,
    directory_text,
    print_batch_line,
    print_batches,
    print_records,
    print_segments,
    record_row,
    summary_row,
    summary_text,
)
from odradek.cli.log.segment_scan import (
    BatchAt,
    SegmentSummary,
    TornTail,
    index_problems,
    records_of,
    scan_segment,
    summarise,
)
from odradek.cli.log.side_files import Row, base_offset_of, reader_for
from odradek.conventions.failures import Failure
from odradek.conventions.figures import count_text
from odradek.protocol.malformed import MalformedMessage

if TYPE_CHECKING:
    from collections.abc import Iterator

BATCHES_AT_ONCE = 5000


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
@click.option("--values", is_flag=True, help="Show keys, values and headers of records; implies --records.")
@click.option("--verify", is_flag=True, help="Check checksums, records and indexes; exit code 1 if one is wrong.")
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
    say(f"{strong(path)}  {kind} · {len(rows):,} {'entry' if len(rows) == 1 else 'entries'}")
    if rows:
        names = [name for name in rows[0] if name != "kind"]
        titles = [name.upper().replace("_", " ") for name in names]
        print_columns(titles, [[row[name] for name in names] for row in rows], indent="  ")


def read_side_file(path: str, wanted: Dump) -> tuple[str, list[Row]]:
    """The kind and the rows of an index, snapshot or checkpoint. Problems are reported, not returned."""
    reader = reader_for(path)
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
        with mapped(segment) as data:
            for problem in index_problems(data, [(row["offset"], row["position"]) for row in rows]):
                wanted.report(path, problem)
    return kind, rows


@contextmanager
def mapped(path: str) -> Iterator[memoryview]:
    """The bytes of a file, mapped into memory."""
    with open(path, "rb") as file:
        if not os.fstat(file.fileno()).st_size:
            yield memoryview(b"")
            return
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as pages, memoryview(pages) as data:
            yield data


def dump_segment(path: str, wanted: Dump) -> None:
    base_offset_of(path)
    with mapped(path) as data:
        summary = summarise(data, verify=wanted.verify)
        if wanted.as_json:
            print_json({"kind": "segment", "file": path, **summary_row(path, summary)})
        else:
            say(f"{strong(path)}  {summary_text(summary)}")
        batches = (item for item in scan_segment(data, verify=False) if not isinstance(item, TornTail))
        if wanted.as_json:
            for item in batches:
                print_json({"kind": "batch", "file": path, **batch_row(item)})
                for row in record_rows(path, data, item, wanted) if wanted.show_records else ():
                    print_json({"kind": "record", "file": path, **row})
        elif wanted.show_records:
            for item in batches:
                print_batch_line(item)
                print_records(list(record_rows(path, data, item, wanted)), with_values=wanted.show_values)
        else:
            print_in_chunks(batches)
    for problem in summary.problems:
        wanted.report(path, problem)


def print_in_chunks(batches: Iterator[BatchAt]) -> None:
    """Print batches in groups: the widths of columns are computed per group, because a segment may have millions."""
    chunk: list[BatchAt] = []
    for item in batches:
        chunk.append(item)
        if len(chunk) == BATCHES_AT_ONCE:
            print_batches(chunk)
            chunk = []
    if chunk:
        print_batches(chunk)


def record_rows(path: str, data: memoryview, item: BatchAt, wanted: Dump) -> Iterator[dict[str, Any]]:
    try:
        for record in records_of(data, item.position, item.header):
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
    others = [os.path.join(path, name) for name in names if reader_for(name) is not None]
    if wanted.show_records or wanted.as_json:
        for name in [*segments, *others]:
            dump_file(name, wanted)
        return
    summaries: dict[str, SegmentSummary] = {}
    for segment in segments:
        with mapped(segment) as data:
            summaries[segment] = summarise(data, verify=wanted.verify)
    say(f"{strong(path)}  {directory_text(list(summaries.values()))}")
    print_segments(summaries)
    for segment, summary in summaries.items():
        for problem in summary.problems:
            wanted.report(segment, problem)
    counts = []
    for other in others:
        kind, rows = read_side_file(other, wanted)
        counts.append((os.path.basename(other), kind, len(rows)))
    say()
    width = max((len(name) for name, _kind, _count in counts), default=0)
    for name, kind, count in counts:
        entries = f"{kind}, {count:,} {'entry' if count == 1 else 'entries'}"
        say(f"  {name.ljust(width)}  {faint(entries)}")
