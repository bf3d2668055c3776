"""Looking up by time, as ListOffsets does."""

from collections.abc import Callable, Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.log.log_config import LogConfig, TimestampType
from odradek.log.offset_index import OffsetIndex
from odradek.log.segment import Segment
from odradek.log.timestamp_search import RecordReading, find_max_timestamp, find_offset_for_timestamp
from odradek.protocol.compression import Compression
from odradek.protocol.records import RECORDS_BETWEEN_PAUSES, Pause, read_times
from odradek.protocol.varints import Bytes
from tests.log.batches import NOW_MS, append, delete_before, make_batch, open_log
from tests.simulation.simulated_host import Simulation

DIRECTORY = "/data/topic-0"
READING = RecordReading(1 << 20)


@settings(deadline=None)
@given(
    st.lists(st.lists(st.integers(0, 50), min_size=1, max_size=4), max_size=20),
    st.integers(-1, 51),
    st.integers(0, 60),
    st.sampled_from([0, 100, 4096]),
    st.sampled_from([150, 500, 1 << 20]),
    st.booleans(),
)
def test_lookups_by_time_agree_with_a_list(
    batches: list[list[int]], wanted: int, start: int, index_interval: int, segment_bytes: int, reopen: bool
) -> None:
    simulation = Simulation(0)
    config = LogConfig(index_interval_bytes=index_interval, segment_bytes=segment_bytes)
    log = open_log(simulation.host, DIRECTORY, config)
    times = [NOW_MS + age for batch in batches for age in batch]
    for number, batch in enumerate(batches):
        timestamps = [NOW_MS + age for age in batch]
        append(log, make_batch([b""] * len(batch), timestamps=timestamps, compression=Compression(number % 5)), number)
    start = min(start, len(times))
    delete_before(log, start)
    if reopen:
        log.close()
        log = open_log(simulation.host, DIRECTORY, config, log_start_offset=start)
    alive = list(enumerate(times))[start:]
    expected = next(((time, offset) for offset, time in alive if time >= NOW_MS + wanted), None)
    found = log.offset_for_timestamp(NOW_MS + wanted)
    assert (found and (found.timestamp_ms, found.offset)) == expected
    if found:
        assert found.leader_epoch == log.leader_epochs.epoch_at(found.offset)
    simulation.close()


def test_the_largest_timestamp_is_the_first_record_that_has_it(simulation: Simulation) -> None:
    log = open_log(simulation.host, DIRECTORY)
    append(log, make_batch([b""] * 3, timestamps=[NOW_MS, NOW_MS + 9, NOW_MS + 9]), 5)
    append(log, make_batch([b""] * 2, timestamps=[NOW_MS + 9, NOW_MS + 1]), 6)
    assert log.max_timestamp_offset() == (NOW_MS + 9, 1, 5)
    log.roll()
    append(log, make_batch(timestamps=[NOW_MS + 10]), 6)
    assert log.max_timestamp_offset() == (NOW_MS + 10, 5, 6)


def test_records_stamped_by_the_broker_share_the_batches_time(simulation: Simulation) -> None:
    log = open_log(simulation.host, DIRECTORY, LogConfig(message_timestamp_type=TimestampType.LOG_APPEND_TIME))
    append(log, make_batch([b""] * 3, timestamps=[1, 2, 3]))
    simulation.clock.advance(1000)
    append(log, make_batch([b""] * 3, timestamps=[9, 8, 7]))
    now_ms = simulation.clock.now_ms()
    assert log.offset_for_timestamp(now_ms) == (now_ms, 3, 0)
    assert log.offset_for_timestamp(now_ms - 1000) == (now_ms - 1000, 0, 0)
    assert log.max_timestamp_offset() == (now_ms, 3, 0)
    delete_before(log, 4)
    assert log.offset_for_timestamp(0) == (now_ms, 4, 0)


