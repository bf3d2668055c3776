"""One segment on its own: written, closed, read again, removed."""

import pytest

from odradek.log.segment import Segment
from odradek.protocol.batch import assign_offset
from tests.log.batches import NOW_MS, make_batch
from tests.simulation.simulated_host import Simulation

BASE_OFFSET = 100


@pytest.fixture
def segment(simulation: Simulation) -> Segment:
    segment = Segment(simulation.disk, "/data", BASE_OFFSET)
    segment.create()
    for number in range(10):
        timestamp_ms = NOW_MS - abs(number - 5)
        batch = make_batch([b"x" * 50], timestamps=[timestamp_ms])
        assign_offset(batch, 0, BASE_OFFSET + number, 0)
        segment.append(batch, BASE_OFFSET + number, timestamp_ms, 200)
    return segment


def test_what_is_appended_is_located_with_and_without_memory(segment: Segment) -> None:
    places = [segment.locate(BASE_OFFSET + number) for number in range(11)]
    assert places[10] is None
    assert [place and place[0] for place in places[:10]] == [
        number * len(make_batch([b"x" * 50])) for number in range(10)
    ]
    assert (segment.max_timestamp, segment.offset_of_max_timestamp) == (NOW_MS, BASE_OFFSET + 5)
    assert segment.is_writable


def test_a_closed_segment_knows_its_largest_timestamp_and_keeps_nothing_open(
    simulation: Simulation, segment: Segment
) -> None:
    segment.write_indexes()
    segment.become_read_only()
    assert not segment.is_writable
    closed = Segment(simulation.disk, "/data", BASE_OFFSET)
    closed.size_bytes = segment.size_bytes
    assert closed.load_max_timestamp() == NOW_MS
    assert closed.offset_of_max_timestamp == BASE_OFFSET + 5
    assert len(simulation.disk.open_files) == 1, "the one that wrote it"


def test_a_closed_segment_can_be_written_to_again(simulation: Simulation, segment: Segment) -> None:
    segment.write_indexes()
    again = Segment(simulation.disk, "/data", BASE_OFFSET)
    assert again.load_for_writing()
    assert (again.next_offset, again.size_bytes, again.max_timestamp) == (110, segment.size_bytes, NOW_MS)
    simulation.disk.remove("/data/00000000000000000100.index")
    assert not Segment(simulation.disk, "/data", BASE_OFFSET).load_for_writing()


def test_a_removed_segment_says_so_and_leaves_its_name(simulation: Simulation, segment: Segment) -> None:
    assert segment.rename_for_removal() == ["/data/00000000000000000100.log.deleted"]
    assert segment.is_removed
    with pytest.raises(FileNotFoundError):
        _ = segment.file


def replay_nothing(*_: object) -> None:
    pass


def test_recovery_returns_what_it_cut_off(simulation: Simulation, segment: Segment) -> None:
    segment.file.write_at(b"torn", segment.size_bytes)
    again = Segment(simulation.disk, "/data", BASE_OFFSET)
    assert again.recover(200, replay_nothing) == 4
    assert (again.size_bytes, again.next_offset) == (segment.size_bytes, BASE_OFFSET + 10)
    # Batches of other offsets do not belong here.
    simulation.disk.rename(segment.path(".log"), "/data/00000000000000000200.log")
    assert Segment(simulation.disk, "/data", 200).recover(200, replay_nothing) == segment.size_bytes
