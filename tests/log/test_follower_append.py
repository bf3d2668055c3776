"""A follower's log is a copy of the leader's: what is appended to it, and what is refused."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.host.slices import FileSlice
from odradek.log.log_config import LogConfig, TimestampType
from odradek.log.partition_log import PartitionLog
from odradek.protocol.batch import assign_offset, read_batch_header
from odradek.protocol.control_records import ControlRecordType, EndTransactionMarker, build_end_transaction_marker
from odradek.protocol.errors import ErrorCode
from tests.example_counts import examples
from tests.log.batches import EVERYTHING, NOW_MS, append, make_batch, open_log, read_all
from tests.log.compaction.compacted_logs import compact_log, headers_of, keyed_batch
from tests.simulation.simulated_host import Simulation

LEADER, FOLLOWER = "/data/leader-0", "/data/follower-0"


def stored_batch(
    base_offset: int, epoch: int = 0, count: int = 1, producer: tuple[int, int, int] = (-1, -1, -1)
) -> bytes:
    """As a leader's log has it."""
    batch = make_batch([b"x"] * count, producer=producer)
    assign_offset(batch, 0, base_offset, epoch)
    return bytes(batch)


def everything_in(log: PartitionLog) -> bytes:
    return b"".join(read_all(log))


def batch_at(log: PartitionLog, offset: int) -> bytes | ErrorCode | None:
    piece = log.read(offset, 1, log.log_end_offset, whole_first_batch=True)
    return piece.read() if isinstance(piece, FileSlice) else piece


@pytest.fixture
def follower(simulation: Simulation) -> PartitionLog:
    return open_log(simulation.host, FOLLOWER)


def test_offsets_and_epochs_are_the_leaders(follower: PartitionLog) -> None:
    batches = [stored_batch(0, 3, 2), stored_batch(2, 3), stored_batch(3, 5)]
    result = follower.append_as_follower(memoryview(b"".join(batches)))
    assert (result.error, result.batch_count, result.size_bytes) == (ErrorCode.NONE, 3, sum(map(len, batches)))
    assert read_all(follower) == batches
    assert (follower.log_end_offset, follower.size_bytes) == (4, sum(map(len, batches)))
    assert follower.leader_epochs.entries == ((3, 0), (5, 3))


def test_the_bytes_of_the_response_may_be_read_only(follower: PartitionLog) -> None:
    assert follower.append_as_follower(memoryview(stored_batch(0)).toreadonly()).error is ErrorCode.NONE


@pytest.mark.parametrize("missing_bytes", [1, 50, len(stored_batch(1)) - 1])
def test_an_incomplete_batch_at_the_end_is_ignored(follower: PartitionLog, missing_bytes: int) -> None:
    whole, cut = stored_batch(0), stored_batch(1)[:-missing_bytes]
    assert follower.append_as_follower(memoryview(whole + cut))[:2] == (ErrorCode.NONE, 1)
    assert read_all(follower) == [whole]
    assert follower.append_as_follower(memoryview(cut))[:3] == (ErrorCode.NONE, 0, 0)
    assert follower.append_as_follower(memoryview(b""))[:3] == (ErrorCode.NONE, 0, 0)


