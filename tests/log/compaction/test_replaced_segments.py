"""Readers on workers, and a segment that takes the place of the one they are reading: what they get is all old or all
new, whatever they had opened when it happened."""

from collections.abc import Callable

import pytest

from odradek.host.slices import FileSlice
from odradek.log.compaction.compactor import CleanedGroup, compact
from odradek.log.log_config import LogConfig
from odradek.log.partition_log import PartitionLog
from odradek.log.segment import Segment
from tests.log.batches import EVERYTHING, NOW_MS, append, open_log, split
from tests.log.compaction.compacted_logs import compact_log, job_for, keyed_batch, records_of
from tests.simulation.simulated_disk import SimulatedFile
from tests.simulation.simulated_host import Simulation

CONFIG = LogConfig(
    is_compacted=True, message_timestamp_after_max_ms=EVERYTHING, index_interval_bytes=0, segment_bytes=3000
)
OPENS = 4  # at most so many files are opened by one read


def fill(simulation: Simulation) -> PartitionLog:
    log = open_log(simulation.host, "/data/t-0", CONFIG)
    while len(log.segments) < 4:
        offset = log.log_end_offset
        append(log, keyed_batch([(b"%d" % (offset % 7), b"x" * (offset % 90))], timestamp=NOW_MS + offset))
    for segment in log.segments:
        if segment is not log.segments[-1]:
            segment.release()
    return log


def swap_at(simulation: Simulation, log: PartitionLog, number: int, *, after: bool) -> Callable[[], bool]:
    """The whole log is compacted just before or after the file with this number is opened; tells if it was."""
    groups = [item for item in compact(simulation.background_context, job_for(log)) if isinstance(item, CleanedGroup)]
    segments = {segment.base_offset: segment for segment in log.segments}
    opened, is_done = 0, False
    real_open = simulation.disk.open

    def swap() -> None:
        nonlocal is_done
        is_done = True
        for group in groups:
            assert log.replace_segments([segments[offset] for offset in group.base_offsets], group.cleaned)

    def open_and_swap(path: str, *, create: bool = False) -> SimulatedFile:
        nonlocal opened
        opened += 1
        is_now = opened == number and not is_done
        if is_now and not after:
            swap()
        file = real_open(path, create=create)
        if is_now and after:
            swap()
        return file

    simulation.disk.open = open_and_swap  # type: ignore[method-assign]  # a swap at the worst moment
    return lambda: is_done


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("number", range(1, OPENS + 1))
@pytest.mark.parametrize("offset", [0, 5, 30, 41])
def test_a_read_gets_whole_batches_from_its_offset_on(
    simulation: Simulation, number: int, offset: int, after: bool
) -> None:
    log = fill(simulation)
    before = {record.offset: record for record in records_of(log)}
    for segment in log.segments[:-1]:
        segment.release()
    is_done = swap_at(simulation, log, number, after=after)
    piece = log.read(offset, 1 << 20, log.log_end_offset, whole_first_batch=True)
    assert isinstance(piece, FileSlice)
    headers = [header for header, _ in split(piece.read())]
    assert sum(header.size_bytes for header in headers) == len(piece)
    assert headers[0].last_offset >= offset
    skipped = range(offset, headers[0].base_offset)
    if not is_done():
        assert not skipped
    left = {record.offset for record in records_of(log)}
    assert not left.intersection(skipped)
    assert all(before[record.offset] == record for record in records_of(log))


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("number", range(1, 8))
def test_a_search_by_time_finds_what_is_there(simulation: Simulation, number: int, after: bool) -> None:
    log = fill(simulation)
    for segment in log.segments[:-1]:
        segment.release()
    swap_at(simulation, log, number, after=after)
    found = log.offset_for_timestamp(NOW_MS + 20)
    assert found is not None
    assert found.offset >= 20
    assert found.timestamp_ms == NOW_MS + found.offset
    left = [record.offset for record in records_of(log)]
    assert found.offset == 20 or found.offset == min(each for each in left if each >= 20)


def test_segments_that_are_no_longer_neighbours_are_not_replaced(simulation: Simulation) -> None:
    log = fill(simulation)
    (*groups, _outcome) = compact(simulation.background_context, job_for(log))
    first = groups[0]
    assert isinstance(first, CleanedGroup)
    segments = {segment.base_offset: segment for segment in log.segments}
    old = [segments[offset] for offset in first.base_offsets]
    stranger = Segment(simulation.disk, log.directory, 0)
    before = list(log.segments)
    assert not log.replace_segments([stranger], first.cleaned)
    assert not log.replace_segments([old[0], log.segments[-1]], first.cleaned)
    assert not log.replace_segments([log.segments[-1]], first.cleaned)
    assert list(log.segments) == before
    assert log.replace_segments(old, first.cleaned)
    assert not log.replace_segments(old, first.cleaned)


def test_what_was_written_to_when_a_slow_read_began_may_be_compacted_by_its_end(
    simulation: Simulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = fill(simulation)
    active, locate = log.segments[-1], Segment.locate
    calls = []

    def locate_slowly(segment: Segment, offset: int) -> tuple[int, int] | None:
        calls.append(segment)
        if len(calls) == 1:
            log.roll()
            compact_log(simulation, log)
        return locate(segment, offset)

    monkeypatch.setattr(Segment, "locate", locate_slowly)
    piece = log.read(active.base_offset, 10_000, log.log_end_offset, whole_first_batch=True)
    assert calls[0] is active
    assert active.is_removed
    assert isinstance(piece, FileSlice)
    header, _ = next(split(piece.read()))
    assert header.last_offset >= active.base_offset
