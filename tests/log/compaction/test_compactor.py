"""A compacted log holds the latest value of every key, where it was: against a dict, in one round and in many."""

from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from odradek.log.compaction.compactor import compact
from odradek.log.compaction.segment_reader import DamagedSegment
from odradek.log.log_config import LogConfig
from odradek.log.partition_log import PartitionLog
from odradek.protocol.compression import Compression
from odradek.protocol.records import Record
from tests.log.batches import EVERYTHING, NOW_MS, append, open_log
from tests.log.compaction.compacted_logs import (
    DAY_MS,
    KeyValue,
    compact_log,
    headers_of,
    job_for,
    keyed_batch,
    records_of,
)
from tests.simulation.simulated_host import Simulation

CONFIG = LogConfig(
    is_compacted=True, is_deleted=False, message_timestamp_after_max_ms=EVERYTHING, index_interval_bytes=100
)
PAIRS = st.lists(
    st.tuples(st.sampled_from([b"a", b"b", b"c", b"d", b"e" * 70]), st.one_of(st.none(), st.binary(max_size=40))),
    min_size=1,
    max_size=8,
)
BATCHES = st.lists(st.tuples(PAIRS, st.sampled_from(Compression), st.booleans()), min_size=1, max_size=12)


def fill(log: PartitionLog, *batches: list[KeyValue], compression: Compression = Compression.NONE) -> None:
    """A batch each, in a segment of their own that is closed."""
    for pairs in batches:
        append(log, keyed_batch(pairs, compression=compression, timestamp=NOW_MS + log.log_end_offset))
    log.roll()


def latest(records: list[Record]) -> list[Record]:
    """What a dict would hold, in the order of the log."""
    by_key = {record.key: record for record in records}
    return sorted(by_key.values(), key=lambda record: record.offset)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(BATCHES, st.integers(0, 12), st.sampled_from([400, 1 << 20]), st.sampled_from([500, 2_000, 1 << 20]))
def test_the_latest_record_of_every_key_stays(
    batches: list[tuple[list[KeyValue], Compression, bool]], split: int, segment_bytes: int, memory_bytes: int
) -> None:
    """In as many rounds as the memory needs, over two stretches of dirt; what is written to stays as it is."""
    simulation = Simulation(1)
    try:
        simulation.disk.make_directories("/data")
        config = LogConfig(
            is_compacted=True, segment_bytes=segment_bytes, index_interval_bytes=100,
            message_timestamp_after_max_ms=EVERYTHING,
        )  # fmt: skip
        log = open_log(simulation.host, "/data/t-0", config)
        clean_offset = 0
        for stretch in (batches[:split], batches[split:]):
            for pairs, compression, rolls in stretch:
                batch = keyed_batch(pairs, compression=compression, timestamp=NOW_MS + log.log_end_offset)
                if len(batch) <= segment_bytes:
                    append(log, batch)
                if rolls:
                    log.roll()
            active_offset = log.segments[-1].base_offset
            everything = list(records_of(log))
            end_offset = log.log_end_offset
            while clean_offset < active_offset:
                job = job_for(log, clean_offset=clean_offset, dedupe_buffer_bytes=memory_bytes)
                outcome = compact_log(simulation, log, job)
                assert outcome.clean_offset > clean_offset
                clean_offset = outcome.clean_offset
            kept = latest([record for record in everything if record.offset < active_offset])
            kept += [record for record in everything if record.offset >= active_offset]
            assert list(records_of(log)) == kept
            assert log.log_end_offset == end_offset
            headers = headers_of(log)
            assert all(earlier.last_offset < later.base_offset for earlier, later in pairwise(headers))
        reopened = open_log(simulation.host, "/data/t-0", config, clean_shutdown=False)
        assert list(records_of(reopened)) == kept
        assert reopened.log_end_offset == end_offset
    finally:
        simulation.close()


