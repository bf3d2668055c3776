"""The log of one partition: validated batches in, slices of segment files out.

Methods whose docstring says that they block run on a worker, while the event loop continues to append and read; all
others run on the event loop. Fields are shared without locks: the order of reads and writes matters.
"""

from collections.abc import Sequence

from odradek.host.host import Host
from odradek.host.slices import FileSlice
from odradek.log.append_result import AppendResult, not_appended
from odradek.log.batch_conversion import Conversion, convert_at_append, is_stored_as_built
from odradek.log.batch_validation import check_batch, is_valid_timestamp
from odradek.log.follower_append import FollowerAppend, check_follower_batches
from odradek.log.log_config import LogConfig, ProduceValidation, TimestampType
from odradek.log.log_loading import LoadedLog, LogLoader
from odradek.log.producer_replay import replay_batch
from odradek.log.reading import read_segments, search_segments
from odradek.log.record_faults import RecordFault, find_faults
from odradek.log.rolling import count_run, must_roll
from odradek.log.segment import Segment
from odradek.log.snapshot_files import SnapshotFiles
from odradek.log.stored_log import StoredLog
from odradek.log.timestamp_search import (
    RecordReading,
    TimestampOffset,
    find_max_timestamp,
    find_offset_for_timestamp,
)
from odradek.log.transaction_verification import VerificationGuard
from odradek.protocol.batch import COMPRESSION_MASK, BatchHeader, assign_offset, read_batch_header, set_append_time
from odradek.protocol.control_records import EndTransactionMarker, build_end_transaction_marker
from odradek.protocol.errors import ErrorCode
from odradek.protocol.records import Pause
from odradek.protocol.sentinels import NO_TIMESTAMP

_NONE = ErrorCode.NONE  # looking up an attribute of an enum is slow
_new_tuple = tuple.__new__  # half the cost of the constructor; called once per append


