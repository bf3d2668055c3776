"""`odradek log verify`: are a broker's files whole? Checksums, records, the order of offsets, indexes, snapshots and
checkpoints, read and not touched."""

from __future__ import annotations

import os
import time
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import click

from odradek.cli.framework.commands import command
from odradek.cli.framework.options import format_option
from odradek.cli.framework.output import faint, print_json, say, shows_progress, strong
from odradek.cli.log.check import check_partition
from odradek.cli.log.findings import Remedy
from odradek.cli.log.targets import Target, check_log_directory, find_target, shown_path
from odradek.conventions.failures import Failure
from odradek.conventions.figures import count_text, duration_text, offset_range_text, size_text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

    from odradek.cli.log.findings import Finding, PartitionCheck


@dataclass
class TargetCheck:
    target: Target
    partitions: list[PartitionCheck] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def all_findings(self) -> list[Finding]:
        return [*(each for check in self.partitions for each in check.all_findings), *self.findings]

    @property
    def problem_count(self) -> int:
        return sum(finding.is_problem for finding in self.all_findings)


@command(
    examples=[
        ("all partitions of a broker, which may be running", "odradek log verify data"),
        ("one partition", "odradek log verify data/pump-0"),
        ("one segment and its indexes", "odradek log verify data/pump-0/00000000000000000000.log"),
        ("for a program", "odradek log verify --format json data"),
    ]
)
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=click.Path(exists=True))
@format_option
def verify(paths: tuple[str, ...], as_json: bool) -> None:
    """Check the files of a broker: a segment, the directory of a partition, or one of its log.dirs. Changes nothing.

    Every batch is read: checksum, records, order of offsets; then indexes, snapshots and checkpoints. The
    broker may be running. The exit code is 1 if a problem is found.
    """
    targets = [find_target(path) for path in paths]
    checks = [check_target(target, is_live=target.is_live) for target in targets]
    for check in checks:
        report_target(check, as_json=as_json)
    if problems := sum(check.problem_count for check in checks):
        damaged = " ".join(shown_path(check.target.path) for check in checks if check.problem_count)
        found = count_text(problems, "problem")
        raise Failure(
            f"{found} found, shown above; `odradek log repair --dry-run {damaged}` shows what can be repaired"
        )


def check_target(target: Target, *, is_live: bool) -> TargetCheck:
    """Check all partitions of a target, with a progress bar on a terminal. `is_live` if a broker uses them."""
    check = TargetCheck(target)
    started = time.monotonic()
    with _progress(target) as advance:
        for partition in target.partitions:
            try:
                check.partitions.append(check_partition(partition, advance, is_live=is_live, only=target.only))
            except FileNotFoundError:
                if not is_live:
                    raise
    if target.is_whole_directory:
        check.findings += check_log_directory(target.path, check.partitions, is_live=is_live)
    check.seconds = time.monotonic() - started
    return check


def _progress(target: Target) -> AbstractContextManager[Callable[[int], None]]:
    if not shows_progress():
        return nullcontext(lambda _size_bytes: None)
    from odradek.cli.framework.progress import bytes_progress

    return bytes_progress(f"checking {os.path.basename(target.path)}", target.size_bytes)


def report_target(check: TargetCheck, *, as_json: bool) -> None:
    """Print a line for each partition; if there are many, only for those with findings."""
    for partition in check.partitions:
        if as_json:
            print_json(partition_row(partition))
        elif len(check.partitions) <= 20 or partition.all_findings:
            is_whole = not any(finding.is_problem for finding in partition.all_findings)
            mark = click.style("ok     ", fg="green") if is_whole else click.style("damaged", fg="red")
            say(f"{mark} {strong(shown_path(partition.path))}  {faint(partition_text(partition))}")
            report_findings(partition.all_findings)
    if as_json:
        for finding in check.all_findings:
            print_json(finding_row(finding))
        print_json(summary_row(check))
        return
    report_findings(check.findings)
    problems = count_text(check.problem_count, "problem") if check.problem_count else "no problems"
    say(f"checked {total_text(check.partitions)} in {duration_text(check.seconds * 1000)}: {problems}")


def report_findings(findings: Sequence[Finding]) -> None:
    for finding in findings:
        mark = click.style("problem", fg="red") if finding.is_problem else faint("note")
        say(f"  {mark} {os.path.basename(finding.path)}: {finding.text}")


def partition_text(check: PartitionCheck) -> str:
    facts = [
        count_text(len(check.segments), "segment"),
        count_text(check.records, "record"),
        size_text(check.size_bytes),
    ]
    if check.segments:
        facts.append(offset_range_text(check.segments[0].base_offset, check.end_offset or 0))
    return " · ".join(facts)


def total_text(partitions: Sequence[PartitionCheck]) -> str:
    segments = sum(len(check.segments) for check in partitions)
    size_bytes = sum(check.size_bytes for check in partitions)
    return f"{count_text(len(partitions), 'partition')}, {count_text(segments, 'segment')}, {size_text(size_bytes)}"


def partition_row(check: PartitionCheck) -> dict[str, object]:
    return {
        "kind": "partition",
        "path": check.path,
        "segments": len(check.segments),
        "batches": sum(segment.batches for segment in check.segments),
        "records": check.records,
        "size_bytes": check.size_bytes,
        "end_offset": check.end_offset,
        "problems": sum(finding.is_problem for finding in check.all_findings),
    }


def finding_row(finding: Finding) -> dict[str, object]:
    return {
        "kind": "problem" if finding.is_problem else "note",
        "file": finding.path,
        "text": finding.text,
        "can_be_repaired": finding.remedy not in (Remedy.NOTHING, Remedy.ASK),
        "remedy": finding.remedy_text,
    }


def summary_row(check: TargetCheck) -> dict[str, object]:
    return {
        "kind": "summary",
        "path": check.target.path,
        "partitions": len(check.partitions),
        "segments": sum(len(each.segments) for each in check.partitions),
        "size_bytes": sum(each.size_bytes for each in check.partitions),
        "problems": check.problem_count,
        "seconds": round(check.seconds, 3),
    }
