"""Loads the files of a partition after a clean shutdown, or recovers them after a crash.

After a clean shutdown only the few kilobytes after the last index entry are scanned. Otherwise every batch from the
segment of the recovery point on is checked, a torn end is cut off, and indexes and producer state are rebuilt."""

import itertools
import re
from collections.abc import Sequence
from dataclasses import field

from odradek.conventions.dataclass import dataclass
from odradek.host.disk import File
from odradek.host.host import Host
from odradek.host.logs import get_logger
from odradek.log.batch_scan import scan_headers
from odradek.log.cleaned_segment import complete_swaps, has_compaction_files
from odradek.log.leader_epochs import FILE_NAME as EPOCHS_FILE_NAME
from odradek.log.leader_epochs import LeaderEpochs, decode_leader_epochs
from odradek.log.log_config import LogConfig
from odradek.log.offset_index import ENTRY_BYTES as OFFSET_ENTRY_BYTES
from odradek.log.producer_replay import rebuild_producers, recover_segment, replay_segment, replay_stored_batch
from odradek.log.producer_snapshot import SNAPSHOT_SUFFIX
from odradek.log.producer_state import ProducerState
from odradek.log.segment import Segment
from odradek.log.snapshot_files import SnapshotFiles
from odradek.log.stored_segment import (
    DELETED_SUFFIX,
    INDEX_SUFFIXES,
    LOG_SUFFIX,
    NAME_DIGITS,
    OFFSET_INDEX_SUFFIX,
    TIME_INDEX_SUFFIX,
)
from odradek.log.time_index import ENTRY_BYTES as TIME_ENTRY_BYTES
from odradek.log.transaction_index import TRANSACTION_CHECKSUM_SUFFIX, TRANSACTION_INDEX_SUFFIX, AbortedTransaction
from odradek.protocol.batch import BatchHeader
from odradek.protocol.malformed import MalformedMessage

logger = get_logger(__name__)

ASIDE_SUFFIX = ".aside"
_REPLACED_SUFFIXES = (EPOCHS_FILE_NAME, TRANSACTION_INDEX_SUFFIX, TRANSACTION_CHECKSUM_SUFFIX)
_LEFT_SUFFIXES = (DELETED_SUFFIX, *(suffix + ".tmp" for suffix in _REPLACED_SUFFIXES))
_ASIDE_NAME = re.compile(rf"\d{{{NAME_DIGITS}}}{LOG_SUFFIX}{ASIDE_SUFFIX}(\.\d+)?")
_OFFSET_NAME = re.compile(rf"(\d{{{NAME_DIGITS}}})(\.[a-z]+)")


@dataclass(slots=True)
class LoadedLog:
    segments: list[Segment]
    snapshots: SnapshotFiles
    log_start_offset: int
    log_end_offset: int = 0
    recovery_point_offset: int = 0
    has_new_names: bool = False
    cut_bytes: int = 0
    discarded_segments: int = 0
    set_aside_segments: int = 0
    aside_names: list[str] = field(default_factory=list)  # of files with segments that were set aside, also earlier
    rebuilt_indexes: int = 0
    swapped_segments: int = 0
    unsynced_segments: list[Segment] = field(default_factory=list)
    indexes_without_checksum: set[int] = field(default_factory=set)  # of transactions, by base offset
    producers: ProducerState = field(default_factory=ProducerState)
    leader_epochs: LeaderEpochs = field(default_factory=LeaderEpochs)

    def note_batch(self, file: File, position: int, header: BatchHeader) -> AbortedTransaction | None:
        """Updates producers and leader epochs by a batch that recovery has read, and returns the transaction that the
        batch has aborted."""
        self.note_epoch(header)
        return replay_stored_batch(self.producers, header, file, position)

    def note_epoch(self, header: BatchHeader) -> None:
        if header.partition_leader_epoch > self.leader_epochs.latest_epoch:
            self.leader_epochs.assign(header.partition_leader_epoch, header.base_offset)


