"""Which segments have been kept long enough: Kafka's rules, one by one."""

import pytest

from odradek.log.log_config import LogConfig, TimestampType
from odradek.log.partition_log import PartitionLog
from odradek.log.retention import expire_to, expired_offset, may_have_expired, remove_expired_aside
from odradek.protocol.batch import HEADER_SIZE_BYTES, has_valid_checksum, read_batch_header, write_batch
from odradek.protocol.compression import Compression
from odradek.protocol.errors import ErrorCode
from tests.log.batches import EVERYTHING, NOW_MS, append, make_batch, open_log, read_all
from tests.simulation.simulated_host import Simulation

DIRECTORY = "/data/topic-0"
HOUR_MS = 3_600_000
BATCH_BYTES = len(make_batch(timestamps=[NOW_MS]))


def fill(simulation: Simulation, ages_h: list[float | None], config: LogConfig | None = None) -> PartitionLog:
    """A segment for each age, of one record; None is a record without a timestamp. The last one is active."""
    log = open_log(simulation.host, DIRECTORY, config or LogConfig(retention_ms=10 * HOUR_MS))
    for age_h in ages_h:
        log.roll()
        append(log, make_batch(timestamps=[-1 if age_h is None else NOW_MS - round(age_h * HOUR_MS)]))
    return log


def expire(log: PartitionLog, now_ms: int = NOW_MS, committed_offset: int = EVERYTHING) -> list[int]:
    """The offsets that are left, after everything that a round does."""
    offset = expired_offset(log, min(committed_offset, log.log_end_offset), now_ms)
    assert offset is None or may_have_expired(log)
    if offset is not None:
        expire_to(log, offset)
        log.remove_segments_before_start(EVERYTHING)
    assert len(read_all(log)) == log.log_end_offset - log.log_start_offset
    return list(range(log.log_start_offset, log.log_end_offset))


@pytest.mark.parametrize(
    ("ages_h", "left"),
    [
        ([12, 11, 9, 1], [2, 3]),
        ([12, 9, 11, 1], [1, 2, 3]),  # a younger segment before an old one keeps it
        ([12, 11, 10.5], []),  # the active one too, when it is old
        ([10, 9], [0, 1]),  # exactly as old as allowed
        ([12, -1], [1]),  # a timestamp of the future
        ([None, None], [0, 1]),  # as old as their files, which were just written
    ],
)
def test_by_age(simulation: Simulation, ages_h: list[float | None], left: list[int]) -> None:
    log = fill(simulation, ages_h)
    assert expire(log) == left
    assert append(log, make_batch()) == len(ages_h), "no offset is given twice"


def test_without_timestamps_the_file_tells_the_age(simulation: Simulation) -> None:
    log = fill(simulation, [None, None])
    simulation.clock.advance(10 * HOUR_MS)
    now_ms = simulation.clock.now_ms()
    assert expire(log, now_ms) == [0, 1]
    assert expire(log, now_ms + 1) == []


def with_times(batch: memoryview, base_timestamp: int, max_timestamp: int) -> memoryview:
    header = read_batch_header(batch)._replace(base_timestamp=base_timestamp, max_timestamp=max_timestamp)
    return memoryview(write_batch(header, batch[HEADER_SIZE_BYTES:]))


def test_stored_largest_timestamp_of_zero_does_not_tell_the_age(simulation: Simulation) -> None:
    log = fill(simulation, [])
    log.append_as_follower(with_times(memoryview(make_batch()), -1, 0))
    assert expire(log, simulation.clock.now_ms() + 9 * HOUR_MS) == [0]