def test_segments_become_fewer_and_end_where_the_next_begins(simulation: Simulation) -> None:
    log = open_log(simulation.host, "/data/t-0", CONFIG)
    for number in range(5):
        fill(log, [(b"key", b"%d" % number), (b"other", b"x")])
    append(log, keyed_batch([(b"key", b"last")]))
    outcome = compact_log(simulation, log)
    assert [segment.base_offset for segment in log.segments] == [0, 10]
    assert [(record.offset, record.key) for record in records_of(log)] == [(8, b"key"), (9, b"other"), (10, b"key")]
    assert (outcome.records_read, outcome.records_kept, outcome.clean_offset) == (10, 2, 10)
    assert log.size_bytes == sum(segment.size_bytes for segment in log.segments)
    fill(log, [(b"other", b"y")])
    compact_log(simulation, log, job_for(log, clean_offset=10))
    # All of the older segment's records are superseded by later ones: its end is still known.
    first, second = log.segments
    assert (first.base_offset, second.base_offset) == (0, 12)
    assert headers_of(log)[-1].last_offset == 11
    assert [record.offset for record in records_of(log)] == [10, 11]


def test_an_untouched_batch_is_copied_byte_for_byte(simulation: Simulation) -> None:
    log = open_log(simulation.host, "/data/t-0", CONFIG)
    fill(log, [(b"a", b"1"), (b"b", b"2")], [(b"c", b"3")])
    before = simulation.disk.read_file("/data/t-0/00000000000000000000.log")
    compact_log(simulation, log)
    assert simulation.disk.read_file("/data/t-0/00000000000000000000.log") == before


@pytest.mark.parametrize("compression", Compression)
def test_what_is_cut_stays_in_its_codec(simulation: Simulation, compression: Compression) -> None:
    log = open_log(simulation.host, "/data/t-0", CONFIG)
    fill(log, [(b"a", b"1" * 50), (b"b", b"2" * 50)], [(b"a", b"3" * 50)], compression=compression)
    compact_log(simulation, log)
    assert [(header.compression, header.record_count) for header in headers_of(log)] == [(compression, 1)] * 2
    assert [(header.base_offset, header.last_offset) for header in headers_of(log)] == [(0, 1), (2, 2)]
    assert [(record.offset, record.value) for record in records_of(log)] == [(1, b"2" * 50), (2, b"3" * 50)]


def test_a_tombstone_goes_when_its_time_has_come_and_not_before(simulation: Simulation) -> None:
    log = open_log(simulation.host, "/data/t-0", CONFIG)
    fill(log, [(b"a", b"1"), (b"b", b"2")], [(b"a", None), (b"c", b"3")])
    times = {record.offset: record.timestamp for record in records_of(log)}
    outcome = compact_log(simulation, log, job_for(log, now_ms=NOW_MS))
    assert [(record.offset, record.value) for record in records_of(log)] == [(1, b"2"), (2, None), (3, b"3")]
    first, second = headers_of(log)
    assert (first.delete_horizon_ms, second.delete_horizon_ms) == (None, NOW_MS + DAY_MS)
    assert second.max_timestamp == times[3]
    assert all(record.timestamp == times[record.offset] for record in records_of(log))
    fill(log, [(b"d", b"4")])
    for now_ms, offsets in ((NOW_MS + DAY_MS - 1, [1, 2, 3, 4]), (NOW_MS + DAY_MS, [1, 3, 4])):
        compact_log(simulation, log, job_for(log, clean_offset=outcome.clean_offset, now_ms=now_ms))
        assert [record.offset for record in records_of(log)] == offsets
        assert all(record.timestamp == times.get(record.offset, record.timestamp) for record in records_of(log))


def test_the_deadline_of_a_tombstone_does_not_move(simulation: Simulation) -> None:
    log = open_log(simulation.host, "/data/t-0", CONFIG)
    fill(log, [(b"a", None), (b"b", None), (b"c", b"1")])
    compact_log(simulation, log, job_for(log, now_ms=NOW_MS))
    fill(log, [(b"b", b"2")])
    compact_log(simulation, log, job_for(log, now_ms=NOW_MS + 5))
    assert headers_of(log)[0].delete_horizon_ms == NOW_MS + DAY_MS
    assert [(record.offset, record.value) for record in records_of(log)] == [(0, None), (2, b"1"), (3, b"2")]


