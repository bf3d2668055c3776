"""Removing the end of a log, or all of it: what a follower does whose log has diverged from the leader's.

Rules for the caller:

- Only the owner of a log that does not lead truncates it. It has lowered the high watermark to at most the new log end,
  ended the compaction of this log (`replica/truncating`), and on the event loop it has called `begin_truncation`: until
  the truncation ends, nothing may be appended, and retention and compaction leave the log as it is.
- Flushes may run concurrently: flushes and truncations of one log wait for each other.
- When the truncation returns, it and everything before the new log end are durable, and the recovery point is the new
  log end. The owner writes the recovery point checkpoint before the next append, because recovery does not read what
  lies before the checkpoint.
- An OSError while files are read changes nothing. After an OSError while files are changed, the log has failed.

Readers may run concurrently, on the event loop or on workers, with a list of segments from before the truncation:

- A read that overlaps a truncation returns records from before the truncation that lie before both its own end offset
  and the new log end, or OFFSET_OUT_OF_RANGE.
- Bytes of a segment file are written once: the segment that is cut takes no more appends, and the log continues in a
  new segment with a new file. So a slice that was returned before the truncation never reads bytes that were appended
  after it. Slices of removed segments stay whole. A slice that reaches into the removed part of the cut segment finds
  the end of its file early, and `host/network` closes the connection; bytes that are in a socket buffer at that moment
  may turn into zeros up to the end of a page, which fails the receiver's check. Consumers are not affected: they read
  below the high watermark.

A truncation has three steps. The plan reads files and changes nothing; then the log publishes the plan in memory; then
`truncate_files` changes the files, such that a crash leaves a log without holes that ends at or after the new log end:
segments are removed from the newest to the oldest, and their removal is on the disk before the new segment is created.
This one is on the disk before the cut is made: recovery removes it if the segment before it was not cut.

The log start moves up only in a full truncation. After compaction, the oldest batch may lie after the new log end: then
its segment stays, without batches, so that the next start finds the same log start and log end.
"""

from collections.abc import Sequence
from dataclasses import field

from odradek.conventions.dataclass import dataclass
from odradek.log.leader_epochs import LeaderEpochs
from odradek.log.log_config import LogConfig
from odradek.log.producer_replay import find_aborted_transactions, rebuild_producers
from odradek.log.producer_state import ProducerState
from odradek.log.reading import find_segment
from odradek.log.segment import Segment
from odradek.log.segment_list import SegmentList
from odradek.log.snapshot_files import SnapshotFiles
from odradek.log.unsynced_files import UnsyncedFiles


@dataclass(frozen=True, slots=True)
class TruncationPlan:
    """What a truncation leaves: the segments before the cut one, the cut one if it begins before the new log end, and a
    new active one that begins there."""

    active: Segment
    removed: Sequence[Segment]
    kept: Sequence[Segment] = ()
    original: Segment | None = None  # that `cut` replaces, for the same files
    cut: Segment | None = None
    producers: ProducerState = field(default_factory=ProducerState)

    @property
    def end_offset(self) -> int:
        return self.active.base_offset

    @property
    def is_empty(self) -> bool:
        """No offset is left: the log begins where it ends."""
        return not self.kept and self.cut is None

    @property
    def segments(self) -> list[Segment]:
        return [*self.kept, *([self.cut] if self.cut else ()), self.active]


def plan_full_truncation(segment_list: SegmentList, offset: int, config: LogConfig) -> TruncationPlan:
    """The log is empty, and begins and ends at `offset`."""
    return TruncationPlan(segment_list.new_segment(offset, config), tuple(segment_list.segments))


def plan_truncation(
    segment_list: SegmentList, snapshots: SnapshotFiles, offset: int, config: LogConfig
) -> TruncationPlan:
    """The log ends at `offset`, or before the batch that holds it: batches stay whole or go. Blocks."""
    segments = segment_list.segments
    if offset < segments[0].base_offset:
        return plan_full_truncation(segment_list, offset, config)
    index = find_segment(segments, offset)
    original = segments[index]
    end_offset, end_position = offset, original.size_bytes
    place = original.locate(offset)
    if place is not None:
        end_position = place[0]
        end_offset = min(offset, int.from_bytes(original.file.read_at(8, end_position), "big"))
    active = segment_list.new_segment(end_offset, config)
    kept = segments[:index]
    if end_offset == original.base_offset:
        return TruncationPlan(active, segments[index:], kept, producers=_replay(snapshots, kept, end_offset))
    cut = Segment(original.disk, original.directory, original.base_offset)
    cut.load_cut(original, offset, end_position, config.index_interval_bytes)
    if not cut.transaction_index.is_loaded:
        cut.transaction_index.create(find_aborted_transactions(snapshots, kept, cut))
    producers = _replay(snapshots, [*kept, cut], end_offset)
    return TruncationPlan(active, segments[index + 1 :], kept, original, cut, producers)


def _replay(snapshots: SnapshotFiles, segments: Sequence[Segment], end_offset: int) -> ProducerState:
    producers = ProducerState()
    rebuild_producers(producers, snapshots, segments, end_offset)
    return producers


def truncate_files(
    plan: TruncationPlan,
    segment_list: SegmentList,
    snapshots: SnapshotFiles,
    leader_epochs: LeaderEpochs,
    unsynced: UnsyncedFiles,
) -> None:
    """Durable when it returns: what was cut off must not come back after a crash that loses what is appended next.
    Blocks."""
    try:
        unsynced.has_new_names = True
        segment_list.discard(plan.removed[::-1])
        if plan.is_empty:
            snapshots.remove(snapshots.offsets)
        else:
            snapshots.remove_after(plan.end_offset)
        unsynced.sync_names()
        plan.active.create()
        if plan.cut is not None and plan.original is not None:
            unsynced.forget(plan.original)
            plan.original.release()
            plan.cut.write_indexes()
            unsynced.has_new_names = True
            unsynced.sync_names()
            unsynced.sync_indexes(plan.cut)
            plan.cut.cut_file()
            unsynced.sync_segment(plan.cut)
            plan.cut.become_read_only()
        if not plan.is_empty:
            snapshots.write(plan.producers, plan.end_offset)
        unsynced.has_new_names = True
        unsynced.sync(plan.active, leader_epochs)
    except OSError as error:
        unsynced.failure = error
        raise