@dataclass(frozen=True, slots=True)
class LogLoader:
    directory: str
    config: LogConfig
    host: Host
    clean_shutdown: bool
    recovery_point_offset: int
    log_start_offset: int

    def load(self) -> LoadedLog:
        if not self.host.disk.exists(self.directory):
            self.host.disk.make_directories(self.directory)
        log = self._open_files()
        log.leader_epochs, epochs_are_whole = self._load_leader_epochs(log.segments)
        # Batches between an older snapshot and the first segment are missing: the sequence numbers of such a snapshot
        # would refuse the producers' next batches.
        first_offset = log.segments[0].base_offset
        log.snapshots.remove([offset for offset in log.snapshots.offsets if offset < first_offset])
        if self.clean_shutdown:
            self._load_segments(log)
        else:
            self._recover_segments(log)
        self._complete(log, epochs_are_whole)
        self._report(log, epochs_are_whole)
        return log

    def _report(self, log: LoadedLog, epochs_are_whole: bool) -> None:
        """Logs what was lost or damaged, once for each log."""
        if log.swapped_segments:
            logger.info("compaction completed", directory=self.directory, segments=log.swapped_segments)
        unreadable_snapshots = log.snapshots.unreadable_count
        lost_segments = log.discarded_segments + log.set_aside_segments
        is_whole = not (log.cut_bytes or lost_segments or log.rebuilt_indexes or unreadable_snapshots)
        if is_whole and epochs_are_whole:
            return
        logger.warning(
            "log repaired",
            directory=self.directory,
            log_end_offset=log.log_end_offset,
            cut_bytes=log.cut_bytes,
            discarded_segments=log.discarded_segments,
            set_aside_segments=log.set_aside_segments,
            rebuilt_indexes=log.rebuilt_indexes,
            unreadable_snapshots=unreadable_snapshots,
            unreadable_leader_epochs=not epochs_are_whole,
        )

    def _open_files(self) -> LoadedLog:
        disk = self.host.disk
        by_suffix: dict[str, set[int]] = {suffix: set() for suffix in (LOG_SUFFIX, *INDEX_SUFFIXES, SNAPSHOT_SUFFIX)}
        names, swapped_segments = disk.list_directory(self.directory), 0
        if has_compaction_files(names):
            swapped_segments = complete_swaps(disk, self.directory)
            names = disk.list_directory(self.directory)
        for name in names:
            path = f"{self.directory}/{name}"
            if name.endswith(_LEFT_SUFFIXES):
                disk.remove(path)  # left when the last run ended
                continue
            match = _OFFSET_NAME.fullmatch(name)
            if match and match[2] in by_suffix:
                by_suffix[match[2]].add(int(match[1]))
        base_offsets = sorted(by_suffix[LOG_SUFFIX])
        for suffix in INDEX_SUFFIXES:
            for orphan in sorted(by_suffix[suffix].difference(base_offsets)):
                path = Segment(disk, self.directory, orphan).path(suffix)
                # A removal that was interrupted leaves them too.
                logger.warning("an index without its segment is removed", path=path)
                disk.remove(path)
        segments = [self._open_segment(base_offset) for base_offset in base_offsets]
        indexed = by_suffix[TRANSACTION_INDEX_SUFFIX] | by_suffix[TRANSACTION_CHECKSUM_SUFFIX]
        for segment in segments:
            segment.transaction_index.has_file = segment.base_offset in indexed
        if not segments:
            segments = [self.create_segment(self.log_start_offset)]
        return LoadedLog(
            segments,
            SnapshotFiles(disk, self.directory, by_suffix[SNAPSHOT_SUFFIX]),
            log_start_offset=max(self.log_start_offset, segments[0].base_offset),
            has_new_names=not (self.clean_shutdown and base_offsets),
            aside_names=[name for name in names if _ASIDE_NAME.fullmatch(name)],
            swapped_segments=swapped_segments,
            indexes_without_checksum=by_suffix[TRANSACTION_INDEX_SUFFIX] - by_suffix[TRANSACTION_CHECKSUM_SUFFIX],
        )

    def _open_segment(self, base_offset: int) -> Segment:
        segment = self._new_segment(base_offset)
        segment.size_bytes = self.host.disk.file_size(segment.path(LOG_SUFFIX))
        segment.unchecked_end_position = segment.size_bytes
        return segment

    def create_segment(self, base_offset: int) -> Segment:
        segment = self._new_segment(base_offset)
        segment.create()
        return segment

    def _new_segment(self, base_offset: int) -> Segment:
        segment = Segment(self.host.disk, self.directory, base_offset)
        segment.created_ms = self.host.clock.now_ms()
        segment.roll_jitter_ms = choose_jitter(self.config, self.host)
        return segment

    def _load_leader_epochs(self, segments: Sequence[Segment]) -> tuple[LeaderEpochs, bool]:
        """False when the file is damaged or missing: then the epochs are read from all batches."""
        try:
            return LeaderEpochs(
                decode_leader_epochs(self.host.disk.read_file(f"{self.directory}/{EPOCHS_FILE_NAME}"))
            ), True
        except FileNotFoundError:
            # The first flush writes the file; before that, recovery reads every batch anyway.
            was_flushed = self.clean_shutdown or self.recovery_point_offset > segments[0].base_offset
            return LeaderEpochs(), not (was_flushed and any(segment.size_bytes for segment in segments))
        except MalformedMessage:
            return LeaderEpochs(), False

    def _load_segments(self, log: LoadedLog) -> None:
        self._check_indexes(log, len(log.segments) - 1)
        active = log.segments[-1]
        self._compare_transaction_index(log, len(log.segments) - 1)
        if not active.is_writable and not active.load_for_writing():
            log.rebuilt_indexes += active.size_bytes > 0  # an empty segment may never have had indexes
            self._rebuild_indexes(log, len(log.segments) - 1)
        log.snapshots.remove_after(active.next_offset)
        rebuild_producers(log.producers, log.snapshots, log.segments, active.next_offset)

    def _recover_segments(self, log: LoadedLog) -> None:
        # Recovery begins with the segment that holds the last record before the recovery point, even when the point is
        # its end: its records are durable, but its indexes are synced only after it was rolled.
        recovery_point = self.recovery_point_offset
        first = max((i for i, segment in enumerate(log.segments) if segment.base_offset < recovery_point), default=0)
        self._check_indexes(log, first)
        if first and not log.segments[first].size_bytes and _overlap(log.segments[first - 1], log.segments[first]):
            first -= 1  # a truncation was interrupted before its cut
        rebuild_producers(log.producers, log.snapshots, log.segments[:first], log.segments[first].base_offset)
        end = first
        for segment in log.segments[first:]:
            if end > first and self._is_hole(log.segments[end - 1], segment):
                break
            cut_bytes = segment.recover(self.config.index_interval_bytes, log.note_batch)
            log.cut_bytes += cut_bytes
            log.unsynced_segments.append(segment)
            end += 1
            if cut_bytes:
                break
        for segment in log.segments[end:]:
            self._set_aside(log, segment)
        self._discard(log, end)
        for segment in log.segments[first:-1]:
            segment.become_read_only()
            segment.release()

    def _check_indexes(self, log: LoadedLog, end: int) -> None:
        """Rebuilds missing or invalid indexes of the first `end` segments."""
        for index, segment in enumerate(log.segments[:end]):
            if not self._has_indexes(segment, log.segments[index + 1].base_offset):
                log.rebuilt_indexes += 1
                self._rebuild_indexes(log, index)
                segment.become_read_only()
                # Synced at once: the next start after a kill finds the files, and cannot see that they are not synced.
                for file in (segment.file, *segment.open_indexes()):
                    file.sync()
                self.host.disk.sync_directory(self.directory)
            else:
                self._compare_transaction_index(log, index)

    def _compare_transaction_index(self, log: LoadedLog, index: int) -> None:
        """Compares an index that has no checksum with the headers of its segment's batches, and adds one, so that this
        happens once. Only segments that have such an index are read. Behind a damaged batch, nothing but the index says
        what was aborted: then it stays as it is."""
        segment = log.segments[index]
        if segment.base_offset not in log.indexes_without_checksum:
            return
        aborted, is_whole = replay_segment(log.snapshots, log.segments[:index], segment)
        if is_whole:
            log.rebuilt_indexes += segment.transaction_index.add_checksum(aborted)
        segment.release()

    def _rebuild_indexes(self, log: LoadedLog, index: int) -> None:
        segment = log.segments[index]
        log.cut_bytes += recover_segment(segment, self.config.index_interval_bytes, log.snapshots, log.segments[:index])
        log.unsynced_segments.append(segment)

    def _is_hole(self, earlier: Segment, later: Segment) -> bool:
        """Whether the end of a segment was lost, at the end of a batch. No crash loses what is below the recovery
        point: a hole there is one that a compaction has left, and in which a truncation has ended the log. The policy
        of the topic may have changed since. Apache Kafka's compaction leaves holes at the end of segments too (ours
        does not), so a hole that begins below the recovery point is accepted in a compacted log."""
        if earlier.next_offset < later.base_offset <= self.recovery_point_offset:
            return False
        if self.config.is_compacted and (
            earlier.next_offset < self.recovery_point_offset or not self.recovery_point_offset
        ):
            return later.base_offset < earlier.next_offset
        return later.base_offset != earlier.next_offset

    def _set_aside(self, log: LoadedLog, segment: Segment) -> None:
        """Keeps the records of a segment after the end of the log, until retention removes the file: nothing shows
        whether they were ever acknowledged, and they may be all that is left of them."""
        if segment.size_bytes:
            path = segment.path(LOG_SUFFIX)
            names = itertools.chain([""], (f".{number}" for number in itertools.count(1)))
            candidates = (path + ASIDE_SUFFIX + name for name in names)
            aside = next(each for each in candidates if not self.host.disk.exists(each))
            self.host.disk.rename(path, aside)
            log.aside_names.append(aside.rpartition("/")[2])
            log.set_aside_segments += 1

    def _discard(self, log: LoadedLog, from_index: int) -> None:
        """Removes segments that are no part of the log."""
        for segment in log.segments[from_index:]:
            for path in segment.rename_for_removal():
                self.host.disk.remove(path)
        if log.segments[from_index:]:
            log.discarded_segments += len(log.segments) - from_index
            self.host.disk.sync_directory(self.directory)
        del log.segments[from_index:]

    def _complete(self, log: LoadedLog, epochs_are_whole: bool) -> None:
        log.log_end_offset = log.segments[-1].next_offset
        if log.log_end_offset < log.log_start_offset:
            # Records below the log start were deleted, and a crash lost everything after it.
            self._discard(log, 0)
            log.segments.append(self.create_segment(log.log_start_offset))
            log.unsynced_segments.clear()
            log.log_end_offset = log.log_start_offset
            # Batches between are missing: known sequence numbers would refuse the producers' next batches.
            log.snapshots.remove(log.snapshots.offsets)
            log.producers.replace((), log.log_end_offset)
        log.recovery_point_offset = log.log_end_offset
        if self.clean_shutdown and log.log_end_offset < self.recovery_point_offset:
            logger.error(
                "durable records at the end of a log are lost",
                directory=self.directory,
                log_end_offset=log.log_end_offset,
                recovery_point_offset=self.recovery_point_offset,
            )
        if not self.clean_shutdown:
            log.recovery_point_offset = min(self.recovery_point_offset, log.log_end_offset)
        if not epochs_are_whole:
            log.leader_epochs.clear()  # recovery has found only the last epochs
            for segment in log.segments:
                for _, header in scan_headers(segment.file, 0, segment.size_bytes):
                    log.note_epoch(header)
        log.leader_epochs.truncate_from_end(log.log_end_offset)
        log.leader_epochs.truncate_from_start(log.log_start_offset)
        log.producers.end_offset = log.log_end_offset
        log.snapshots.remove_after(log.log_end_offset)
        log.snapshots.remove_stray(segment.base_offset for segment in log.segments)

    def _has_indexes(self, segment: Segment, next_base_offset: int) -> bool:
        """A closed segment has an offset index and a time index, of whole entries. The entries of a transaction index
        are read, as Kafka does: few segments have one."""
        disk = self.host.disk
        try:
            offset_bytes = disk.file_size(segment.path(OFFSET_INDEX_SUFFIX))
            time_bytes = disk.file_size(segment.path(TIME_INDEX_SUFFIX))
        except FileNotFoundError:
            return False
        are_whole = offset_bytes % OFFSET_ENTRY_BYTES == 0 and time_bytes % TIME_ENTRY_BYTES == 0
        return are_whole and segment.transaction_index.is_sound(segment.base_offset, next_base_offset)


def _overlap(earlier: Segment, later: Segment) -> bool:
    """Blocks."""
    return earlier.locate(later.base_offset) is not None


def choose_jitter(config: LogConfig, host: Host) -> int:
    """A random delay, so that the segments of partitions that were created together do not all roll together."""
    bound = min(config.segment_jitter_ms, config.segment_ms)
    return host.entropy.random_below(bound) if bound > 0 else 0