def test_gaps_that_compaction_left_are_kept(simulation: Simulation, follower: PartitionLog) -> None:
    leader = open_log(simulation.host, LEADER, LogConfig(is_compacted=True, segment_bytes=600))
    for number in range(40):
        append(leader, keyed_batch([(b"%d" % (number % 3), b"x" * 50)], timestamp=NOW_MS), number // 10)
    leader.roll()
    leader.flush()
    compact_log(simulation, leader)
    kept = [header.base_offset for header in headers_of(leader)]
    assert len(kept) < 20
    assert follower.append_as_follower(memoryview(everything_in(leader))).error is ErrorCode.NONE
    assert read_all(follower) == read_all(leader)
    for offset in range(40):
        assert batch_at(follower, offset) == batch_at(leader, offset)


def test_an_empty_log_may_start_anywhere(follower: PartitionLog) -> None:
    follower.truncate_fully_and_start_at(1000)
    assert follower.append_as_follower(memoryview(stored_batch(1000) + stored_batch(1001))).error is ErrorCode.NONE
    assert (follower.log_start_offset, follower.log_end_offset) == (1000, 1002)


@pytest.mark.parametrize(("base_offset", "count"), [(4, 1), (4, 3), (0, 1)])
def test_a_batch_that_begins_before_the_log_end_is_refused(
    follower: PartitionLog, base_offset: int, count: int
) -> None:
    follower.append_as_follower(memoryview(stored_batch(0, count=5)))
    result = follower.append_as_follower(memoryview(stored_batch(base_offset, count=count) + stored_batch(7)))
    assert result == (ErrorCode.OFFSET_OUT_OF_RANGE, 0, 0, base_offset, base_offset + count - 1)
    assert follower.log_end_offset == 5


def test_what_comes_before_a_refused_batch_is_appended(follower: PartitionLog) -> None:
    first, damaged = stored_batch(0, 1), bytearray(stored_batch(1, 1))
    damaged[-1] ^= 1
    for refused, error in [
        (bytes(damaged), ErrorCode.CORRUPT_MESSAGE),
        (stored_batch(1, 1)[:16] + b"\x01" + stored_batch(1, 1)[17:], ErrorCode.CORRUPT_MESSAGE),
        (stored_batch(1, 1)[:8] + b"\x00\x00\x00\x01" + stored_batch(1, 1)[12:], ErrorCode.CORRUPT_MESSAGE),
        (stored_batch(0, 1), ErrorCode.OFFSET_OUT_OF_RANGE),
        (stored_batch(1, 0), ErrorCode.FENCED_LEADER_EPOCH),
        (stored_batch(1, 8), ErrorCode.UNKNOWN_LEADER_EPOCH),
    ]:
        follower.truncate_fully_and_start_at(0)
        result = follower.append_as_follower(memoryview(first + refused + stored_batch(2, 9)), leader_epoch=7)
        assert (result.error, result.batch_count, result.size_bytes) == (error, 1, len(first))
        assert (follower.log_end_offset, read_all(follower)) == (1, [first])


def test_an_epoch_without_batches_gives_way_to_the_leaders(follower: PartitionLog) -> None:
    """This replica led in epoch 7 and wrote nothing; the leader of epoch 8 has batches of epoch 6 at that offset."""
    follower.append_as_follower(memoryview(stored_batch(0, 6)))
    follower.leader_epochs.assign(7, 1)
    assert follower.append_as_follower(memoryview(stored_batch(1, 6) + stored_batch(2, 8))).error is ErrorCode.NONE
    assert follower.leader_epochs.entries == ((6, 0), (8, 2))


def test_a_batch_larger_than_a_segment_gets_a_segment_of_its_own(simulation: Simulation) -> None:
    """The leader's topic configuration may have been larger when the batch was written."""
    follower = open_log(simulation.host, FOLLOWER, LogConfig(segment_bytes=200, max_message_bytes=10))
    batches = [stored_batch(0), stored_batch(1, count=100), stored_batch(101)]
    assert follower.append_as_follower(memoryview(b"".join(batches))).error is ErrorCode.NONE
    assert [segment.base_offset for segment in follower.segments] == [0, 1, 101]
    assert read_all(follower) == batches


def test_batches_of_one_segment_are_written_with_one_call(
    simulation: Simulation, follower: PartitionLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    writes: list[int] = []
    file_class = type(follower.segments[-1].file)
    write_at = file_class.write_at

    def count_write(file: object, data: memoryview, position: int) -> None:
        writes.append(len(data))
        write_at(file, data, position)  # type: ignore[arg-type]  # the class of the simulated disk

    monkeypatch.setattr(file_class, "write_at", count_write)
    data = b"".join(stored_batch(offset) for offset in range(100))
    follower.append_as_follower(memoryview(data))
    assert writes == [len(data)]


def test_a_failed_write_leaves_what_was_appended_before(simulation: Simulation) -> None:
    follower = open_log(simulation.host, FOLLOWER, LogConfig(segment_bytes=250))
    batches = [stored_batch(offset, offset, producer=(1, 0, offset)) for offset in range(6)]
    follower.append_as_follower(memoryview(b"".join(batches[:3])))
    simulation.disk.capacity_bytes = EVERYTHING
    simulation.disk.capacity_bytes -= simulation.disk.room_bytes() - 100
    end_offset = follower.log_end_offset
    with pytest.raises(OSError, match="No space"):
        follower.append_as_follower(memoryview(b"".join(batches[3:])))
    simulation.disk.capacity_bytes = None
    appended = follower.log_end_offset
    assert end_offset <= appended < 6
    assert follower.leader_epochs.latest_epoch == follower.producers.entries[1].next_sequence - 1 == appended - 1
    assert read_all(follower) == batches[:appended]
    assert follower.append_as_follower(memoryview(b"".join(batches[appended:]))).error is ErrorCode.NONE
    assert read_all(follower) == batches


BATCHES = st.lists(
    st.tuples(st.integers(0, 120), st.integers(-60, 60), st.sampled_from([-1, 1, 2]), st.booleans(), st.integers(0, 1)),
    min_size=1,
    max_size=60,
)


@settings(max_examples=examples(60), deadline=None)
@given(
    BATCHES,
    st.sampled_from([300, 1200, 1 << 20]),
    st.sampled_from([0, 150, 4096]),
    st.sampled_from([48, 1 << 20]),
    st.sampled_from([30, EVERYTHING]),
    st.integers(1, 60),
)
def test_the_files_are_those_of_the_leader(
    batches: list[tuple[int, int, int, bool, int]],
    segment_bytes: int,
    index_interval_bytes: int,
    index_bytes: int,
    segment_ms: int,
    batches_per_fetch: int,
) -> None:
    """With the same configuration segments begin at the same batches, whichever batches one call appends."""
    simulation = Simulation(0)
    config = LogConfig(
        segment_bytes=segment_bytes,
        index_interval_bytes=index_interval_bytes,
        segment_index_bytes=index_bytes,
        segment_ms=segment_ms,
    )
    leader, follower = (open_log(simulation.host, path, config) for path in (LEADER, FOLLOWER))
    epoch = 0
    for size, age, producer_id, is_transactional, epoch_change in batches:
        epoch += epoch_change
        entry = leader.producers.entries.get(producer_id)
        sequence = -1 if producer_id < 0 else entry.next_sequence if entry else 0
        producer = (producer_id, -1 if producer_id < 0 else 0, sequence)
        batch = keyed_batch(
            [(b"key", b"x" * size)],
            timestamp=NOW_MS + age,
            producer=producer,
            is_transactional=producer_id in leader.producers.transactions.open
            or (is_transactional and producer_id >= 0),
        )
        append(leader, batch, epoch)
        if is_transactional and entry is not None and size % 2:
            leader.append_marker(
                EndTransactionMarker(producer_id, 0, ControlRecordType.ABORT, epoch), epoch, transaction_version=1
            )
    stored = read_all(leader)
    for first in range(0, len(stored), batches_per_fetch):
        data = b"".join(stored[first : first + batches_per_fetch])
        assert follower.append_as_follower(memoryview(data)).error is ErrorCode.NONE
    assert follower.producers.entries == leader.producers.entries
    assert follower.producers.transactions.open == leader.producers.transactions.open
    assert follower.producers.transactions.ended == leader.producers.transactions.ended
    assert follower.leader_epochs.entries == leader.leader_epochs.entries
    for log in (leader, follower):
        log.close()
    assert simulation.disk.list_directory(FOLLOWER) == simulation.disk.list_directory(LEADER)
    for name in simulation.disk.list_directory(LEADER):
        contents = [simulation.disk.read_file(f"{path}/{name}") for path in (FOLLOWER, LEADER)]
        assert contents[0] == contents[1], name
    simulation.close()


def test_a_marker_is_appended_at_the_log_end_in_the_current_epoch(simulation: Simulation) -> None:
    leader = open_log(simulation.host, LEADER)
    append(leader, keyed_batch([(b"k", b"v")], producer=(9, 2, 0), is_transactional=True), 4)
    assert leader.producers.entries[9].current_txn_first_offset == 0
    marker = EndTransactionMarker(9, 2, ControlRecordType.COMMIT, coordinator_epoch=6)
    result = leader.append_marker(marker, 5, transaction_version=1)
    assert result == (ErrorCode.NONE, 1, 1, -1, False)
    now_ms = simulation.host.clock.now_ms()
    assert read_all(leader)[1] == build_end_transaction_marker(marker, now_ms, base_offset=1, leader_epoch=5)
    assert leader.leader_epochs.entries == ((4, 0), (5, 1))
    assert leader.producers.entries[9].current_txn_first_offset == -1
    older = leader.append_marker(marker._replace(producer_epoch=1), 5, transaction_version=1)
    fenced = leader.append_marker(marker._replace(coordinator_epoch=5), 5, transaction_version=1)
    assert [older.error, fenced.error] == [
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.TRANSACTION_COORDINATOR_FENCED,
    ]
    assert leader.log_end_offset == 2


def test_a_marker_takes_the_append_time_of_its_topic(simulation: Simulation) -> None:
    leader = open_log(simulation.host, LEADER, LogConfig(message_timestamp_type=TimestampType.LOG_APPEND_TIME))
    result = leader.append_marker(EndTransactionMarker(9, 2, ControlRecordType.ABORT, 0), 0, transaction_version=1)
    header = read_batch_header(read_all(leader)[0])
    assert result.log_append_time_ms == header.max_timestamp == simulation.host.clock.now_ms()
    assert header.uses_log_append_time
