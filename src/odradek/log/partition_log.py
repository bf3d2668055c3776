"""The log of one partition: validated batches in, stretches of files out.

Everything runs on the event loop without blocking, except what says that it blocks: that is called on a worker, also
while the loop goes on appending and reading (the order of reads and writes of shared fields below matters for this).
"""

from bisect import bisect_right
from collections.abc import Sequence

from odradek.host.host import Host
from odradek.host.slices import FileSlice
from odradek.log.append_result import AppendResult
from odradek.log.batch_conversion import convert_batch
from odradek.log.batch_validation import check_batch
from odradek.log.compaction.cleaned_segment import CleanedSegment, take_names
from odradek.log.log_config import LogConfig, TimestampType
from odradek.log.log_loading import LoadedLog, LogLoader, choose_jitter, rebuild_producers
from odradek.log.producer_state import ProducerBatch
from odradek.log.reading import base_offset, cut_slice, locate_in_segments, refuse_damaged, search_segments
from odradek.log.record_faults import RecordFault, find_faults
from odradek.log.retention import count_before
from odradek.log.rolling import must_roll
from odradek.log.segment import Segment
from odradek.log.snapshot_files import SnapshotFiles
from odradek.log.timestamp_search import TimestampOffset, find_max_timestamp, find_offset_for_timestamp
from odradek.log.unsynced_files import UnsyncedFiles
from odradek.protocol.batch import assign_offset, read_batch_header, set_append_time
from odradek.protocol.errors import ErrorCode
from odradek.protocol.sentinels import NO_TIMESTAMP

_NONE = ErrorCode.NONE  # looking up an attribute of an enum takes long
_new_tuple = tuple.__new__  # half the time of the constructor, once per append


