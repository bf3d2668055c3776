"""`odradek log repair`: makes a broker's files usable again without losing a byte: what is taken out is kept beside."""

from __future__ import annotations

import os
from contextlib import ExitStack, contextmanager
from typing import IO, TYPE_CHECKING

import click

from odradek.cli.framework.commands import command
from odradek.cli.framework.failure import Failure
from odradek.cli.framework.options import format_option
from odradek.cli.framework.output import count_text, print_json, say, strong
from odradek.cli.log.findings import Finding, PartitionCheck, Remedy, SegmentCheck
from odradek.cli.log.targets import Place, find_place, shown_path
from odradek.cli.log.verify import PlaceCheck, check_place, total_text
from odradek.host.real_disk import RealDisk
from odradek.log.log_config import LogConfig
from odradek.log.log_directory import LOCK_FILE
from odradek.log.segment import LOG_SUFFIX, Segment
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
@click.option("--dry-run", is_flag=True, help="Say what would be done, and do nothing.")
@format_option
def repair(paths: tuple[str, ...], dry_run: bool, as_json: bool) -> None:
    """Repair a broker's files: a segment, a partition's directory, or one of its log.dirs. Stop the broker first.

    Torn ends are cut off, damaged segments are written anew with the batches that are whole, indexes are rebuilt, and
    files that make no sense are set aside. Whatever is taken out is kept beside, under a name that the broker ignores.
    """
    places = [find_place(path) for path in paths]
    with ExitStack() as locks:
        for directory in {place.log_directory for place in places}:
            locks.enter_context(_without_broker(directory, dry_run=dry_run))
        left = sum(_repair_place(place, dry_run=dry_run, as_json=as_json) for place in places)
    if left:
        raise Failure(f"{count_text(left, 'problem')} left that repair can do nothing about, shown above")


@contextmanager
def _without_broker(directory: str, *, dry_run: bool) -> Iterator[None]:
    """Nobody else may touch the files while we do. Files that were copied from a broker have no lock."""
    if dry_run or not os.path.exists(os.path.join(directory, LOCK_FILE)):
        yield
        return
    lock = RealDisk().lock(os.path.join(directory, LOCK_FILE))
    if lock is None:
        raise Failure(f"a broker uses {directory}: stop it first (--dry-run works beside it)")
    try:
        yield
    finally:
        lock.release()


def _repair_place(place: Place, *, dry_run: bool, as_json: bool) -> int:
    """How many problems are left."""
    check = check_place(place)
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
            print_json(_row(finding, dry_run=dry_run))
    else:
        _report(check, todo, dry_run=dry_run)
    return left


def _row(finding: Finding, *, dry_run: bool) -> dict[str, object]:
    return {
        "kind": "repair",
        "file": finding.path,
        "problem": finding.text,
        "remedy": finding.remedy_text,
        "done": not dry_run and finding.remedy is not Remedy.ASK,
    }


def _report(check: PlaceCheck, todo: list[Finding], *, dry_run: bool) -> None:
    mark = click.style("would", fg="yellow") if dry_run else click.style("done", fg="green")
    for finding in todo:
        say(f"{strong(shown_path(finding.path))}: {finding.text}")
        say(f"  {mark}: {finding.remedy_text}")
    repairs = count_text(sum(finding.remedy is not Remedy.ASK for finding in todo), "repair")
    what = "nothing to repair" if not todo else f"{repairs} {'would be made' if dry_run else 'made'}"
    say(f"checked {total_text(check.partitions)}: {what}")


def repair_partition(check: PartitionCheck) -> None:
    """Segments in their order, so that each can be told where the next begins."""
    for number, segment in enumerate(check.segments):
        following = check.segments[number + 1].base_offset if number + 1 < len(check.segments) else None
        remedies = {finding.remedy for finding in segment.findings}
        if Remedy.SALVAGE in remedies:
            _salvage(segment, following)
        elif Remedy.CUT_TAIL in remedies:
            _cut_tail(segment)
        elif Remedy.REBUILD in remedies:
            _rebuild_indexes(segment.path)
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
        with open(finding.aside, "wb") as tail:
            _copy(file, tail, end - position)
        file.truncate(position)
        os.fsync(file.fileno())
    _rebuild_indexes(segment.path)


def _salvage(segment: SegmentCheck, following_offset: int | None) -> None:
    """The whole batches in a new file. Where the segment's end is lost an empty batch says which offsets were there:
    otherwise a broker that recovers would take everything after the gap for what a power failure has left."""
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
    os.replace(segment.path, aside)
    os.replace(new, segment.path)
    _rebuild_indexes(segment.path)


def _empty_batches(first_offset: int, end_offset: int) -> Iterator[bytearray]:
    while first_offset < end_offset:
        last_offset = min(end_offset - 1, first_offset + LARGEST_DELTA)
        yield write_batch(
            BatchHeader(
                base_offset=first_offset,
                batch_length=HEADER_SIZE_BYTES - LENGTH_END_POSITION,
                partition_leader_epoch=-1,
                magic=CURRENT_MAGIC,
                crc=0,
                attributes=0,
                last_offset_delta=last_offset - first_offset,
                base_timestamp=-1,
                max_timestamp=-1,
                producer_id=-1,
                producer_epoch=-1,
                base_sequence=-1,
                record_count=0,
            ),
            b"",
        )
        first_offset = last_offset + 1


def _rebuild_indexes(path: str) -> None:
    directory, name = os.path.split(path)
    segment = Segment(RealDisk(), directory, int(name.removesuffix(LOG_SUFFIX)))
    segment.recover(LogConfig().index_interval_bytes)
    for file in segment.open_indexes():
        file.sync()


def _set_aside(path: str, aside: str) -> None:
    os.replace(path, aside)


def _copy(source: IO[bytes], target: IO[bytes], size_bytes: int) -> None:
    while size_bytes > 0:
        piece = source.read(min(COPY_BYTES, size_bytes))
        if not piece:
            return
        target.write(piece)
        size_bytes -= len(piece)