class PartitionLog(StoredLog):
    __slots__ = ("_clock", "_keeps_codecs", "_reads_all", "_reads_compressed", "_stamps_batches")

    def __init__(self, directory: str, config: LogConfig, host: Host, loaded: LoadedLog) -> None:
        super().__init__(directory, config, host, loaded)
        self._clock = host.clock
        self.configure(config)

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
        """Creates the log, or loads or recovers its files. Blocks."""
        loader = LogLoader(directory, config, host, clean_shutdown, recovery_point_offset, log_start_offset)
        return cls(directory, config, host, loader.load())

    @classmethod
    def unreachable(cls, directory: str, config: LogConfig, host: Host) -> "PartitionLog":
        """A placeholder for a log whose log directory has failed: nothing is read, and no method may be called."""
        nothing = LoadedLog([Segment(host.disk, directory, 0)], SnapshotFiles(host.disk, directory, ()), 0)
        return cls(directory, config, host, nothing)

    def configure(self, config: LogConfig) -> None:
        """Takes effect with the next append."""
        self.config = config
        self._keeps_codecs = config.target_compression is None
        validation = config.produce_validation
        self._reads_all = config.is_compacted or not self._keeps_codecs or validation is ProduceValidation.COMPLETE
        self._reads_compressed = validation is not ProduceValidation.HEADER
        self._stamps_batches = config.message_timestamp_type is TimestampType.LOG_APPEND_TIME

    # Appending

    def append(
        self,
        batch: memoryview,
        leader_epoch: int,
        is_built_here: bool = False,
        verification: VerificationGuard | None = None,
        conversion: Conversion | None = None,
    ) -> AppendResult:
        """Appends the one batch that a client sent, as the leader; the view is written to. Refusals are error codes.
        OSError: the disk failed, in this write or in an earlier sync. Both leave the log unchanged. A batch that this
        broker has built is not checked: it has keys and is within the topic's limits. A batch that begins a transaction
        needs a `verification`. For `conversion` and CONVERT_FIRST see `convert_at_append`."""
        if self._unsynced.failure is not None:
            self._unsynced.check()
        config = self.config
        if is_built_here:
            header = read_batch_header(batch)
            now_ms = max_timestamp = header.max_timestamp  # the time at which it was built
            is_read = not (self._keeps_codecs or is_stored_as_built(header, config))
        else:
            now_ms = self._clock.now_ms()
            checked = check_batch(batch, config, now_ms)
            if isinstance(checked, ErrorCode):
                return AppendResult(checked)
            header = checked
            max_timestamp = header.max_timestamp
            is_read = (
                self._reads_all
                or (self._reads_compressed and header.attributes & COMPRESSION_MASK != 0)
                or not 0 < header.base_timestamp <= max_timestamp  # `has_doubtful_timestamps`, inlined
            )
        is_idempotent = header.producer_id >= 0
        if is_idempotent:
            verdict = self.producers.check(header, verification)
            if verdict is not None:
                return not_appended(verdict, self._stamps_batches)
        if is_read:
            converted = self._convert(batch, header, conversion, now_ms)
            if isinstance(converted, AppendResult):
                return converted
            batch, max_timestamp = converted
        base_offset = self.log_end_offset
        last_offset = base_offset + header.last_offset_delta
        assign_offset(batch, 0, base_offset, leader_epoch)
        size_bytes = len(batch)
        append_time_ms = NO_TIMESTAMP
        if self._stamps_batches:
            set_append_time(batch, 0, now_ms)
            max_timestamp = append_time_ms = now_ms
        segment = self._segments.active
        if must_roll(segment, config, size_bytes, last_offset, max_timestamp, now_ms):
            self.roll()
            segment = self._segments.active
        segment.append(batch, last_offset, max_timestamp, config.index_interval_bytes)
        if leader_epoch > self.leader_epochs.latest_epoch:
            self.leader_epochs.assign(leader_epoch, base_offset)
        if is_idempotent:
            self.producers.update(header, last_offset, max_timestamp)
        self.size_bytes += size_bytes
        self.log_end_offset = last_offset + 1
        return _new_tuple(AppendResult, (_NONE, base_offset, last_offset, append_time_ms, False))

    def _convert(
        self, batch: memoryview, header: BatchHeader, conversion: Conversion | None, now_ms: int
    ) -> tuple[memoryview, int] | AppendResult:
        """Like `convert_at_append`, with the largest timestamp."""
        converted = convert_at_append(batch, header, self.config, conversion)
        if isinstance(converted, AppendResult):
            return converted
        max_timestamp = read_batch_header(converted).max_timestamp
        if not is_valid_timestamp(max_timestamp, self.config, now_ms):
            return AppendResult(ErrorCode.INVALID_TIMESTAMP)
        return converted, max_timestamp

    def faults_of(self, batch: memoryview) -> list[RecordFault]:
        """The records that a batch was refused for, if its header is valid."""
        return find_faults(batch, self.config, self._clock.now_ms())

    def append_as_follower(self, batches: memoryview, leader_epoch: int | None = None) -> FollowerAppend:
        """Appends the batches that a fetch from the leader returned; an incomplete one at the end is ignored. Offsets
        and leader epochs stay as they are; with `leader_epoch`, no batch of a later epoch is appended. Batches for the
        same segment are written with one call. OSError as in `append`; batches of earlier writes were appended."""
        self._unsynced.check()
        assert not self.is_truncating
        previous_epoch = self.leader_epochs.epoch_at(self.log_end_offset - 1)
        checked = check_follower_batches(batches, self.log_end_offset, previous_epoch, leader_epoch)
        headers = checked.headers
        now_ms = self._clock.now_ms()
        position = index = 0
        while index < len(headers):
            first = headers[index]
            active = self._segments.active
            if must_roll(active, self.config, first.size_bytes, first.last_offset, first.max_timestamp, now_ms):
                self.roll()
                active = self._segments.active
            run = headers[index : index + count_run(active, self.config, headers[index:], now_ms)]
            position += self._append_run(batches[position:], run)
            index += len(run)
        return checked.result(position)

    def _append_run(self, batches: memoryview, headers: Sequence[BatchHeader]) -> int:
        size_bytes = sum(header.size_bytes for header in headers)
        self._segments.active.append_run(batches[:size_bytes], headers, self.config.index_interval_bytes)
        position = 0
        for header in headers:
            if header.partition_leader_epoch != self.leader_epochs.latest_epoch:
                self.leader_epochs.follow(header.partition_leader_epoch, header.base_offset)
            if header.producer_id >= 0:
                aborted = replay_batch(self.producers, header, batches[position : position + header.size_bytes])
                if aborted is not None:  # indexed before the last stable offset can pass the marker
                    self._segments.active.transaction_index.append(aborted)
            position += header.size_bytes
        self.size_bytes += size_bytes
        self.log_end_offset = headers[-1].last_offset + 1
        return size_bytes

    def append_marker(
        self, marker: EndTransactionMarker, leader_epoch: int, *, transaction_version: int
    ) -> AppendResult:
        """Appends the control batch that ends a transaction of this version, as the leader. OSError as in `append`."""
        self._unsynced.check()
        assert not self.is_truncating
        if (error := self.producers.check_marker(marker, transaction_version)) is not None:
            return AppendResult(error)
        config, now_ms, offset = self.config, self._clock.now_ms(), self.log_end_offset
        batch = build_end_transaction_marker(marker, now_ms, base_offset=offset, leader_epoch=leader_epoch)
        if self._stamps_batches:
            set_append_time(batch, 0, now_ms)
        segment = self._segments.active
        if must_roll(segment, config, len(batch), offset, now_ms, now_ms):
            self.roll()
            segment = self._segments.active
        segment.append(memoryview(batch), offset, now_ms, config.index_interval_bytes)
        if leader_epoch > self.leader_epochs.latest_epoch:
            self.leader_epochs.assign(leader_epoch, offset)
        aborted = self.producers.end_transaction(marker, offset, now_ms)
        if aborted is not None:  # indexed before the last stable offset can pass the marker
            segment.transaction_index.append(aborted)
        self.size_bytes += len(batch)
        self.log_end_offset = offset + 1
        return AppendResult(_NONE, offset, offset, now_ms if self._stamps_batches else NO_TIMESTAMP)

    # Reading

    def read(
        self, fetch_offset: int, max_bytes: int, end_offset: int, *, whole_first_batch: bool
    ) -> FileSlice | ErrorCode | None:
        """Reads from the batch that holds `fetch_offset` to the one that ends before `end_offset`, within one segment.
        The slice may end inside a batch after the first, as in Kafka. A first batch larger than `max_bytes` is returned
        whole with `whole_first_batch`, else not at all: clients take bytes without a whole batch for an error."""
        segment_list = self._segments
        segments = segment_list.segments  # before the log end, which a truncation lowers first
        log_end_offset = self.log_end_offset
        if not self.log_start_offset <= fetch_offset <= log_end_offset:
            return ErrorCode.OFFSET_OUT_OF_RANGE
        if end_offset > log_end_offset:  # noqa: PLR1730 - a call of min() takes longer
            end_offset = log_end_offset
        if fetch_offset >= end_offset:
            return None
        try:
            found = read_segments(segments, fetch_offset, max_bytes, end_offset, whole_first_batch)
        except FileNotFoundError:
            if segments is segment_list.segments:
                raise
        else:
            if segments is segment_list.segments:
                return found
        # Segments were removed, replaced or truncated while this thread read them.
        return self.read(fetch_offset, max_bytes, end_offset, whole_first_batch=whole_first_batch)

    def needs_disk(self, fetch_offset: int) -> bool:
        """Whether finding this offset reads files: then `read` must be called on a worker."""
        active = self._segments.active
        return fetch_offset - active.base_offset < active.recent_batches.first_offset

    def offset_for_timestamp(self, timestamp_ms: int, pause: Pause | None = None) -> TimestampOffset | None:
        """The first record whose timestamp is at least `timestamp_ms`. Blocks."""
        reading = RecordReading(self.config.searched_limit_bytes, pause)
        return search_segments(
            lambda each: find_offset_for_timestamp(each, self.log_start_offset, timestamp_ms, reading),
            lambda: self.segments,
        )

    def max_timestamp_offset(self, pause: Pause | None = None) -> TimestampOffset | None:
        """The first record with the largest timestamp. Blocks."""
        reading = RecordReading(self.config.searched_limit_bytes, pause)
        return search_segments(
            lambda each: find_max_timestamp(each, self.log_start_offset, reading), lambda: self.segments
        )

    def epoch_end_offset(self, leader_epoch: int) -> tuple[int, int]:
        return self.leader_epochs.end_offset(leader_epoch, self.log_end_offset)