class PartitionLog:
    __slots__ = (
        "_active",
        "_clock",
        "_converts_batches",
        "_host",
        "_is_changed",
        "_opened_end_offset",
        "_removed_files",
        "_segments",
        "_snapshots",
        "_stamps_batches",
        "_unsynced",
        "config",
        "directory",
        "leader_epochs",
        "log_end_offset",
        "log_start_offset",
        "producers",
        "recovery_point_offset",
        "size_bytes",
    )

    def __init__(self, directory: str, config: LogConfig, host: Host, loaded: LoadedLog) -> None:
        self.directory = directory
        self._host = host
        self._clock = host.clock
        self.configure(config)
        self._segments = loaded.segments
        self._active = loaded.segments[-1]
        self._snapshots = loaded.snapshots
        self.log_start_offset = loaded.log_start_offset
        self.log_end_offset = loaded.log_end_offset
        self.recovery_point_offset = loaded.recovery_point_offset
        self.producers = loaded.producers
        self.leader_epochs = loaded.leader_epochs
        self.size_bytes = sum(segment.size_bytes for segment in loaded.segments)
        rolled_segments = [segment for segment in loaded.unsynced_segments if segment is not self._active]
        self._unsynced = UnsyncedFiles(
            host.disk, directory, loaded.snapshots, rolled_segments, is_new=loaded.has_new_names
        )
        self._opened_end_offset = loaded.log_end_offset
        self._is_changed = bool(loaded.unsynced_segments)
        self._removed_files: list[str] = []

    @classmethod
    def open(
        cls,
        directory: str,
        config: LogConfig,
        host: Host,
        *,
        clean_shutdown: bool,
        recovery_point_offset: int = 0,
        log_start_offset: int = 0,
    ) -> "PartitionLog":
        """Creates it, or loads or recovers what is there. Blocks."""
        loader = LogLoader(directory, config, host, clean_shutdown, recovery_point_offset, log_start_offset)
        return cls(directory, config, host, loader.load())

    @classmethod
    def unreachable(cls, directory: str, config: LogConfig, host: Host) -> "PartitionLog":
        """Stands for one whose directory cannot be used: nothing is read, and nothing may be done with it."""
        nothing = LoadedLog([Segment(host.disk, directory, 0)], SnapshotFiles(host.disk, directory, ()), 0)
        return cls(directory, config, host, nothing)

    def configure(self, config: LogConfig) -> None:
        """From the next append on."""
        self.config = config
        self._converts_batches = config.is_compacted or config.target_compression is not None
        self._stamps_batches = config.message_timestamp_type is TimestampType.LOG_APPEND_TIME

    @property
    def segments(self) -> Sequence[Segment]:
        return self._segments

    # Appending

    def append(self, batch: memoryview, leader_epoch: int, *, is_built_here: bool = False) -> AppendResult:
        """Appends the one batch that a client sent; the view is written to. Refusals are error codes, and OSError means
        that the disk failed, now or in an earlier sync: either way nothing has changed. A batch that this broker has
        built is not checked: it has keys, a right checksum and a size within the topic's limits."""
        if self._unsynced.failure is not None:
            self._unsynced.check()
        config = self.config
        now_ms = self._clock.now_ms()
        header = read_batch_header(batch) if is_built_here else check_batch(batch, config, now_ms)
        if isinstance(header, ErrorCode):
            return AppendResult(header)
        is_idempotent = header.producer_id >= 0
        if is_idempotent:
            verdict = self.producers.check(header)
            if verdict is not None:
                return self._refuse(verdict)
        if self._converts_batches and not (is_built_here and config.target_compression is None):
            converted = convert_batch(batch, header, config)
            if isinstance(converted, ErrorCode):
                return AppendResult(converted)
            batch = converted
        base_offset = self.log_end_offset
        last_offset = base_offset + header.last_offset_delta
        assign_offset(batch, 0, base_offset, leader_epoch)
        max_timestamp = header.max_timestamp
        append_time_ms = NO_TIMESTAMP
        if self._stamps_batches:
            set_append_time(batch, 0, now_ms)
            max_timestamp = append_time_ms = now_ms
        segment = self._active
        size_bytes = len(batch)
        if must_roll(segment, config, size_bytes, last_offset, max_timestamp, now_ms):
            self.roll()
            segment = self._active
        segment.append(batch, last_offset, max_timestamp, config.index_interval_bytes)
        if leader_epoch > self.leader_epochs.latest_epoch:
            self.leader_epochs.assign(leader_epoch, base_offset)
        if is_idempotent:
            self.producers.update(header, last_offset, max_timestamp)
        self.size_bytes += size_bytes
        self.log_end_offset = last_offset + 1
        return _new_tuple(AppendResult, (_NONE, base_offset, last_offset, append_time_ms, False))

    def _refuse(self, verdict: ErrorCode | ProducerBatch) -> AppendResult:
        if isinstance(verdict, ErrorCode):
            return AppendResult(verdict)
        append_time_ms = verdict.timestamp if self._stamps_batches else NO_TIMESTAMP
        return AppendResult(ErrorCode.NONE, verdict.base_offset, verdict.last_offset, append_time_ms, True)

    def faults_of(self, batch: memoryview) -> list[RecordFault]:
        """The records to blame for the refusal of a batch, if its header is sound."""
        return find_faults(batch, self.config, self._clock.now_ms())

    def roll(self) -> None:
        """Begins a new segment. Nothing is synced here: `flush` does it for all segments that were rolled.
        Its file comes last: when the disk is full the old segment goes on, and no file may stand within its offsets."""
        rolled = self._active
        if rolled.size_bytes == 0:
            return
        rolled.write_indexes()
        self._snapshots.write(self.producers, self.log_end_offset)
        segment = self._create_segment(self.log_end_offset)
        # A flush that sees the old segment no longer as the active one must find it here.
        self._unsynced.rolled_segments.append(rolled)
        self._segments.append(segment)
        self._active = segment
        rolled.become_read_only()

    def _create_segment(self, base_offset: int) -> Segment:
        segment = Segment(self._host.disk, self.directory, base_offset)
        segment.created_ms = self._clock.now_ms()
        segment.roll_jitter_ms = choose_jitter(self.config, self._host)
        segment.create()
        self._unsynced.has_new_names = True
        return segment

    # Reading

    def read(
        self, fetch_offset: int, max_bytes: int, end_offset: int, *, whole_first_batch: bool
    ) -> FileSlice | ErrorCode | None:
        """From the batch that holds `fetch_offset` on, at most to the one that holds `end_offset`, within one segment.
        It may end inside a later batch than the first, as in Kafka. A first batch over the limit is given whole with
        `whole_first_batch`, and otherwise not at all: a consumer takes bytes without a batch for a broken broker."""
        if not self.log_start_offset <= fetch_offset <= self.log_end_offset:
            return ErrorCode.OFFSET_OUT_OF_RANGE
        if fetch_offset >= end_offset:
            return None
        segments = self._segments
        segment = self._active
        place: tuple[int, int] | None
        try:
            if fetch_offset >= segment.base_offset:
                end_position = segment.size_bytes  # before the end of the log: an append may come between (on a worker)
                place = segment.locate(fetch_offset)
                holds_end = end_offset < self.log_end_offset
                file = segment.file
            else:
                segment, place, next_base_offset = locate_in_segments(segments, fetch_offset)
                file = segment.file
                end_position = segment.size_bytes
                holds_end = end_offset < (self.log_end_offset if next_base_offset is None else next_base_offset)
            if place is None:
                return refuse_damaged(segment, fetch_offset) if segment.breaks_off_before(fetch_offset, file) else None
            end_place = segment.locate(end_offset) if holds_end else None
        except FileNotFoundError:
            if fetch_offset < self.log_start_offset:  # removed meanwhile: this runs on a worker
                return ErrorCode.OFFSET_OUT_OF_RANGE
            if segments is self._segments:
                raise
            return self.read(fetch_offset, max_bytes, end_offset, whole_first_batch=whole_first_batch)  # replaced
        if end_place is not None:
            end_position = end_place[0]
        piece = cut_slice(segment, file, place, end_position, max_bytes, whole_first_batch)
        return refuse_damaged(segment, fetch_offset) if piece is ErrorCode.CORRUPT_MESSAGE else piece

    def needs_disk(self, fetch_offset: int) -> bool:
        """Whether finding this offset reads files: then `read` is better called on a worker."""
        active = self._active
        return fetch_offset - active.base_offset < active.recent_batches.first_offset

    def offset_for_timestamp(self, timestamp_ms: int) -> TimestampOffset | None:
        """The first record that is not older. Blocks."""
        return search_segments(
            lambda segments: find_offset_for_timestamp(segments, self.log_start_offset, timestamp_ms),
            lambda: self._segments,
        )

    def max_timestamp_offset(self) -> TimestampOffset | None:
        """The first record with the largest timestamp. Blocks."""
        return search_segments(
            lambda segments: find_max_timestamp(segments, self.log_start_offset), lambda: self._segments
        )

    def epoch_end_offset(self, leader_epoch: int) -> tuple[int, int]:
        return self.leader_epochs.end_offset(leader_epoch, self.log_end_offset)

    # Durability

    @property
    def has_failed(self) -> bool:
        """A sync has failed: only a restart can tell what the disk has."""
        return self._unsynced.failure is not None

    @property
    def has_rolled_segments_to_sync(self) -> bool:
        return bool(self._unsynced.rolled_segments)

    def flush(self) -> None:
        """Makes everything up to the present end durable and moves the recovery point there. Blocks. One at a time, and
        not while the log is truncated. After an OSError from a sync the log has failed: it takes no more batches, and
        no flush is tried again (see UnsyncedFiles)."""
        self._unsynced.check()
        end_offset = self.log_end_offset  # before the active segment: see UnsyncedFiles.sync
        active = self._active
        unsynced = self._unsynced
        is_synced = end_offset == self.recovery_point_offset and not unsynced.rolled_segments
        if is_synced and not unsynced.has_new_names and not self.leader_epochs.is_dirty:
            return
        unsynced.sync(active, self.leader_epochs)
        self.recovery_point_offset = max(self.recovery_point_offset, end_offset)

    def close(self) -> None:
        """Flushes, and leaves what a start without recovery needs. Blocks; the log must not be used any more.
        A log that was only read costs nothing: with thousands of partitions most are like that.
        OSError when it could not, or when a sync has failed before: then the shutdown is not clean."""
        self._unsynced.check()
        if self._is_changed or self.log_end_offset != self._opened_end_offset:
            if self.log_end_offset not in self._snapshots.offsets:
                self._snapshots.write(self.producers, self.log_end_offset)
            self._active.write_indexes()
            self._unsynced.has_new_names = True
            self.flush()
            self._unsynced.sync_indexes(self._active)
        self.release()

    def release(self) -> None:
        """Gives back all files: of a deleted log they take room for as long as somebody holds them."""
        for segment in self._segments:
            segment.release()

    # Removing

    def truncate_to(self, offset: int) -> None:
        """Removes what is at and after `offset`, to the start of the batch that holds it. Blocks."""
        if offset >= self.log_end_offset:
            return
        if offset < self._segments[0].base_offset:
            self.truncate_fully_and_start_at(offset)
            return
        kept = bisect_right(self._segments, offset, key=base_offset)
        removed = self._segments[kept:]
        self._segments = self._segments[:kept]
        self._active = self._segments[-1]
        if not self._active.is_writable and not self._active.load_for_writing():
            self._active.recover(self.config.index_interval_bytes)
        self._remove(removed)
        self._snapshots.remove(segment.base_offset for segment in removed)
        self._finish_truncation(self._active.truncate_to(offset))

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Removes everything; the log goes on at `offset`. Blocks."""
        self._remove(self._segments)
        self._active = self._create_segment(offset)
        self._segments = [self._active]
        self.log_start_offset = offset
        self.leader_epochs.clear()
        self._snapshots.remove(self._snapshots.offsets)
        self._finish_truncation(offset)

    def _finish_truncation(self, end_offset: int) -> None:
        """Durably: what was cut off must not come back after a crash that also takes what is appended next."""
        self._is_changed = True
        self.log_end_offset = end_offset
        self.log_start_offset = min(self.log_start_offset, end_offset)
        self.recovery_point_offset = min(self.recovery_point_offset, end_offset)
        if self._active in self._unsynced.rolled_segments:
            self._unsynced.rolled_segments.remove(self._active)
        self.size_bytes = sum(segment.size_bytes for segment in self._segments)
        self._snapshots.remove_after(end_offset)
        rebuild_producers(self.producers, self._snapshots, self._segments, end_offset)
        self.leader_epochs.truncate_from_end(end_offset)
        self._unsynced.sync_truncation(self._active, self.leader_epochs)

    def advance_log_start_offset(self, offset: int) -> None:
        """Records below are gone for readers. Their files go with `remove_segments_before_start`, once the new start is
        written down: if only the files were gone after a crash, offsets might be given twice."""
        if offset > self.log_end_offset:
            raise ValueError(f"log start offset {offset} is past the end of the log at {self.log_end_offset}")
        if offset > self.log_start_offset:
            self.log_start_offset = offset
            self.leader_epochs.truncate_from_start(offset)

    def expire_to(self, offset: int) -> None:
        """What `expired_offset` said. The active segment goes only if nothing was appended to it since then."""
        if offset > self._active.base_offset:
            if offset == self.log_end_offset:
                self.roll()
            else:
                offset = self._active.base_offset
        self.advance_log_start_offset(offset)

    def remove_segments_before_start(self, limit: int) -> int:
        """Renames those that hold nothing else, at most so many at once, to be removed by the owner on a worker
        (`take_removed_files`). The active segment stays. Returns how many."""
        count = min(count_before(self._segments, self.log_start_offset), limit)
        if count:
            removed = self._segments[:count]
            self._segments = self._segments[count:]
            self._remove(removed)
            self._snapshots.remove(segment.base_offset for segment in removed)
            self.size_bytes -= sum(segment.size_bytes for segment in removed)
        return count

    def replace_segments(self, old: Sequence[Segment], cleaned: CleanedSegment) -> bool:
        """Puts a segment that compaction has staged in the place of these; their producer snapshots are needless then.
        False when they are no longer neighbours in this log, or one of them is written to."""
        first = next((i for i, segment in enumerate(self._segments) if segment is old[0]), len(self._segments))
        end = first + len(old)
        if self._segments[first:end] != [*old] or self._active in old:
            return False
        segment = Segment(self._host.disk, self.directory, cleaned.base_offset)
        segment.size_bytes = cleaned.size_bytes
        self._remove(old)
        take_names(self._host.disk, self.directory, cleaned.base_offset)
        self._segments = [*self._segments[:first], segment, *self._segments[end:]]
        self._snapshots.remove(each.base_offset for each in old[1:])
        self.size_bytes += segment.size_bytes - sum(each.size_bytes for each in old)
        self._is_changed = self._unsynced.has_new_names = True
        return True

    def take_removed_files(self) -> list[str]:
        """Paths of renamed files that nobody has been given yet, for removal after `file.delete.delay.ms`."""
        removed, self._removed_files = self._removed_files, []
        return removed

    def _remove(self, segments: Sequence[Segment]) -> None:
        for segment in segments:
            self._removed_files += segment.rename_for_removal()
            if segment in self._unsynced.rolled_segments:
                self._unsynced.rolled_segments.remove(segment)
