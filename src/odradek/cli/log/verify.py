"""`odradek log verify` and `repair`: check segments, partitions or log directories, and repair them.

Bytes that a repair removes are kept in files beside.
"""

from __future__ import annotations

import fcntl
import itertools
import os
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import IO

import click

from odradek.cli.framework.commands import command
from odradek.cli.framework.options import flag, format_option
from odradek.cli.framework.output import faint, fields_of, print_json, progress_bar, say, strong
from odradek.cli.log.check import check_partition, rebuild_indexes
from odradek.cli.log.findings import Finding, PartitionCheck, Remedy, SegmentCheck
from odradek.conventions.failures import Failure
from odradek.conventions.figures import count_text, duration_text, offset_range_text, size_text
from odradek.host.host import real_host
from odradek.host.real_disk import RealDisk
from odradek.log import log_directory
from odradek.log.checkpoints import decode_checkpoint
from odradek.log.stored_segment import LOG_SUFFIX, NAME_DIGITS
from odradek.protocol.batch import CURRENT_MAGIC, HEADER_SIZE_BYTES, LENGTH_END_POSITION, BatchHeader, write_batch
from odradek.protocol.malformed import MalformedMessage

_SEGMENT_NAME = re.compile(rf"\d{{{NAME_DIGITS}}}{re.escape(LOG_SUFFIX)}")
WHAT_TO_NAME = "name a segment (.log), the directory of a partition, or one of the broker's log.dirs"
_CHECKPOINTS = {
    log_directory.RECOVERY_POINT_FILE: "recovery point",
    log_directory.HIGH_WATERMARK_FILE: "high watermark",
    log_directory.LOG_START_OFFSET_FILE: "log start offset",
    log_directory.CLEANER_OFFSET_FILE: "compacted up to",
}
COPY_BYTES = 1 << 20
LARGEST_DELTA = 2**31 - 1


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
    ("all partitions of a broker, which may be running", "odradek log verify data"),
    ("one partition", "odradek log verify data/pump-0"),
    ("one segment and its indexes", "odradek log verify data/pump-0/00000000000000000000.log"),
    ("for a program", "odradek log verify --format json data"),
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
        advice = f"`odradek log repair --dry-run {damaged}` shows what can be repaired"
        raise Failure(f"{count_text(problems, 'problem')} found, shown above; {advice}")


def check_target(target: Target, *, is_live: bool) -> TargetCheck:
    """Check all partitions of a target, with a progress bar on a terminal. `is_live` if a broker uses them."""
    check = TargetCheck(target)
    started = time.monotonic()
    with progress_bar(f"checking {os.path.basename(target.path)}", target.size_bytes) as advance:
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
    counts = count_text(len(check.segments), "segment"), count_text(check.records, "record")
    facts = [*counts, size_text(check.size_bytes)]
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
        **fields_of(check, "records size_bytes end_offset"),
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


@dataclass
class Target:
    """The partitions that one argument of the command line stands for."""

    path: str
    log_directory: str
    partitions: list[str] = field(default_factory=list)
    only: str | None = None  # file name of a single segment
    is_whole_directory: bool = False

    @property
    def is_live(self) -> bool:
        """Whether a running broker has locked the directory."""
        try:
            with open(os.path.join(self.log_directory, log_directory.LOCK_FILE), "rb") as lock:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except FileNotFoundError:
            return False
        except BlockingIOError:
            return True
        return False

    @property
    def size_bytes(self) -> int:
        return sum(
            entry.stat().st_size
            for partition in self.partitions
            for entry in os.scandir(partition)
            if entry.name.endswith(LOG_SUFFIX)
        )


def shown_path(path: str) -> str:
    """The path relative to the current directory, if it is below it."""
    relative = os.path.relpath(path)
    return path if relative.startswith("..") else relative


def find_target(path: str) -> Target:
    """Failure if the path is neither a segment, nor the directory of a partition, nor a log directory of a broker."""
    path = os.path.abspath(path)
    if not os.path.isdir(path):
        if not _SEGMENT_NAME.fullmatch(os.path.basename(path)):
            raise Failure(f"{path} is not a segment of a log; {WHAT_TO_NAME}")
        partition = os.path.dirname(path)
        return Target(path, os.path.dirname(partition), [partition], only=os.path.basename(path))
    if _has_segments(path):
        return Target(path, os.path.dirname(path), [path])
    folders = [entry for entry in os.scandir(path) if entry.is_dir()]
    named = sorted(folder.path for folder in folders if log_directory.partition_of(folder.name) is not None)
    meta = log_directory.META_PROPERTIES_FILE
    if not os.path.exists(os.path.join(path, meta)) and not any(map(_has_segments, named)):
        raise Failure(f"{path} has no segments (.log), no partitions and no {meta}; {WHAT_TO_NAME}")
    return Target(path, path, named, is_whole_directory=True)