@pytest.mark.parametrize(
    "config",
    [
        LogConfig(retention_ms=10 * HOUR_MS),
        LogConfig(retention_ms=10 * HOUR_MS, is_compacted=True),
        LogConfig(retention_ms=10 * HOUR_MS, compression_type="zstd"),
    ],
    ids=["kept as sent", "compacted", "compressed again"],
)
@pytest.mark.parametrize(
    ("timestamps", "false_maximum", "true_maximum"),
    [([-1, -1], 0, -1), ([-1, -1], NOW_MS, -1), ([-1, NOW_MS], 0, NOW_MS), ([NOW_MS, NOW_MS + 7], 0, NOW_MS + 7)],
)
def test_a_doubtful_largest_timestamp_is_read_from_the_records(
    simulation: Simulation, config: LogConfig, timestamps: list[int], false_maximum: int, true_maximum: int
) -> None:
    """librdkafka writes 0 for records without timestamps, by which they would be from 1970."""
    for codec in Compression:
        log = open_log(simulation.host, f"{DIRECTORY}{codec}", config)
        batch = make_batch([b"a", b"b"], timestamps=timestamps, compression=codec)
        append(log, with_times(batch, timestamps[0], false_maximum))
        (stored,) = read_all(log)
        header = read_batch_header(stored)
        assert header.max_timestamp == true_maximum
        assert has_valid_checksum(stored, 0, header)
        assert log.segments[-1].load_max_timestamp() == true_maximum
        assert expired_offset(log, log.log_end_offset, NOW_MS) is None


def test_largest_timestamp_that_was_read_is_judged_by_the_limits_of_the_topic(simulation: Simulation) -> None:
    log = open_log(simulation.host, DIRECTORY, LogConfig(message_timestamp_before_max_ms=HOUR_MS))
    times = {(-1, -1): ErrorCode.NONE, (-1, NOW_MS - HOUR_MS - 1): ErrorCode.INVALID_TIMESTAMP}
    times |= {(-1, NOW_MS + HOUR_MS + 1): ErrorCode.INVALID_TIMESTAMP, (-1, NOW_MS): ErrorCode.NONE}
    for timestamps, error in times.items():
        batch = with_times(make_batch([b"a", b"b"], timestamps=timestamps), -1, 0)
        assert log.append(batch, 0).error is error
    overflow = with_times(make_batch([b"a", b"b"], timestamps=[NOW_MS, NOW_MS + 1]), 2**63 - 1, NOW_MS)
    assert log.append(overflow, 0).error is not ErrorCode.NONE
    assert log.log_end_offset == 4


def test_topic_that_stamps_its_batches_does_not_read_their_timestamps(simulation: Simulation) -> None:
    config = LogConfig(message_timestamp_type=TimestampType.LOG_APPEND_TIME)
    log = open_log(simulation.host, DIRECTORY, config)
    append(log, with_times(make_batch(), -1, 0))
    assert log.segments[-1].load_max_timestamp() == simulation.clock.now_ms()


def test_minus_one_keeps_records_for_ever(simulation: Simulation) -> None:
    log = fill(simulation, [10_000, 9_000], LogConfig(retention_ms=-1))
    assert not may_have_expired(log)
    assert expire(log) == [0, 1]


def test_a_compacted_topic_keeps_its_old_records(simulation: Simulation) -> None:
    log = fill(simulation, [10_000, 9_000], LogConfig(is_deleted=False, is_compacted=True))
    assert expire(log) == [0, 1]


@pytest.mark.parametrize(
    ("kept_segments", "surplus_bytes", "left"), [(2, 0, [2, 3]), (2, 1, [1, 2, 3]), (4, 0, [0, 1, 2, 3]), (0, 0, [])]
)
def test_by_size(simulation: Simulation, kept_segments: int, surplus_bytes: int, left: list[int]) -> None:
    """A segment goes when the rest is still as large as allowed."""
    each = len(make_batch())
    limit = kept_segments * each + surplus_bytes
    log = fill(simulation, [0, 0, 0, 0], LogConfig(retention_ms=-1, retention_bytes=limit))
    assert expire(log) == left


def test_what_is_not_committed_stays(simulation: Simulation) -> None:
    log = fill(simulation, [12, 12, 12])
    assert expire(log, committed_offset=1) == [1, 2]
    assert expire(log, committed_offset=1) == [1, 2]
    assert expire(log) == []


