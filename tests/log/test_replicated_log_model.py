"""Two logs, one of which leads and the other follows, by whatever fetches, leader changes, truncations and crashes:
when the follower has caught up, both hold the same batches, and the same follows from them."""

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from odradek.host.slices import FileSlice
from odradek.log.aborted_transactions import collect_aborted
from odradek.log.log_config import LogConfig
from odradek.log.partition_log import PartitionLog
from odradek.log.producer_entry import ProducerEntry
from odradek.protocol.batch import read_batch_header
from odradek.protocol.compression import Compression
from odradek.protocol.control_records import ControlRecordType, EndTransactionMarker
from odradek.protocol.errors import ErrorCode
from tests.example_counts import examples
from tests.log.batches import EVERYTHING, NOW_MS, append, open_log, read_all
from tests.log.compaction.compacted_logs import keyed_batch
from tests.simulation.simulated_host import Simulation

DIRECTORIES = ("/data/leader-0", "/data/follower-0")
LARGE = 1 << 20


class ReplicatedLogModel(RuleBasedStateMachine):
    leader: PartitionLog
    follower: PartitionLog

    @initialize(
        seed=st.integers(0, 2**32),
        segment_bytes=st.tuples(*[st.sampled_from([400, 1500, LARGE])] * 2),
        index_interval_bytes=st.sampled_from([0, 100, 4096]),
        index_bytes=st.sampled_from([64, 10 << 20]),
        segment_ms=st.sampled_from([50, EVERYTHING]),
    )
    def create(
        self,
        seed: int,
        segment_bytes: tuple[int, int],
        index_interval_bytes: int,
        index_bytes: int,
        segment_ms: int,
    ) -> None:
        self.simulation = Simulation(seed)
        self.simulation.disk.make_directories("/data")
        self.simulation.disk.sync_directory("/")
        self.configs = {
            directory: LogConfig(
                segment_bytes=size_bytes,
                index_interval_bytes=index_interval_bytes,
                segment_index_bytes=index_bytes,
                segment_ms=segment_ms,
                message_timestamp_after_max_ms=EVERYTHING,
            )
            for directory, size_bytes in zip(DIRECTORIES, segment_bytes, strict=True)
        }
        self.rolls_alike = segment_bytes[0] == segment_bytes[1]
        self.leader, self.follower = (self.open(directory, clean_shutdown=True) for directory in DIRECTORIES)
        self.epoch = 0

    def teardown(self) -> None:
        if hasattr(self, "simulation"):
            self.simulation.close()

    def open(self, directory: str, *, clean_shutdown: bool, recovery_point: int = 0, start: int = 0) -> PartitionLog:
        return open_log(
            self.simulation.host,
            directory,
            self.configs[directory],
            clean_shutdown=clean_shutdown,
            recovery_point_offset=recovery_point,
            log_start_offset=start,
        )

    @rule(
        count=st.integers(1, 4),
        size=st.integers(0, 200),
        age=st.integers(-100, 100),
        compression=st.sampled_from(Compression),
        producer_id=st.sampled_from([-1, 5, 6]),
        is_transactional=st.booleans(),
    )
    def append(
        self, count: int, size: int, age: int, compression: Compression, producer_id: int, is_transactional: bool
    ) -> None:
        epoch, sequence = self.producer(producer_id)
        batch = keyed_batch(
            [(b"%d" % index, b"x" * size) for index in range(count)],
            timestamp=NOW_MS + age,
            compression=compression,
            producer=(producer_id, epoch, sequence),
            is_transactional=producer_id in self.leader.producers.transactions.open
            or (is_transactional and producer_id >= 0),
        )
        if len(batch) <= self.leader.config.segment_bytes:
            append(self.leader, batch, self.epoch)

    def producer(self, producer_id: int) -> tuple[int, int]:
        """The epoch and the sequence number of its next batch."""
        if producer_id < 0:
            return -1, -1
        entry = self.leader.producers.entries.get(producer_id)
        return (entry.epoch, entry.next_sequence) if entry else (0, 0)

    @rule(
        producer_id=st.sampled_from([5, 6, 7]),
        epoch_change=st.integers(0, 1),
        kind=st.sampled_from(ControlRecordType),
        coordinator_epoch=st.integers(0, 3),
    )
    def end_transaction(
        self, producer_id: int, epoch_change: int, kind: ControlRecordType, coordinator_epoch: int
    ) -> None:
        epoch = self.producer(producer_id)[0] + epoch_change
        offset = self.leader.log_end_offset
        result = self.leader.append_marker(
            EndTransactionMarker(producer_id, epoch, kind, coordinator_epoch), self.epoch, transaction_version=1
        )
        if result.error is not ErrorCode.NONE:
            assert result.error is ErrorCode.TRANSACTION_COORDINATOR_FENCED
            return
        assert (result.base_offset, self.leader.log_end_offset) == (offset, offset + 1)
        assert self.leader.producers.entries[producer_id].current_txn_first_offset == -1

    @rule(max_bytes=st.lists(st.integers(1, 2000), min_size=1, max_size=4))
    def fetch(self, max_bytes: list[int]) -> None:
        """Several reads make one response when each but the last ends with a whole batch."""
        data = b""
        offset = self.follower.log_end_offset
        for size_bytes in max_bytes:
            piece = self.leader.read(offset, size_bytes, self.leader.log_end_offset, whole_first_batch=True)
            if piece is None:
                break
            assert isinstance(piece, FileSlice)
            data += piece.read()
            whole_bytes, offset = _whole_batches(data)
            if whole_bytes != len(data):
                break
        result = self.follower.append_as_follower(memoryview(data), self.epoch)
        assert (result.error, result.size_bytes) == (ErrorCode.NONE, _whole_batches(data)[0])
        assert self.follower.log_end_offset == offset

    @rule()
    def roll(self) -> None:
        self.rolls_alike = False
        self.leader.roll()

    @rule()
    def flush(self) -> None:
        self.follower.flush()
        assert self.follower.recovery_point_offset == self.follower.log_end_offset

    @rule(appends=st.booleans())
    def change_leader(self, appends: bool) -> None:
        """The follower, which may lag, becomes the leader; the old leader truncates to where the histories part."""
        self.leader, self.follower = self.follower, self.leader
        self.epoch += 1
        self.leader.leader_epochs.assign(self.epoch, self.leader.log_end_offset)
        if appends:
            append(self.leader, keyed_batch([(b"first", b"of the epoch")]), self.epoch)
        for _ in range(self.epoch + 1):
            latest = self.follower.leader_epochs.latest_epoch
            epoch, end_offset = self.leader.epoch_end_offset(latest)
            if latest < 0 or (epoch == latest and end_offset >= self.follower.log_end_offset):
                break
            own_end_offset = self.follower.epoch_end_offset(epoch)[1] if epoch >= 0 else 0
            self.follower.truncate_to(min(end_offset, own_end_offset) if epoch >= 0 else 0)
            self.rolls_alike = False
            assert self.follower.recovery_point_offset <= self.follower.log_end_offset
        else:
            raise AssertionError("each truncation removes an epoch that the leader does not have")
        assert read_all(self.leader)[: len(read_all(self.follower))] == read_all(self.follower)

    @rule(chance=st.floats(0, 1))
    def truncate_follower(self, chance: float) -> None:
        """Its owner may truncate more than it must."""
        self.follower.truncate_to(round(chance * self.follower.log_end_offset))
        self.rolls_alike = False

    @rule()
    def start_follower_again(self) -> None:
        self.follower.truncate_fully_and_start_at(self.leader.log_start_offset)
        self.rolls_alike = False

    @rule(is_killed=st.booleans())
    def crash_follower(self, is_killed: bool) -> None:
        """The recovery point is that of the checkpoint, which a truncation lowers before the next append."""
        recovery_point, end_offset = self.follower.recovery_point_offset, self.follower.log_end_offset
        self.leader.flush()
        directories = self.leader.directory, self.follower.directory
        if is_killed:
            self.simulation.disk.kill()
        else:
            self.simulation.crash()
        self.leader, self.follower = (
            self.open(directory, clean_shutdown=False, recovery_point=recovery_point) for directory in directories
        )
        assert recovery_point <= self.follower.log_end_offset <= end_offset
        self.rolls_alike = False

    @precondition(lambda self: self.leader.log_end_offset > 0)
    @rule(max_bytes=st.integers(1, 3000), is_reopened=st.booleans())
    def catch_up(self, max_bytes: int, is_reopened: bool) -> None:
        while self.follower.log_end_offset < self.leader.log_end_offset:
            self.fetch([max_bytes])
        if is_reopened:
            for log in (self.leader, self.follower):
                log.close()
            self.leader, self.follower = (
                self.open(log.directory, clean_shutdown=True) for log in (self.leader, self.follower)
            )
        self.check_equality()

    def check_equality(self) -> None:
        leader, follower = self.leader, self.follower
        batches = read_all(leader)
        assert read_all(follower) == batches
        assert (follower.log_start_offset, follower.size_bytes) == (leader.log_start_offset, leader.size_bytes)
        assert _epochs_with_batches(follower) == _epochs_with_batches(leader)
        assert follower.max_timestamp_offset() == leader.max_timestamp_offset()
        for timestamp_ms in range(NOW_MS - 101, NOW_MS + 106, 23):
            assert follower.offset_for_timestamp(timestamp_ms) == leader.offset_for_timestamp(timestamp_ms)
        for offset in range(leader.log_end_offset):
            assert _batch_at(follower, offset) == _batch_at(leader, offset)
        self.check_producers()
        if self.rolls_alike:
            for name in self.simulation.disk.list_directory(leader.directory):
                if name.endswith((".log", ".index", ".timeindex", ".txnindex")):
                    path = f"{follower.directory}/{name}"
                    assert self.simulation.disk.read_file(path) == self.simulation.disk.read_file(
                        f"{leader.directory}/{name}"
                    )

    def check_producers(self) -> None:
        leader, follower = self.leader.producers.entries, self.follower.producers.entries
        assert set(follower) == set(leader)
        assert self.follower.producers.transactions.open == self.leader.producers.transactions.open
        end_offset = self.leader.log_end_offset
        followed, led = (collect_aborted(each.segments, 0, end_offset) for each in (self.follower, self.leader))
        assert followed == led
        for producer_id, entry in leader.items():
            assert _without_batches(follower[producer_id]) == _without_batches(entry)
            # State that was loaded from a snapshot has only the last batch of each producer, and for its timestamp that
            # of the producer's last marker: Kafka's snapshots have one timestamp for both.
            known, copied = ([each[:3] for each in some.batches] for some in (entry, follower[producer_id]))
            common = min(len(known), len(copied))
            assert common or not (known or copied)
            assert known[len(known) - common :] == copied[len(copied) - common :]


def _whole_batches(data: bytes) -> tuple[int, int]:
    """The bytes of the whole batches, and the offset after them."""
    position = offset = 0
    while position + 61 <= len(data):
        header = read_batch_header(data, position)
        if position + header.size_bytes > len(data):
            break
        position += header.size_bytes
        offset = header.last_offset + 1
    return position, offset


def _batch_at(log: PartitionLog, offset: int) -> bytes:
    piece = log.read(offset, 1, log.log_end_offset, whole_first_batch=True)
    assert isinstance(piece, FileSlice)
    return piece.read()


def _epochs_with_batches(log: PartitionLog) -> list[tuple[int, int]]:
    return [entry for entry in log.leader_epochs.entries if entry.start_offset < log.log_end_offset]


def _without_batches(entry: ProducerEntry) -> list[object]:
    return [getattr(entry, name) for name in ProducerEntry.__slots__ if name != "batches"]


TestReplicatedLog = ReplicatedLogModel.TestCase
TestReplicatedLog.settings = settings(
    max_examples=examples(50), stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
)
