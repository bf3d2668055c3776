"""Whatever happens to a compacted log, and whenever it is killed: what is read is what was appended, less records that
something later with the same key has replaced. A crash between the renames leaves the old segments or the new one."""

import itertools
from collections.abc import Callable

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from odradek.log.cleaned_segment import CLEANED_SUFFIX, SWAP_SUFFIX, discard_unused
from odradek.log.compaction.compactor import CompactionOutcome, compact
from odradek.log.log_config import LogConfig
from odradek.log.partition_log import PartitionLog
from odradek.protocol.compression import Compression
from odradek.protocol.records import Record
from tests.example_counts import examples
from tests.log.batches import EVERYTHING, NOW_MS, append, open_log
from tests.log.compaction.compacted_logs import (
    KeyValue,
    adopt,
    durable_end_offset,
    headers_of,
    job_for,
    keyed_batch,
    records_of,
)
from tests.simulation.simulated_host import Simulation

DIRECTORY = "/data/t-0"
PRODUCER_ID = 5


class Killed(BaseException):
    pass


class CompactedLogModel(RuleBasedStateMachine):
    log: PartitionLog

    @initialize(seed=st.integers(0, 2**32), segment_bytes=st.sampled_from([300, 1000, 1 << 20]))
    def create(self, seed: int, segment_bytes: int) -> None:
        self.simulation = Simulation(seed)
        self.simulation.disk.make_directories("/data")
        self.simulation.disk.sync_directory("/")
        self.config = LogConfig(
            segment_bytes=segment_bytes,
            index_interval_bytes=100,
            is_compacted=True,
            message_timestamp_after_max_ms=EVERYTHING,
        )
        self.records: dict[int, Record] = {}
        self.start_offset = self.end_offset = self.flushed_offset = self.clean_offset = 0
        self.sequence = 0
        self.now_ms = NOW_MS
        self.log = self.open(clean_shutdown=True)
        # From the first recovery point on, what a power failure took differs from what compaction took.
        self.append([(b"a", b"1")], Compression.NONE, is_idempotent=False, rolls=False)
        self.flush()

    def open(self, *, clean_shutdown: bool) -> PartitionLog:
        return open_log(
            self.simulation.host,
            DIRECTORY,
            self.config,
            clean_shutdown=clean_shutdown,
            recovery_point_offset=self.flushed_offset,
            log_start_offset=self.start_offset,
        )

    def teardown(self) -> None:
        if hasattr(self, "simulation"):
            self.simulation.close()

    @rule(
        pairs=st.lists(
            st.tuples(st.sampled_from([b"a", b"b", b"c", b"d"]), st.sampled_from([b"1", b"2" * 30, None])),
            min_size=1,
            max_size=5,
        ),
        compression=st.sampled_from([Compression.NONE, Compression.NONE, Compression.LZ4]),
        is_idempotent=st.booleans(),
        rolls=st.booleans(),
    )
    def append(self, pairs: list[KeyValue], compression: Compression, is_idempotent: bool, rolls: bool) -> None:
        producer = (PRODUCER_ID, 0, self.sequence) if is_idempotent else (-1, -1, -1)
        timestamp = NOW_MS + self.end_offset
        assert append(
            self.log, keyed_batch(pairs, compression=compression, producer=producer, timestamp=timestamp)
        ) == (self.end_offset)
        for key, value in pairs:
            self.records[self.end_offset] = Record(self.end_offset, NOW_MS + self.end_offset, key, value)
            self.end_offset += 1
        self.sequence += len(pairs) if is_idempotent else 0
        if rolls:
            self.log.roll()

    @rule()
    def flush(self) -> None:
        self.log.flush()
        self.flushed_offset = self.end_offset

    @rule(
        later_ms=st.sampled_from([0, 1000, 25 * 3600 * 1000]),
        memory_bytes=st.sampled_from([300, 1 << 20]),
        flushes=st.booleans(),
    )
    def compact(self, later_ms: int, memory_bytes: int, flushes: bool) -> None:
        self.now_ms += later_ms
        if flushes:
            self.flush()
        outcome = self.do_compact(memory_bytes)
        assert outcome.clean_offset >= self.clean_offset
        self.clean_offset = outcome.clean_offset
        before = self.records
        self.take_what_is_there()
        clean = [offset for offset in self.records if self.start_offset <= offset < self.clean_offset]
        kept = [self.records[offset].key for offset in clean]
        assert len(kept) == len(set(kept))
        for offset, record in before.items():
            # An expired tombstone may go, and it shadows nothing any more.
            is_needed = record.value is not None and not self.is_replaced(record, before, self.clean_offset)
            assert offset in self.records or not is_needed or offset < self.start_offset

    def do_compact(self, memory_bytes: int = 1 << 20) -> CompactionOutcome:
        job = job_for(
            self.log,
            end_offset=durable_end_offset(self.log),
            clean_offset=max(self.clean_offset, self.start_offset),
            now_ms=self.now_ms,
            dedupe_buffer_bytes=memory_bytes,
        )
        outcome = adopt(self.log, compact(self.simulation.background_context, job))
        discard_unused(self.simulation.disk, DIRECTORY)
        return outcome

    @precondition(lambda self: len(self.log.segments) > 1)
    @rule(step=st.integers(0, 25), loses_power=st.booleans())
    def die_while_compacting(self, step: int, loses_power: bool) -> None:
        self.flush()
        disk = self.simulation.disk
        rename, countdown = disk.rename, itertools.count()

        def rename_or_die(source: str, target: str) -> None:
            if next(countdown) == step:
                raise Killed
            rename(source, target)

        disk.rename = rename_or_die  # type: ignore[method-assign]  # a crash at this step
        try:
            self.do_compact()
        except Killed:
            pass
        finally:
            disk.rename = rename  # type: ignore[method-assign]
        (self.lose_power if loses_power else self.kill)()

    @rule(chance=st.floats(0, 1))
    def truncate(self, chance: float) -> None:
        first = max(self.start_offset, 1)
        self.log.truncate_to(round(first + chance * (self.end_offset - first)))
        self.end_offset = self.log.log_end_offset
        self.start_offset = min(self.start_offset, self.end_offset)
        assert self.log.log_start_offset == self.start_offset
        self.records = {offset: record for offset, record in self.records.items() if offset < self.end_offset}
        self.flushed_offset = self.log.recovery_point_offset
        self.clean_offset = min(self.clean_offset, self.end_offset)
        self.take_sequence()

    @rule(chance=st.floats(0, 1))
    def delete_records(self, chance: float) -> None:
        self.start_offset = round(self.start_offset + chance * (self.end_offset - self.start_offset))
        self.log.advance_log_start_offset(self.start_offset)

    @rule()
    def reopen_clean(self) -> None:
        self.log.close()
        self.flushed_offset = self.end_offset
        self.simulation.crash()  # a clean close must have left nothing to lose
        self.log = self.open(clean_shutdown=True)

    @rule()
    def kill(self) -> None:
        self.simulation.disk.kill()
        self.reopen_after_crash()

    @rule()
    def lose_power(self) -> None:
        self.simulation.crash()
        self.reopen_after_crash()
        assert self.log.log_end_offset >= max(self.flushed_offset, self.start_offset)
        self.flushed_offset = min(self.flushed_offset, self.log.log_end_offset)
        self.end_offset = self.log.log_end_offset
        self.records = {offset: record for offset, record in self.records.items() if offset < self.end_offset}
        self.clean_offset = min(self.clean_offset, self.end_offset)
        self.take_sequence()

    def reopen_after_crash(self) -> None:
        self.log = self.open(clean_shutdown=False)
        names = self.simulation.disk.list_directory(DIRECTORY)
        assert not [name for name in names if name.endswith((CLEANED_SUFFIX, SWAP_SUFFIX))]
        before = self.records
        self.take_what_is_there()
        end_offset = self.log.log_end_offset
        for offset, record in before.items():
            is_needed = record.value is not None and not self.is_replaced(record, before, end_offset)
            assert offset in self.records or not is_needed or not self.start_offset <= offset < end_offset

    def is_replaced(self, record: Record, among: dict[int, Record], end_offset: int) -> bool:
        return any(record.offset < offset < end_offset and other.key == record.key for offset, other in among.items())

    def take_what_is_there(self) -> None:
        """Nothing new, and nothing changed. Batches are whole: what lies below the start is read with the first."""
        there = {record.offset: record for record in records_of(self.log)}
        assert all(self.records.get(offset) == record for offset, record in there.items())
        self.records = there

    def take_sequence(self) -> None:
        entry = self.log.producers.entries.get(PRODUCER_ID)
        self.sequence = entry.next_sequence if entry else 0

    @invariant()
    def what_is_read_is_what_the_model_holds(self) -> None:
        log = self.log
        assert (log.log_start_offset, log.log_end_offset) == (self.start_offset, self.end_offset)
        assert log.size_bytes == sum(segment.size_bytes for segment in log.segments)
        there = {record.offset: record for record in records_of(log)}
        readable = {offset: record for offset, record in self.records.items() if offset >= self.start_offset}
        assert {offset: record for offset, record in there.items() if offset >= self.start_offset} == readable
        headers = headers_of(log)
        assert all(a.last_offset < b.base_offset for a, b in itertools.pairwise(headers))

    @invariant()
    def a_producer_is_known_by_its_last_batch(self) -> None:
        is_known = any(header.producer_id == PRODUCER_ID for header in headers_of(self.log))
        entry = self.log.producers.entries.get(PRODUCER_ID)
        assert not is_known or (entry is not None and entry.next_sequence == self.sequence)

    @invariant()
    def every_record_is_found_from_every_offset_and_time(self) -> None:
        offsets = sorted(offset for offset in self.records if offset >= self.start_offset)
        for offset in offsets[:: max(1, len(offsets) // 5)]:
            found = self.log.offset_for_timestamp(NOW_MS + offset)
            assert found is not None
            assert found.offset == offset


TestCompactedLog: Callable[[], object] = CompactedLogModel.TestCase
CompactedLogModel.TestCase.settings = settings(
    max_examples=examples(30), stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
)