def test_an_empty_log_is_left_alone(simulation: Simulation) -> None:
    log = fill(simulation, [12])
    assert expire(log) == []
    names = simulation.disk.list_directory(DIRECTORY)
    assert not may_have_expired(log)
    assert expire(log, NOW_MS + 10_000 * HOUR_MS) == []
    assert simulation.disk.list_directory(DIRECTORY) == names


def test_what_was_appended_meanwhile_keeps_the_active_segment(simulation: Simulation) -> None:
    log = fill(simulation, [12, 11])
    offset = expired_offset(log, log.log_end_offset, NOW_MS)
    append(log, make_batch())
    assert offset == 2
    expire_to(log, offset)
    assert (log.log_start_offset, log.log_end_offset) == (1, 3)


def test_readers_before_the_start_are_reported(simulation: Simulation) -> None:
    log = fill(simulation, [12, 1])
    assert expire(log) == [1]
    assert log.read(0, 100, EVERYTHING, whole_first_batch=True) is ErrorCode.OFFSET_OUT_OF_RANGE


def test_producers_of_expired_records_are_still_known(simulation: Simulation) -> None:
    log = open_log(simulation.host, DIRECTORY, LogConfig(retention_ms=HOUR_MS))
    append(log, make_batch(timestamps=[NOW_MS - 2 * HOUR_MS], producer=(5, 0, 0)))
    assert expire(log) == []
    simulation.disk.kill()
    log = open_log(simulation.host, DIRECTORY, clean_shutdown=False)
    assert log.log_start_offset == log.log_end_offset == 1
    repeated = log.append(make_batch(producer=(5, 0, 0)), 0)
    assert (repeated.is_duplicate, repeated.base_offset) == (True, 0)


def test_after_a_power_failure_the_end_is_where_it_was(simulation: Simulation) -> None:
    """Even when no name of a file was kept: the start was written down before files went."""
    for seed in range(20):
        simulation.chance.seed(seed)
        log = open_log(simulation.host, f"/data/topic-{seed}", LogConfig(retention_ms=HOUR_MS))
        append(log, make_batch(timestamps=[NOW_MS - 2 * HOUR_MS]))
        log.flush()
        offset = expired_offset(log, 1, NOW_MS)
        assert offset is not None
        expire_to(log, offset)
        log.remove_segments_before_start(1)
        simulation.crash()
        log = open_log(simulation.host, f"/data/topic-{seed}", clean_shutdown=False, log_start_offset=1)
        assert (log.log_start_offset, log.log_end_offset) == (1, 1)


@pytest.mark.parametrize(
    ("config", "left"),
    [
        (LogConfig(retention_ms=HOUR_MS), []),
        (LogConfig(retention_ms=3 * HOUR_MS), [1, 2]),
        (LogConfig(retention_ms=-1), [1, 2]),
        (LogConfig(retention_bytes=0), []),
        (LogConfig(retention_bytes=BATCH_BYTES), [2]),
        (LogConfig(retention_ms=HOUR_MS, is_deleted=False), [1, 2]),
    ],
)
def test_segments_that_recovery_has_set_aside_expire_with_the_log(
    simulation: Simulation, config: LogConfig, left: list[int]
) -> None:
    """After a power failure in the first of three segments, of one batch each."""
    fill(simulation, [0, 0, 0]).flush()
    simulation.disk.open(f"{DIRECTORY}/{0:020d}.log").truncate(BATCH_BYTES - 1)
    log = open_log(simulation.host, DIRECTORY, config, clean_shutdown=False)
    assert log.aside_names == [f"{offset:020d}.log.aside" for offset in (1, 2)]
    remove_expired_aside(log, simulation.disk, simulation.clock.now_ms() + 2 * HOUR_MS)
    assert [int(name[:20]) for name in log.aside_names] == left
    found = [name for name in simulation.disk.list_directory(DIRECTORY) if name.endswith(".aside")]
    assert sorted(found) == sorted(log.aside_names)
