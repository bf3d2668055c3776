"""The segments of one log: adding one, removing and replacing them, and the files that wait for removal."""

from collections.abc import Sequence

from odradek.host.host import Host
from odradek.log.cleaned_segment import CleanedSegment, take_names
from odradek.log.log_config import LogConfig
from odradek.log.log_loading import choose_jitter
from odradek.log.producer_state import ProducerState
from odradek.log.segment import Segment
from odradek.log.snapshot_files import SnapshotFiles
from odradek.log.unsynced_files import UnsyncedFiles


def count_before(segments: Sequence[Segment], offset: int) -> int:
    """How many of the oldest segments hold nothing at or after this offset; never the active one."""
    count = 0
    while count + 1 < len(segments) and segments[count + 1].base_offset <= offset:
        count += 1
    return count


class SegmentList:
    """`segments` is in order of offsets; the last one, `active`, takes appends.

    Adding a segment extends the list object, and every other change replaces it. So a reader on another thread that
    ends with the list object that it began with has seen no removal, replacement or truncation."""

    __slots__ = ("_directory", "_host", "_removed_files", "_snapshots", "_unsynced", "active", "segments")

    def __init__(
        self, host: Host, directory: str, segments: list[Segment], snapshots: SnapshotFiles, unsynced: UnsyncedFiles
    ) -> None:
        self._host = host
        self._directory = directory
        self._snapshots = snapshots
        self._unsynced = unsynced
        self._removed_files: list[str] = []
        self.segments = segments
        self.active = segments[-1]

    def new_segment(self, base_offset: int, config: LogConfig) -> Segment:
        """An empty segment in memory; `Segment.create` makes its file."""
        segment = Segment(self._host.disk, self._directory, base_offset)
        segment.created_ms = self._host.clock.now_ms()
        segment.roll_jitter_ms = choose_jitter(config, self._host)
        segment.init_empty()
        return segment

    def roll(self, config: LogConfig, producers: ProducerState, base_offset: int) -> None:
        """Begins a new segment at `base_offset`, the log end. Nothing is synced: `flush` does it for all rolled
        segments. The segment's file is created last: when the disk is full the old segment stays active, and no file
        name may lie within its offsets."""
        rolled = self.active
        if rolled.size_bytes == 0:
            return
        rolled.write_indexes()
        self._snapshots.write(producers, base_offset)
        segment = self.new_segment(base_offset, config)
        segment.create()
        self._unsynced.has_new_names = True
        # Before `active` changes: a flush must find the old segment as the active one or among the rolled ones.
        self._unsynced.rolled_segments.append(rolled)
        self.segments.append(segment)
        self.active = segment
        rolled.become_read_only()

    def remove_before(self, offset: int, limit: int) -> Sequence[Segment]:
        """Removes at most `limit` of the segments that hold nothing at or after `offset`, and returns them. The active
        segment stays."""
        count = min(count_before(self.segments, offset), limit)
        removed = self.segments[:count]
        if removed:
            self.segments = self.segments[count:]
            self.discard(removed)
            self._snapshots.remove(segment.base_offset for segment in removed)
        return removed

    def replace(self, old: Sequence[Segment], cleaned: CleanedSegment) -> Segment | None:
        """Replaces neighbouring segments by the one that compaction has staged, and returns it. The producer snapshots
        of the old ones but the first go with them. None when they are not neighbours, or one of them is active."""
        first = next((i for i, segment in enumerate(self.segments) if segment is old[0]), len(self.segments))
        end = first + len(old)
        if self.segments[first:end] != [*old] or self.active in old:
            return None
        segment = Segment(self._host.disk, self._directory, cleaned.base_offset)
        segment.size_bytes = cleaned.size_bytes
        segment.transaction_index.has_file = cleaned.has_aborted_transactions
        self.discard(old)
        take_names(self._host.disk, self._directory, cleaned.base_offset)
        self.segments = [*self.segments[:first], segment, *self.segments[end:]]
        self._snapshots.remove(each.base_offset for each in old[1:])
        self._unsynced.has_new_names = True
        return segment

    def relocate(self, directory: str) -> None:
        """The directory of the log was renamed, and nothing reads the segments."""
        self._directory = directory
        self._removed_files = [f"{directory}/{path.rpartition('/')[2]}" for path in self._removed_files]
        for segment in self.segments:
            segment.relocate(directory)

    def publish(self, segments: list[Segment]) -> None:
        """Replaces the list, for a truncation."""
        self.segments = segments
        self.active = segments[-1]

    def discard(self, segments: Sequence[Segment]) -> None:
        """Renames the files of segments that are not in the list, in this order, for removal by `take_removed_files`"""
        for segment in segments:
            self._removed_files += segment.rename_for_removal()
            self._unsynced.forget(segment)

    def take_removed_files(self) -> list[str]:
        """The paths of renamed files that no call has returned before. A truncation may add some on another thread."""
        removed = self._removed_files[:]
        del self._removed_files[: len(removed)]
        return removed
