"""What a log keeps on the disk, apart from appending to it and reading it: making it durable, beginning segments,
cutting it off, removing and replacing segments.

Methods whose docstring says that they block run on a worker, while the event loop continues to append and read; all
others run on the event loop. Fields are shared without locks: the order of reads and writes matters.
"""

from collections.abc import Callable, Sequence

from odradek.host.host import Host
from odradek.host.worker_lock import WorkerLock
from odradek.log.cleaned_segment import CleanedSegment
from odradek.log.log_config import LogConfig
from odradek.log.log_loading import LoadedLog
from odradek.log.segment import Segment
from odradek.log.segment_list import SegmentList
from odradek.log.truncation import TruncationPlan, plan_full_truncation, plan_truncation, truncate_files
from odradek.log.unsynced_files import UnsyncedFiles


class StoredLog:
    """The base of PartitionLog, so that appends and reads find everything in one object."""

    __slots__ = (
        "_is_changed",
        "_opened_end_offset",
        "_segments",
        "_snapshots",
        "_sync_lock",
        "_unsynced",
        "aside_names",
        "config",
        "directory",
        "is_truncating",
        "leader_epochs",
        "log_end_offset",
        "log_start_offset",
        "producers",
        "recovery_point_offset",
        "size_bytes",
    )

    def __init__(self, directory: str, config: LogConfig, host: Host, loaded: LoadedLog) -> None:
        self.directory = directory
        self.config = config
        self._snapshots = loaded.snapshots
        self.log_start_offset = loaded.log_start_offset
        self.log_end_offset = loaded.log_end_offset
        self.recovery_point_offset = loaded.recovery_point_offset
        self.producers = loaded.producers
        self.leader_epochs = loaded.leader_epochs
        self.size_bytes = sum(segment.size_bytes for segment in loaded.segments)
        self.is_truncating = False
        rolled_segments = [segment for segment in loaded.unsynced_segments if segment is not loaded.segments[-1]]
        is_new = loaded.has_new_names
        self._unsynced = UnsyncedFiles(host.disk, directory, loaded.snapshots, rolled_segments, is_new=is_new)
        self._segments = SegmentList(host, directory, loaded.segments, loaded.snapshots, self._unsynced)
        self._sync_lock = WorkerLock()  # held by a flush or a truncation
        self._opened_end_offset = loaded.log_end_offset
        self._is_changed = bool(loaded.unsynced_segments)
        self.aside_names = loaded.aside_names
        """Names of files with segments that recovery has set aside."""

    @property
    def segments(self) -> Sequence[Segment]:
        return self._segments.segments

    def roll(self) -> None:
        """Begins a new segment at the log end, unless the active one is empty."""
        self._segments.roll(self.config, self.producers, self.log_end_offset)

    def replace_log(self, other: "StoredLog", directory: str) -> None:
        """Take the place of `other`, of which this is a copy to the same log end. This directory was renamed."""
        for part in (self._segments, self._snapshots, self._unsynced):
            part.relocate(directory)
        self.directory, self.producers, self.leader_epochs = directory, other.producers, other.leader_epochs.copy()
        self._is_changed = True
        self._snapshots.write(self.producers, self.log_end_offset)
        self.roll()  # recovery begins at or after the snapshot

    # Durability

    @property
    def has_failed(self) -> bool:
        """A sync or a truncation has failed: only recovery after a restart can find out what the disk has."""
        return self._unsynced.failure is not None

    @property
    def has_rolled_segments_to_sync(self) -> bool:
        return bool(self._unsynced.rolled_segments)

    def flush(self) -> None:
        """Makes everything before the log end, as it is when the flush begins, durable, and moves the recovery point
        there. Blocks; waits for another flush or a truncation. After an OSError from a sync the log has failed: it
        refuses appends, and no flush is retried (see UnsyncedFiles)."""
        with self._sync_lock:
            self._unsynced.check()
            end_offset = self.log_end_offset  # before the active segment: see UnsyncedFiles.sync
            active, unsynced = self._segments.active, self._unsynced
            is_synced = end_offset == self.recovery_point_offset and not unsynced.rolled_segments
            if is_synced and not unsynced.has_new_names and not self.leader_epochs.is_dirty:
                return
            unsynced.sync(active, self.leader_epochs)
            self.recovery_point_offset = max(self.recovery_point_offset, end_offset)

    def close(self) -> None:
        """Flushes, and writes what the next start needs to skip recovery; the log must not be used afterwards. Blocks.
        Nothing is written for a log that was only read. After an OSError the shutdown is not clean."""
        self._unsynced.check()
        end_offset = self.log_end_offset
        if self._is_changed or end_offset != self._opened_end_offset:
            if end_offset not in self._snapshots.offsets:
                self._snapshots.write(self.producers, end_offset)
            self._segments.active.write_indexes()
            self._unsynced.has_new_names = True
            self.flush()
            self._unsynced.sync_indexes(self._segments.active)
        self.release()

    def release(self) -> None:
        """Drops all descriptors: a deleted file takes disk space until the last one is closed."""
        for segment in self._segments.segments:
            segment.release()

    # Truncation

    def begin_truncation(self) -> None:
        """On the event loop, before a truncation is passed to a worker: until it returns, the log refuses appends, and
        retention and compaction leave it as it is."""
        self.is_truncating = True

    def truncate_to(self, offset: int) -> None:
        """Removes the batch that holds `offset`, and all after it. Blocks. Rules for the caller: see log/truncation."""
        if offset >= self.log_end_offset:
            # An epoch that begins at the log end has no batch, and the leader's log may not have it.
            self.leader_epochs.truncate_from_end(offset)
            self.is_truncating = False
        else:
            self._truncate(lambda: plan_truncation(self._segments, self._snapshots, offset, self.config))

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Removes all records; the log is empty and continues at `offset`. Blocks. As `truncate_to`."""
        self._truncate(lambda: plan_full_truncation(self._segments, offset, self.config))

    def _truncate(self, make_plan: Callable[[], TruncationPlan]) -> None:
        with self._sync_lock:
            self.is_truncating = True
            try:
                self._unsynced.check()
                plan = make_plan()
                self._publish_truncation(plan)
                truncate_files(plan, self._segments, self._snapshots, self.leader_epochs, self._unsynced)
                self.recovery_point_offset = plan.end_offset
            finally:
                self.is_truncating = False

    def _publish_truncation(self, plan: TruncationPlan) -> None:
        """Readers depend on the order: log end, log start, segments."""
        end_offset = plan.end_offset
        self._is_changed = True
        self.recovery_point_offset = min(self.recovery_point_offset, end_offset)
        self.log_end_offset = end_offset
        self.log_start_offset = end_offset if plan.is_empty else min(self.log_start_offset, end_offset)
        self._segments.publish(plan.segments)
        self.size_bytes = sum(segment.size_bytes for segment in plan.segments)
        plan.producers.transactions.take_ended(self.producers.transactions, end_offset)
        self.producers = plan.producers
        if plan.is_empty:
            self.leader_epochs.clear()
        else:
            self.leader_epochs.truncate_from_end(end_offset)

    # Retention and compaction

    def advance_log_start_offset(self, offset: int) -> None:
        """Records below become unreadable. The owner writes the log start checkpoint before it removes their segments:
        after a crash that lost only the files, the log could assign offsets twice."""
        if offset > self.log_end_offset:
            raise ValueError(f"log start offset {offset} is past the end of the log at {self.log_end_offset}")
        if offset > self.log_start_offset:
            self.log_start_offset = offset
            self.leader_epochs.truncate_from_start(offset)

    def remove_segments_before_start(self, limit: int) -> int:
        """Removes at most `limit` of the segments before the log start; returns how many. Their files are renamed: the
        owner removes them on a worker (`take_removed_files`)."""
        if self.is_truncating:
            return 0
        removed = self._segments.remove_before(self.log_start_offset, limit)
        self.size_bytes -= sum(segment.size_bytes for segment in removed)
        return len(removed)

    def replace_segments(self, old: Sequence[Segment], cleaned: CleanedSegment) -> bool:
        """Replaces segments by the one that compaction has staged. False when one is active, or they have a gap."""
        segment = None if self.is_truncating else self._segments.replace(old, cleaned)
        if segment is None:
            return False
        self.size_bytes += segment.size_bytes - sum(each.size_bytes for each in old)
        self._is_changed = True
        return True

    def take_removed_files(self) -> list[str]:
        """Paths of renamed files that no call has returned before, for removal after `file.delete.delay.ms`."""
        return self._segments.take_removed_files()