def _check_whole(path: str, checks: list[PartitionCheck]) -> list[Finding]:
    """Check that a broker's directory has all files which the broker would write again, without what they said."""
    was_clean = os.path.exists(os.path.join(path, log_directory.CLEAN_SHUTDOWN_FILE))
    missing = log_directory.missing_checkpoints(path, RealDisk(), was_cleanly_shut_down=was_clean)
    findings = [Finding(file_path, "is missing", Remedy.NOTHING) for file_path in missing]
    meta_properties = os.path.join(path, log_directory.META_PROPERTIES_FILE)
    if not os.path.exists(meta_properties):
        findings.append(Finding(meta_properties, "is missing", Remedy.ASK))
    directory = log_directory.LogDirectory.unusable(path, real_host(), "it is checked")
    for check in checks:
        partition = log_directory.partition_of(os.path.basename(check.path))
        if partition is not None and directory.read_partition_metadata(*partition) is None:
            file_path = os.path.join(check.path, log_directory.PARTITION_METADATA_FILE)
            findings.append(Finding(file_path, "is missing or damaged", Remedy.NOTHING))
    return findings


def _has_segments(directory: str) -> bool:
    return any(_SEGMENT_NAME.fullmatch(name) for name in os.listdir(directory))


def check_log_directory(path: str, checks: list[PartitionCheck], *, is_live: bool) -> list[Finding]:
    """Check meta.properties and the checkpoints. A running broker may have written more since the logs were read."""
    findings = []
    try:
        log_directory.read_meta_properties(path, real_host())
    except log_directory.LogDirectoryError as problem:
        findings.append(Finding(os.path.join(path, log_directory.META_PROPERTIES_FILE), str(problem), Remedy.ASK))
    if checks and os.path.exists(os.path.join(path, log_directory.LOCK_FILE)):  # not a copy
        findings += _check_whole(path, checks)
    ends = {log_directory.partition_of(os.path.basename(check.path)): check.end_offset for check in checks}
    for name, meaning in _CHECKPOINTS.items():
        file_path = os.path.join(path, name)
        try:
            with open(file_path, "rb") as file:
                offsets = decode_checkpoint(file.read())
        except FileNotFoundError:
            continue
        except MalformedMessage as problem:
            findings.append(Finding(file_path, str(problem), Remedy.SET_ASIDE))
            continue
        for (topic, index), offset in offsets.items():
            end_offset = ends.get((topic, index))
            if end_offset is not None and offset > end_offset and not is_live:
                text = f"{topic}-{index}: {meaning} {offset} is after the end of its log, {end_offset}"
                findings.append(Finding(file_path, text, Remedy.ASK))
    return findings


@command(
    ("what would be done", "odradek log repair --dry-run data"),
    ("do it, with the broker stopped", "odradek log repair data"),
    ("one partition", "odradek log repair data/pump-0"),
)
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=click.Path(exists=True))
@flag("--dry-run", "Show what would be done; change nothing.")
@format_option
def repair(paths: tuple[str, ...], dry_run: bool, as_json: bool) -> None:
    """Repair the files of a broker: a segment, the directory of a partition, or one of its log.dirs.

    Stop the broker first.

    Incomplete batches at the end are cut off, damaged segments are rewritten with their intact batches, indexes are
    rebuilt, and unreadable files are renamed. Removed bytes are kept in files that the broker ignores.
    """
    targets = [find_target(path) for path in paths]
    with ExitStack() as locks:
        for directory in {target.log_directory for target in targets}:
            locks.enter_context(_without_broker(directory, dry_run=dry_run))
        left = sum(_repair_target(target, dry_run=dry_run, as_json=as_json) for target in targets)
    if left:
        raise Failure(f"{count_text(left, 'problem')} cannot be repaired, shown above")


@contextmanager
def _without_broker(directory: str, *, dry_run: bool) -> Iterator[None]:
    """Hold the lock of the log directory, so that no broker starts. Files that were copied have no lock file."""
    if dry_run or not os.path.exists(os.path.join(directory, log_directory.LOCK_FILE)):
        yield
        return
    lock = RealDisk().lock(os.path.join(directory, log_directory.LOCK_FILE))
    if lock is None:
        raise Failure(f"a broker uses {directory}; stop it first (--dry-run works while it runs)")
    try:
        yield
    finally:
        lock.release()


