"""A Hypothesis model of transactions in one partition: several producers, markers of both versions, rolls, flushes, a
high watermark that lags, truncation, deletion, damaged indexes, restarts and crashes. A list of all batches says which
transactions are open, which were aborted, and what a read_committed consumer reads."""

import random
from dataclasses import dataclass

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from odradek.log.aborted_transactions import collect_aborted
from odradek.log.log_config import LogConfig
from odradek.log.transaction_index import TRANSACTION_INDEX_SUFFIX, AbortedTransaction
from odradek.protocol.control_records import ControlRecordType, EndTransactionMarker
from odradek.protocol.errors import ErrorCode
from tests.example_counts import examples
from tests.log.batches import EVERYTHING, NOW_MS, verify
from tests.log.compaction.compacted_logs import keyed_batch
from tests.replica.committed_reading import committed_offsets
from tests.replica.led_partitions import PATH, LedPartition
from tests.simulation.simulated_host import Simulation

PRODUCERS = st.sampled_from([1, 2, 3])


@dataclass
class Written:
    """A batch, or a marker if it has a kind."""

    producer_id: int
    epoch: int
    base_offset: int
    end_offset: int
    next_sequence: int = 0
    is_transactional: bool = False
    kind: ControlRecordType | None = None
    coordinator_epoch: int = -1


@dataclass
class Transaction:
    producer_id: int
    first_offset: int
    marker_offset: int | None = None
    is_aborted: bool = False
    last_stable_offset: int = -1


def transactions_in(batches: list[Written]) -> list[Transaction]:
    """In the order of their begin."""
    open_: dict[int, Transaction] = {}
    found = []
    for batch in batches:
        if batch.kind is not None:
            ended = open_.pop(batch.producer_id, None)
            if ended is not None:
                ended.marker_offset = batch.base_offset
                ended.is_aborted = batch.kind is ControlRecordType.ABORT
                others = [each.first_offset for each in open_.values()]
                ended.last_stable_offset = min(others, default=batch.end_offset)
        elif batch.is_transactional and batch.producer_id not in open_:
            open_[batch.producer_id] = Transaction(batch.producer_id, batch.base_offset)
            found.append(open_[batch.producer_id])
    return found