def test_a_producer_goes_on_after_all_its_records_are_gone(simulation: Simulation) -> None:
    log = open_log(simulation.host, "/data/t-0", CONFIG)
    append(log, keyed_batch([(b"a", b"1"), (b"b", b"1")], producer=(7, 0, 0)))
    append(log, keyed_batch([(b"a", b"2"), (b"b", b"2")], producer=(7, 0, 2)))
    fill(log, [(b"a", b"3"), (b"b", b"3")])
    compact_log(simulation, log)
    emptied = headers_of(log)[0]
    assert (emptied.base_offset, emptied.last_offset, emptied.record_count) == (2, 3, 0)
    assert (emptied.producer_id, emptied.base_sequence, emptied.base_timestamp) == (7, 2, -1)
    reopened = open_log(simulation.host, "/data/t-0", CONFIG, clean_shutdown=False)
    repeated = reopened.append(keyed_batch([(b"a", b"2"), (b"b", b"2")], producer=(7, 0, 2)), 0)
    assert (repeated.is_duplicate, repeated.base_offset) == (True, 2)
    assert append(reopened, keyed_batch([(b"z", b"4")], producer=(7, 0, 4))) == 6


def test_records_without_a_key_go(simulation: Simulation) -> None:
    """A topic was not always compacted."""
    log = open_log(simulation.host, "/data/t-0", LogConfig(message_timestamp_after_max_ms=EVERYTHING))
    fill(log, [(None, b"1"), (b"a", b"2")], [(None, b"3")])
    compact_log(simulation, log)
    assert [record.offset for record in records_of(log)] == [1]
    fill(log, [(b"b", b"4")])
    compact_log(simulation, log, job_for(log, clean_offset=3))
    assert [record.offset for record in records_of(log)] == [1, 3]


def test_dirt_that_begins_inside_a_batch_is_compared_by_offset(simulation: Simulation) -> None:
    """As after DeleteRecords: what lies before is kept unless something later replaces it."""
    log = open_log(simulation.host, "/data/t-0", CONFIG)
    fill(log, [(b"a", b"1"), (b"b", b"2"), (b"a", b"3"), (b"c", b"4")], [(b"b", b"5")])
    compact_log(simulation, log, job_for(log, clean_offset=2))
    assert [(record.offset, record.key) for record in records_of(log)] == [(2, b"a"), (3, b"c"), (4, b"b")]


def test_damage_stops_the_work_and_changes_nothing(simulation: Simulation) -> None:
    log = open_log(simulation.host, "/data/t-0", CONFIG)
    fill(log, [(b"a", b"1")], [(b"a", b"2")])
    path = "/data/t-0/00000000000000000000.log"
    whole = simulation.disk.read_file(path)
    damaged = whole[:-3] + b"!" + whole[-2:]
    simulation.disk.open(path).write_at(damaged, 0)
    with pytest.raises(DamagedSegment, match="wrong checksum"):
        list(compact(simulation.background_context, job_for(log)))
    assert simulation.disk.read_file(path) == damaged
    simulation.disk.open(path).truncate(len(whole) - 5)
    with pytest.raises(DamagedSegment, match="no whole batch"):
        list(compact(simulation.background_context, job_for(log)))


def test_work_is_held_back_to_the_rate_that_is_allowed(simulation: Simulation) -> None:
    log = open_log(simulation.host, "/data/t-0", CONFIG)
    for number in range(20):
        fill(log, [(b"%d" % number, b"x" * 1000)])
    paused: list[float] = []
    clock_ms = 0.0

    def pause(duration_ms: float) -> None:
        nonlocal clock_ms
        clock_ms += duration_ms
        paused.append(duration_ms)

    from dataclasses import replace

    from odradek.host.background import BackgroundContext

    room = BackgroundContext(simulation.disk, lambda: clock_ms, pause)
    list(compact(room, replace(job_for(log), io_bytes_per_second=10_000.0)))
    moved_bytes = 3 * sum(segment.size_bytes for segment in log.segments)  # read twice, written once
    assert paused
    assert clock_ms == pytest.approx(moved_bytes / 10_000 * 1000, rel=0.1)
