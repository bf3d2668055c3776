"""`odradek log repair`: repairs the files of a broker. Bytes that it removes are kept in files beside."""

from __future__ import annotations

import itertools
import os
from contextlib import ExitStack, contextmanager
from typing import IO, TYPE_CHECKING

import click

from odradek.cli.framework.commands import command
from odradek.cli.framework.options import flag, format_option
from odradek.cli.framework.output import print_json, say, strong
from odradek.cli.log.check import rebuild_indexes
from odradek.cli.log.findings import Finding, PartitionCheck, Remedy, SegmentCheck
from odradek.cli.log.verify import Target, TargetCheck, check_target, find_target, shown_path, total_text
from odradek.conventions.failures import Failure
from odradek.conventions.figures import count_text
from odradek.host.real_disk import RealDisk
from odradek.log.log_directory import LOCK_FILE
from odradek.protocol.batch import CURRENT_MAGIC, HEADER_SIZE_BYTES, LENGTH_END_POSITION, BatchHeader, write_batch

if TYPE_CHECKING:
    from collections.abc import Iterator

COPY_BYTES = 1 << 20
LARGEST_DELTA = 2**31 - 1


@command(
    examples=[
        ("what would be done", "odradek log repair --dry-run data"),
        ("do it, with the broker stopped", "odradek log repair data"),
        ("one partition", "odradek log repair data/pump-0"),
    ]
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
    if dry_run or not os.path.exists(os.path.join(directory, LOCK_FILE)):
        yield
        return
    lock = RealDisk().lock(os.path.join(directory, LOCK_FILE))
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