def test_records_without_a_timestamp_are_not_found(simulation: Simulation) -> None:
    log = open_log(simulation.host, DIRECTORY)
    append(log, make_batch(timestamps=[-1]))
    assert log.offset_for_timestamp(0) is None
    assert log.max_timestamp_offset() is None


def test_records_after_the_one_that_is_found_are_not_parsed(
    simulation: Simulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = open_log(simulation.host, DIRECTORY)
    append(log, make_batch([b""] * 1000, timestamps=[NOW_MS] * 1000))
    parsed = []

    def read_and_count(batch: Bytes, limit_bytes: int, pause: Pause | None) -> Iterator[tuple[int, int]]:
        for offset, timestamp in read_times(batch, limit_bytes, pause):
            parsed.append(offset)
            yield offset, timestamp

    monkeypatch.setattr("odradek.log.timestamp_search.read_times", read_and_count)
    assert log.offset_for_timestamp(NOW_MS) == (NOW_MS, 0, 0)
    assert log.max_timestamp_offset() == (NOW_MS, 0, 0)
    assert parsed == [0, 0]


@pytest.mark.parametrize("codec", list(Compression)[1:])
def test_a_batch_over_the_limit_is_found_at_its_start(simulation: Simulation, codec: Compression) -> None:
    """It would take memory that is a multiple of what its producer has sent."""
    log = open_log(simulation.host, DIRECTORY, LogConfig(max_message_bytes=65_536))
    append(log, make_batch(timestamps=[NOW_MS]))
    times = [NOW_MS + 1, NOW_MS + 3, NOW_MS + 2]
    values = [bytes(300_000)] * 3
    append(log, make_batch(values, timestamps=times, compression=codec), 4)
    assert log.offset_for_timestamp(NOW_MS + 2) == (NOW_MS + 3, 1, 4)
    assert log.max_timestamp_offset() == (NOW_MS + 3, 1, 4)
    delete_before(log, 2)
    assert log.offset_for_timestamp(NOW_MS + 2) == (NOW_MS + 3, 2, 4)


def test_a_search_pauses_between_records(simulation: Simulation) -> None:
    log = open_log(simulation.host, DIRECTORY)
    count = 3 * RECORDS_BETWEEN_PAUSES
    append(log, make_batch([b""] * count, timestamps=[*[NOW_MS] * (count - 1), NOW_MS + 1]))
    pauses: list[None] = []
    assert log.offset_for_timestamp(NOW_MS + 1, lambda: pauses.append(None)) == (NOW_MS + 1, count - 1, 0)
    assert len(pauses) == 2


def test_a_batch_is_found_while_its_index_entry_is_written(
    simulation: Simulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a worker sees that searches while the loop is in the middle of an append."""
    log = open_log(simulation.host, DIRECTORY, LogConfig(index_interval_bytes=0))
    seen = []
    write = OffsetIndex.write

    def search_and_write(index: OffsetIndex) -> None:
        seen.append((log.max_timestamp_offset(), log.offset_for_timestamp(NOW_MS + 64)))
        write(index)

    monkeypatch.setattr(OffsetIndex, "write", search_and_write)
    for number in range(65):
        append(log, make_batch(timestamps=[NOW_MS + number]))
    assert seen == [((NOW_MS + 64, 64, 0), (NOW_MS + 64, 64, 0))]


@pytest.mark.parametrize(
    "search",
    [
        lambda found: find_offset_for_timestamp(found, 0, NOW_MS, READING),
        lambda found: find_max_timestamp(found, 0, READING),
    ],
)
def test_a_search_leaves_the_indexes_of_a_segment_that_is_cut(
    simulation: Simulation, search: Callable[[list[Segment]], object]
) -> None:
    """A truncation publishes the segment that it cuts before it has written its indexes."""
    log = open_log(simulation.host, DIRECTORY)
    append(log, make_batch([b"x"], timestamps=[NOW_MS]), 0)
    (cut,) = log.segments
    active = Segment(simulation.host.disk, DIRECTORY, log.log_end_offset)
    active.create()
    search([cut, active])
    assert cut.is_writable