class TransactionModel(RuleBasedStateMachine):
    @initialize(
        seed=st.integers(0, 2**32),
        segment_bytes=st.sampled_from([400, 1200, 1 << 20]),
        index_interval_bytes=st.sampled_from([0, 200, 4096]),
    )
    def create(self, seed: int, segment_bytes: int, index_interval_bytes: int) -> None:
        self.simulation = Simulation(seed)
        config = LogConfig(
            segment_bytes=segment_bytes,
            index_interval_bytes=index_interval_bytes,
            message_timestamp_after_max_ms=EVERYTHING,
        )
        self.led = LedPartition(self.simulation, config)
        self.simulation.disk.sync_directory("/data")
        self.simulation.disk.sync_directory("/")
        self.batches: list[Written] = []

    def teardown(self) -> None:
        if hasattr(self, "simulation"):
            self.simulation.close()

    @property
    def end_offset(self) -> int:
        return self.batches[-1].end_offset if self.batches else 0

    def last_of(self, producer_id: int) -> Written | None:
        return next((each for each in reversed(self.batches) if each.producer_id == producer_id), None)

    def is_open(self, producer_id: int) -> bool:
        return any(
            each.producer_id == producer_id and each.marker_offset is None for each in transactions_in(self.batches)
        )

    # Writing

    @rule(
        producer_id=PRODUCERS,
        count=st.integers(1, 3),
        size=st.integers(0, 80),
        is_transactional=st.booleans(),
        is_coordinators=st.integers(0, 5).map(lambda number: number == 0),
    )
    def append(self, producer_id: int, count: int, size: int, is_transactional: bool, is_coordinators: bool) -> None:
        last = self.last_of(producer_id)
        epoch, sequence = (last.epoch, last.next_sequence) if last else (0, 0)
        is_transactional = is_transactional or self.is_open(producer_id)
        batch = keyed_batch(
            [(b"k", b"v" * size)] * count,
            producer=(producer_id, epoch, -1 if is_coordinators else sequence),
            is_transactional=is_transactional,
            timestamp=NOW_MS,
        )
        if len(batch) > self.led.config.segment_bytes:
            return
        result = self.led.partition.append(
            batch, 1, is_built_here=is_coordinators, verification=verify(self.led.log, batch)
        )
        assert (result.error, result.base_offset) == (ErrorCode.NONE, self.end_offset)
        next_sequence = 0 if is_coordinators else sequence + count
        self.batches.append(
            Written(
                producer_id,
                epoch,
                result.base_offset,
                result.last_offset + 1,
                next_sequence,
                is_transactional,
                coordinator_epoch=last.coordinator_epoch if last else -1,
            )
        )

    @rule(producer_id=PRODUCERS, kind=st.sampled_from(ControlRecordType), version=st.integers(1, 2))
    def end_transaction(self, producer_id: int, kind: ControlRecordType, version: int) -> None:
        last = self.last_of(producer_id)
        epoch = (last.epoch if last else 0) + version - 1
        next_sequence = last.next_sequence if last and epoch == last.epoch else 0
        marker = EndTransactionMarker(producer_id, epoch, kind, 7)
        result = self.led.partition.append_marker(marker, transaction_version=version)
        assert (result.error, result.base_offset) == (ErrorCode.NONE, self.end_offset)
        self.batches.append(
            Written(producer_id, epoch, result.base_offset, result.base_offset + 1, next_sequence, True, kind, 7)
        )

    @rule(chance=st.randoms(use_true_random=False))
    def commit(self, chance: random.Random) -> None:
        partition = self.led.partition
        before = partition.last_stable_offset
        ends = [each.end_offset for each in self.batches if each.end_offset > partition.high_watermark]
        if ends:
            partition.advance_high_watermark(chance.choice(ends))
            assert partition.last_stable_offset >= before

    @rule()
    def roll(self) -> None:
        self.led.log.roll()

    @rule()
    def flush(self) -> None:
        self.led.log.flush()

    # Losing

    @rule(chance=st.randoms(use_true_random=False))
    def truncate(self, chance: random.Random) -> None:
        partition = self.led.partition
        offset = chance.randint(partition.high_watermark, partition.log.log_end_offset)
        self.led.truncate_to(offset)
        self.batches = [each for each in self.batches if each.end_offset <= offset]
        assert self.led.log.log_end_offset == self.end_offset or not self.batches

    @rule(chance=st.randoms(use_true_random=False))
    def delete_records(self, chance: random.Random) -> None:
        partition = self.led.partition
        offset = chance.randint(partition.log.log_start_offset, partition.high_watermark)
        assert partition.delete_records_before(offset) is ErrorCode.NONE

    @rule(is_damaged=st.booleans(), chance=st.randoms(use_true_random=False))
    def restart(self, is_damaged: bool, chance: random.Random) -> None:
        self.led.log.close()
        if is_damaged:
            self.damage_an_index(chance)
        self.reopen(clean_shutdown=True)

    def damage_an_index(self, chance: random.Random) -> None:
        disk = self.simulation.disk
        names = [name for name in disk.list_directory(PATH) if name.endswith(TRANSACTION_INDEX_SUFFIX)]
        if names:
            path = f"{PATH}/{chance.choice(names)}"
            data = disk.read_file(path)
            disk.replace_file(path, chance.choice([data[:-1], b"\x01" + data[1:], data + data]))

    @rule(is_killed=st.booleans())
    def crash(self, is_killed: bool) -> None:
        """A kill loses nothing that was written; a power loss may lose all that was not synced."""
        if is_killed:
            self.simulation.disk.kill()
        else:
            if self.led.log.recovery_point_offset < self.led.log.log_start_offset:
                self.led.log.flush()  # else a loss of all after the log start would leave an empty log
            self.simulation.crash()
        self.reopen(clean_shutdown=False)

    def reopen(self, *, clean_shutdown: bool) -> None:
        before, partition = self.led.log, self.led.partition
        recovery_point, start, high_watermark = before.recovery_point_offset, before.log_start_offset, 0
        self.led.open(clean_shutdown=clean_shutdown, recovery_point_offset=recovery_point, log_start_offset=start)
        assert recovery_point <= self.led.log.log_end_offset <= before.log_end_offset
        self.batches = [each for each in self.batches if each.end_offset <= self.led.log.log_end_offset]
        # Of a transaction that has ended but whose marker is not committed, a snapshot tells nothing.
        high_watermark = max(partition.high_watermark, self.led.log.log_end_offset)
        self.led.partition.advance_high_watermark(min(high_watermark, self.led.log.log_end_offset))

    # Comparing

    @invariant()
    def transactions_are_known(self) -> None:
        if not hasattr(self, "led"):
            return
        partition, log = self.led.partition, self.led.log
        transactions = transactions_in(self.batches)
        open_ = {each.producer_id: each.first_offset for each in transactions if each.marker_offset is None}
        assert log.producers.transactions.open == open_
        assert list(log.producers.transactions.open.values()) == sorted(open_.values()), "the oldest first"
        unstable = [
            each.first_offset
            for each in transactions
            if each.marker_offset is None or each.marker_offset >= partition.high_watermark
        ]
        stable_offset = max(min([partition.high_watermark, *unstable]), log.log_start_offset)
        assert partition.last_stable_offset == stable_offset

    @invariant()
    def producers_are_known(self) -> None:
        if not hasattr(self, "led"):
            return
        for producer_id in (1, 2, 3):
            last = self.last_of(producer_id)
            entry = self.led.log.producers.entries.get(producer_id)
            assert (last is None) == (entry is None)
            if last is not None and entry is not None:
                known = (entry.epoch, entry.next_sequence, entry.coordinator_epoch)
                assert known == (last.epoch, last.next_sequence, last.coordinator_epoch)

    @rule(chance=st.randoms(use_true_random=False))
    def aborted_transactions_of_a_range_are_listed(self, chance: random.Random) -> None:
        log, stable_offset = self.led.log, self.led.partition.last_stable_offset
        first, end = sorted(chance.randint(log.log_start_offset, stable_offset) for _ in range(2))
        aborted = [
            AbortedTransaction(each.first_offset, each.producer_id, each.marker_offset, each.last_stable_offset)
            for each in transactions_in(self.batches)
            if each.is_aborted and each.marker_offset is not None
        ]
        wanted = [each for each in aborted if each.last_offset >= first and each.first_offset < end]
        assert collect_aborted(log.segments, first, end) == sorted(wanted, key=lambda each: each.last_offset)

    @rule(max_bytes=st.sampled_from([1, 150, 500, 1 << 20]))
    def a_consumer_reads_what_was_committed(self, max_bytes: int) -> None:
        partition = self.led.partition
        transactions = transactions_in(self.batches)
        aborted = [each for each in transactions if each.is_aborted]
        wanted: list[int] = []
        for batch in self.batches:
            is_aborted = batch.is_transactional and any(
                each.producer_id == batch.producer_id
                and each.marker_offset is not None
                and each.first_offset <= batch.base_offset < each.marker_offset
                for each in aborted
            )
            if batch.kind is None and not is_aborted and batch.end_offset <= partition.last_stable_offset:
                wanted += range(batch.base_offset, batch.end_offset)
        start = partition.log.log_start_offset
        assert committed_offsets(partition, max_bytes) == [each for each in wanted if each >= start]


TestTransactions = TransactionModel.TestCase
TestTransactions.settings = settings(
    max_examples=examples(50), stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
)
