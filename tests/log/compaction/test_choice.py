"""Which log is compacted, and which of its segments: by dirt, by age, and never the one that is written to."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from odradek.log.compaction.choice import Cleanable, assess, choose_first_dirty_offset
from odradek.log.log_config import LogConfig
from odradek.log.partition_log import PartitionLog
from tests.log.batches import EVERYTHING, NOW_MS, append, open_log
from tests.log.compaction.compacted_logs import keyed_batch
from tests.simulation.simulated_host import Simulation

CONFIG = LogConfig(is_compacted=True, message_timestamp_after_max_ms=EVERYTHING)
HOUR_MS = 3600 * 1000


@pytest.fixture
def log() -> Iterator[PartitionLog]:
    """Four closed segments of two records, an hour apart, and one that is written to."""
    simulation = Simulation(1)
    simulation.disk.make_directories("/data")
    log = open_log(simulation.host, "/data/t-0", CONFIG)
    for hour in range(5):
        append(log, keyed_batch([(b"a", b"1"), (b"b", b"2")], timestamp=NOW_MS + hour * HOUR_MS))
        if hour < 4:
            log.roll()
    yield log
    simulation.close()


def judge(
    log: PartitionLog, config: LogConfig = CONFIG, *, dirty: int = 0, safe: int = 100, now_ms: int = NOW_MS
) -> Cleanable:
    return assess(log.segments, config, first_dirty_offset=dirty, safe_offset=safe, now_ms=now_ms)


def test_everything_but_the_active_segment_is_cleanable(log: PartitionLog) -> None:
    found = judge(log)
    assert (found.first_dirty_offset, found.end_offset, found.clean_bytes) == (0, 8, 0)
    assert found.dirty_bytes == sum(segment.size_bytes for segment in log.segments[:-1])
    assert found.dirty_ratio == 1.0
    assert found.is_worth_compacting(CONFIG)


@pytest.mark.parametrize(("dirty", "ratio"), [(2, 0.75), (4, 0.5), (6, 0.25), (8, 0.0)])
def test_the_ratio_is_dirty_bytes_of_all_that_could_be_cleaned(log: PartitionLog, dirty: int, ratio: float) -> None:
    found = judge(log, dirty=dirty)
    assert found.dirty_ratio == ratio
    assert found.is_worth_compacting(CONFIG) == (ratio > 0.5)
    eager = replace(CONFIG, min_cleanable_dirty_ratio=0.0)
    assert found.is_worth_compacting(eager) == (ratio > 0)


def test_a_segment_that_is_partly_clean_is_dirty(log: PartitionLog) -> None:
    size = log.segments[0].size_bytes
    assert judge(log, dirty=3)[2:4] == (2 * size, 3 * size)


@pytest.mark.parametrize(("safe", "end"), [(8, 8), (7, 6), (6, 6), (5, 4), (1, 0), (0, 0)])
def test_what_is_not_safe_waits_with_its_whole_segment(log: PartitionLog, safe: int, end: int) -> None:
    assert judge(log, safe=safe).end_offset == end


@pytest.mark.parametrize(("lag_hours", "end"), [(1, 6), (2, 4), (100, 0)])
def test_young_records_wait(log: PartitionLog, lag_hours: int, end: int) -> None:
    """As old as its youngest record is a segment."""
    config = replace(CONFIG, min_compaction_lag_ms=lag_hours * HOUR_MS)
    assert judge(log, config, now_ms=NOW_MS + 3 * HOUR_MS + 2).end_offset == end


def test_a_record_that_waits_too_long_makes_its_log_worth_it(log: PartitionLog) -> None:
    config = replace(CONFIG, max_compaction_lag_ms=2 * HOUR_MS, min_cleanable_dirty_ratio=1.0)
    for now_ms, dirty, is_overdue in [
        (NOW_MS + 2 * HOUR_MS, 0, False),
        (NOW_MS + 2 * HOUR_MS + 10, 0, True),
        (NOW_MS + 2 * HOUR_MS + 10, 2, False),
        (NOW_MS + 9 * HOUR_MS, 8, False),
    ]:
        found = judge(log, config, dirty=dirty, now_ms=now_ms)
        assert (found.is_overdue, found.is_worth_compacting(config)) == (is_overdue, is_overdue)


@pytest.mark.parametrize(
    ("clean", "start", "end", "first"),
    [(None, 3, 9, 3), (5, 3, 9, 5), (9, 3, 9, 9), (2, 3, 9, 3), (10, 3, 9, 3)],
)
def test_a_checkpoint_outside_the_log_is_ignored(clean: int | None, start: int, end: int, first: int) -> None:
    assert choose_first_dirty_offset(clean, start, end) == first