def _repair_target(target: Target, *, dry_run: bool, as_json: bool) -> int:
    """Repair a target and return the number of problems that remain."""
    # A repair holds the lock of the directory itself, which `Target.is_live` would take for that of a broker.
    check = check_target(target, is_live=dry_run and target.is_live)
    todo = [finding for finding in check.all_findings if finding.remedy is not Remedy.NOTHING]
    if not dry_run:
        for partition in check.partitions:
            repair_partition(partition)
        for finding in check.findings:
            if finding.remedy is Remedy.SET_ASIDE:
                _set_aside(finding.path, finding.aside)
    left = sum(finding.remedy is Remedy.ASK for finding in todo)
    if as_json:
        for finding in todo:
            is_done = not dry_run and finding.remedy is not Remedy.ASK
            shown = {"file": finding.path, "problem": finding.text, "remedy": finding.remedy_text, "done": is_done}
            print_json({"kind": "repair", **shown})
    else:
        _report(check, todo, dry_run=dry_run)
    return left


def _report(check: TargetCheck, todo: list[Finding], *, dry_run: bool) -> None:
    mark = click.style("would", fg="yellow") if dry_run else click.style("done", fg="green")
    for finding in todo:
        say(f"{strong(shown_path(finding.path))}: {finding.text}")
        prefix = "" if finding.remedy is Remedy.ASK else f"{mark}: "
        say(f"  {prefix}{finding.remedy_text}")
    repairs = count_text(sum(finding.remedy is not Remedy.ASK for finding in todo), "repair")
    what = "nothing to repair" if not todo else f"{repairs} {'would be made' if dry_run else 'made'}"
    say(f"checked {total_text(check.partitions)}: {what}")


def repair_partition(check: PartitionCheck) -> None:
    for segment in check.segments:
        remedies = {finding.remedy for finding in segment.findings}
        if Remedy.SALVAGE in remedies:
            _salvage(segment, check.following_offset(segment))
        elif Remedy.CUT_TAIL in remedies:
            _cut_tail(segment)
        elif Remedy.REBUILD in remedies:
            rebuild_indexes(segment.path)
    for finding in check.findings:
        if finding.remedy is Remedy.SET_ASIDE:
            _set_aside(finding.path, finding.aside)
    if check.all_findings:
        RealDisk().sync_directory(check.path)


def _cut_tail(segment: SegmentCheck) -> None:
    ((position, end),) = segment.damaged
    (finding,) = [each for each in segment.findings if each.remedy is Remedy.CUT_TAIL]
    with open(segment.path, "r+b") as file:
        file.seek(position)
        _keep_earlier(finding.aside)
        with open(finding.aside, "wb") as tail:
            _copy(file, tail, end - position)
        file.truncate(position)
        os.fsync(file.fileno())
    rebuild_indexes(segment.path)


def _salvage(segment: SegmentCheck, following_offset: int | None) -> None:
    """Write the intact batches to a new file. If the end of the segment is lost, an empty batch covers its offsets:
    without it, a broker that recovers would discard everything after the gap as an incomplete write."""
    aside = next(finding.aside for finding in segment.findings if finding.remedy is Remedy.SALVAGE)
    new = segment.path + ".new"
    with open(segment.path, "rb") as old, open(new, "wb") as file:
        position = 0
        for start, end in [*segment.damaged, (segment.size_bytes, segment.size_bytes)]:
            old.seek(position)
            _copy(old, file, start - position)
            position = end
        if following_offset is not None:
            file.write(b"".join(_empty_batches(segment.next_offset, following_offset)))
        file.flush()
        os.fsync(file.fileno())
    _set_aside(segment.path, aside)
    os.replace(new, segment.path)
    rebuild_indexes(segment.path)


def _empty_batches(first_offset: int, end_offset: int) -> Iterator[bytearray]:
    while first_offset < end_offset:
        last_offset = min(end_offset - 1, first_offset + LARGEST_DELTA)
        header = BatchHeader(
            base_offset=first_offset, batch_length=HEADER_SIZE_BYTES - LENGTH_END_POSITION, partition_leader_epoch=-1,
            magic=CURRENT_MAGIC, crc=0, attributes=0, last_offset_delta=last_offset - first_offset, base_timestamp=-1,
            max_timestamp=-1, producer_id=-1, producer_epoch=-1, base_sequence=-1, record_count=0,
        )  # fmt: skip
        yield write_batch(header, b"")
        first_offset = last_offset + 1


def _set_aside(path: str, aside: str) -> None:
    _keep_earlier(aside)
    os.rename(path, aside)


def _keep_earlier(aside: str) -> None:
    """Add a number to the name of a file that an earlier repair has kept under this name."""
    if os.path.exists(aside):
        numbered = (f"{aside}.{number}" for number in itertools.count(1))
        os.rename(aside, next(name for name in numbered if not os.path.exists(name)))


def _copy(source: IO[bytes], target: IO[bytes], size_bytes: int) -> None:
    while size_bytes > 0:
        piece = source.read(min(COPY_BYTES, size_bytes))
        if not piece:
            return
        target.write(piece)
        size_bytes -= len(piece)
