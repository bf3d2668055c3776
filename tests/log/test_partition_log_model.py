"""A log does what a list in memory does: whatever is appended, rolled, truncated, deleted, compacted, closed, killed or
cut off by a power failure. What was flushed stays; what was not may be lost from the end on, and only from there."""

from contextlib import suppress

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from odradek.host.slices import FileSlice
from odradek.log.log_config import LogConfig
from odradek.log.partition_log import PartitionLog
from odradek.log.retention import expire_to, expired_offset
from odradek.protocol.errors import ErrorCode
from tests.example_counts import examples
from tests.log.batches import EVERYTHING, NOW_MS, append, make_batch, open_log, read_all, split
from tests.log.compaction.compacted_logs import compact_log, durable_end_offset, job_for, keyed_batch
from tests.simulation.simulated_host import Simulation

DIRECTORY = "/data/topic-0"
RETENTION_MS = 500


class PartitionLogModel(RuleBasedStateMachine):
    log: PartitionLog

    @initialize(
        seed=st.integers(0, 2**32),
        segment_bytes=st.sampled_from([400, 1500, 6000, 1 << 20]),
        index_interval_bytes=st.sampled_from([0, 100, 500, 4096]),
        index_bytes=st.sampled_from([64, 10 << 20]),
    )
    def create(self, seed: int, segment_bytes: int, index_interval_bytes: int, index_bytes: int) -> None:
        self.simulation = Simulation(seed)
        self.simulation.disk.make_directories("/data")
        self.simulation.disk.sync_directory("/")
        self.config = LogConfig(
            segment_bytes=segment_bytes,
            index_interval_bytes=index_interval_bytes,
            segment_index_bytes=index_bytes,
            message_timestamp_after_max_ms=EVERYTHING,
            retention_ms=RETENTION_MS,
        )
        self.batches: list[tuple[int, int, bytes]] = []  # base offset, last offset, bytes
        self.start_offset = self.end_offset = 0
        self.flushed_offset = 0
        self.sequence = 0
        self.epoch = 0
        self.log = self.open(clean_shutdown=True)

    def open(self, *, clean_shutdown: bool) -> PartitionLog:
        # The owner checkpoints what the log says: the recovery point lags, the start offset does not.
        return open_log(
            self.simulation.host,
            DIRECTORY,
            self.config,
            clean_shutdown=clean_shutdown,
            recovery_point_offset=self.flushed_offset,
            log_start_offset=self.start_offset,
        )

    def close(self) -> None:
        self.log.close()
        self.simulation.disk.sync_directory("/data")  # as the mark of a clean shutdown does, without which none is
        self.flushed_offset = self.end_offset

    def teardown(self) -> None:
        if hasattr(self, "simulation"):
            self.simulation.close()

    @rule(
        count=st.integers(1, 5),
        size=st.integers(0, 300),
        age=st.integers(-1000, 1000),
        new_epoch=st.booleans(),
        is_idempotent=st.booleans(),
    )
    def append(self, count: int, size: int, age: int, new_epoch: bool, is_idempotent: bool) -> None:
        self.epoch += new_epoch
        producer = (5, 0, self.sequence) if is_idempotent else (-1, -1, -1)
        pairs = [(b"%d" % (self.end_offset + index), b"x" * size) for index in range(count)]
        batch = keyed_batch(pairs, timestamp=NOW_MS + age, producer=producer)
        if len(batch) > self.config.segment_bytes:
            assert self.log.append(batch, self.epoch).error is ErrorCode.RECORD_LIST_TOO_LARGE
            return
        assert append(self.log, batch, self.epoch) == self.end_offset
        self.batches.append((self.end_offset, self.end_offset + count - 1, bytes(batch)))
        self.end_offset += count
        self.sequence += count if is_idempotent else 0

    @rule()
    def roll(self) -> None:
        self.log.roll()

    @rule()
    def flush(self) -> None:
        self.log.flush()
        assert self.log.recovery_point_offset == self.end_offset
        self.flushed_offset = self.end_offset

    @rule(chance=st.floats(0, 1))
    def truncate(self, chance: float) -> None:
        offset = round(self.start_offset + chance * (self.end_offset - self.start_offset))
        self.log.truncate_to(offset)
        self.keep_before(offset)
        self.flushed_offset = min(self.flushed_offset, self.end_offset)
        self.rewind_sequence()

    @rule(offset=st.integers(0, 1000))
    def truncate_fully(self, offset: int) -> None:
        self.log.truncate_fully_and_start_at(offset)
        self.batches.clear()
        self.start_offset = self.end_offset = offset
        self.flushed_offset = min(self.flushed_offset, offset)
        self.sequence = 0

    @rule(chance=st.floats(0, 1))
    def delete_records(self, chance: float) -> None:
        self.start_offset = round(self.start_offset + chance * (self.end_offset - self.start_offset))
        self.log.advance_log_start_offset(self.start_offset)

    @rule(later_ms=st.integers(-2000, 2000))
    def retain(self, later_ms: int) -> None:
        """Only records that are old enough go, and no segment stays whose records all are."""
        now_ms = NOW_MS + later_ms
        offset = expired_offset(self.log, self.end_offset, now_ms)
        if offset is not None:
            expire_to(self.log, offset)
        start_offset = self.log.log_start_offset
        assert self.start_offset <= start_offset <= self.end_offset
        gone = [data for _, last, data in self.batches if self.start_offset <= last < start_offset]
        assert all(now_ms - _max_timestamp(data) > RETENTION_MS for data in gone)
        assert expired_offset(self.log, self.end_offset, now_ms) is None
        self.start_offset = start_offset

    @rule(dedupe_buffer_bytes=st.sampled_from([300, 1 << 20]))
    def compact(self, dedupe_buffer_bytes: int) -> None:
        """All keys differ, so all records stay; but files are rewritten, and small ones are merged."""
        end_offset = durable_end_offset(self.log)
        clean_offset = min(self.start_offset, end_offset)
        compact_log(
            self.simulation,
            self.log,
            job_for(
                self.log,
                clean_offset=clean_offset,
                end_offset=end_offset,
                dedupe_buffer_bytes=dedupe_buffer_bytes,
            ),
        )

    @rule(limit=st.integers(1, 3))
    def remove_segments_before_start(self, limit: int) -> None:
        before = len(self.log.segments)
        assert self.log.remove_segments_before_start(limit) == before - len(self.log.segments)

    @rule()
    def remove_files(self) -> None:
        for path in self.log.take_removed_files():
            with suppress(FileNotFoundError):  # a segment of the same name was removed before
                self.simulation.disk.remove(path)

    @rule()
    def reopen_clean(self) -> None:
        self.close()
        self.simulation.crash()  # a clean close must have left nothing to lose
        self.log = self.open(clean_shutdown=True)

    @rule(chance=st.floats(0, 1))
    def reopen_without_a_file(self, chance: float) -> None:
        """Files were removed that can be rebuilt: an index, a snapshot, the leader epochs."""
        self.close()
        names = [name for name in self.simulation.disk.list_directory(DIRECTORY) if not name.endswith(".log")]
        if names:
            self.simulation.disk.remove(f"{DIRECTORY}/{names[min(int(chance * len(names)), len(names) - 1)]}")
        self.log = self.open(clean_shutdown=True)
        self.rewind_sequence()

    @rule()
    def kill(self) -> None:
        self.simulation.disk.kill()
        self.log = self.open(clean_shutdown=False)

    @rule()
    def lose_power(self) -> None:
        self.simulation.crash()
        self.log = self.open(clean_shutdown=False)
        end_offset = self.log.log_end_offset
        assert end_offset >= max(self.flushed_offset, self.start_offset)
        if end_offset < self.end_offset:
            assert end_offset == self.start_offset or any(base == end_offset for base, _, _ in self.batches)
            self.batches = [batch for batch in self.batches if batch[1] < end_offset]
            self.end_offset = end_offset
        self.rewind_sequence()

    def keep_before(self, offset: int) -> None:
        """What a truncation leaves: batches stay whole or go."""
        cut = [base for base, last, _ in self.batches if base < offset <= last]
        self.end_offset = min([offset, *cut])
        self.batches = [batch for batch in self.batches if batch[1] < offset]
        assert self.log.log_end_offset == self.end_offset
        self.start_offset = min(self.start_offset, self.end_offset)

    def rewind_sequence(self) -> None:
        entry = self.log.producers.entries.get(5)
        self.sequence = entry.next_sequence if entry else 0

    @precondition(lambda self: self.end_offset > self.start_offset)
    @rule(chance=st.floats(0, 1), max_bytes=st.integers(1, 3000), is_whole=st.booleans(), end=st.floats(0, 1))
    def read(self, chance: float, max_bytes: int, is_whole: bool, end: float) -> None:
        offset = self.start_offset + int(chance * (self.end_offset - self.start_offset - 1))
        boundaries = [base for base, _, _ in self.batches if base > offset] + [self.end_offset]
        end_offset = boundaries[int(end * (len(boundaries) - 1))]
        expected = b"".join(data for _, last, data in self.batches if offset <= last < end_offset)
        piece = self.log.read(offset, max_bytes, end_offset, whole_first_batch=is_whole)
        first = next(data for _, last, data in self.batches if last >= offset)
        if not is_whole and len(first) > max_bytes:
            assert piece is None
            return
        assert isinstance(piece, FileSlice)
        data = piece.read()
        assert len(piece) == len(data)
        assert expected.startswith(data)
        assert len(first) <= len(data) <= max(max_bytes, len(first))
        header, _ = next(split(data))
        assert header.base_offset <= offset <= header.last_offset

    @invariant()
    def the_log_says_what_the_model_says(self) -> None:
        log = self.log
        assert (log.log_start_offset, log.log_end_offset) == (self.start_offset, self.end_offset)
        assert log.size_bytes == sum(segment.size_bytes for segment in log.segments)
        assert log.recovery_point_offset <= log.log_end_offset
        assert log.read(self.end_offset, 1, self.end_offset, whole_first_batch=True) is None
        assert log.read(self.end_offset + 1, 1, EVERYTHING, whole_first_batch=True) is ErrorCode.OFFSET_OUT_OF_RANGE
        assert log.read(self.start_offset - 1, 1, EVERYTHING, whole_first_batch=True) is ErrorCode.OFFSET_OUT_OF_RANGE
        assert read_all(log) == [data for _, last, data in self.batches if last >= self.start_offset]

    @invariant()
    def producers_are_known_by_what_the_log_holds(self) -> None:
        headers = [next(split(data))[0] for _, last, data in self.batches if last >= self.start_offset]
        known = [header for header in headers if header.producer_id == 5]
        if known:
            batches = self.log.producers.entries[5].batches
            expected = [(header.base_offset, header.base_sequence) for header in known][-len(batches) :]
            assert [(batch.base_offset, batch.base_sequence) for batch in batches][-len(expected) :] == expected
            repeated = self.log.append(
                make_batch([b""] * known[-1].record_count, producer=(5, 0, known[-1].base_sequence)), 0
            )
            assert (repeated.is_duplicate, repeated.base_offset) == (True, known[-1].base_offset)

    @invariant()
    def indexes_and_epochs_lead_to_the_right_batches(self) -> None:
        log = self.log
        alive = [batch for batch in self.batches if batch[1] >= self.start_offset]
        for base_offset, last_offset, data in alive:
            header = next(split(data))[0]
            assert log.leader_epochs.epoch_at(max(base_offset, self.start_offset)) >= header.partition_leader_epoch
            assert log.epoch_end_offset(header.partition_leader_epoch)[1] > last_offset
        largest = max((next(split(data))[0].max_timestamp for _, _, data in alive), default=None)
        found = log.max_timestamp_offset()
        if largest is None:
            return
        assert found is not None
        assert found.timestamp_ms >= largest
        by_time = log.offset_for_timestamp(largest)
        assert by_time is not None
        assert by_time.timestamp_ms >= largest
        assert by_time.offset >= self.start_offset
        assert log.offset_for_timestamp(found.timestamp_ms + 1) is None


def _max_timestamp(batch: bytes) -> int:
    return next(split(batch))[0].max_timestamp


TestPartitionLog = PartitionLogModel.TestCase
TestPartitionLog.settings = settings(
    max_examples=examples(30), stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
)
