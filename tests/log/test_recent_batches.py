"""The newest batches are found without the disk, and older ones through the index, with no offset between the two."""

from odradek.log.log_config import LogConfig
from odradek.log.recent_batches import LIMIT, RecentBatches
from odradek.protocol.batch import read_batch_header
from tests.log.batches import append, make_batch, open_log
from tests.simulation.simulated_host import Simulation


def test_a_batch_is_found_by_any_of_its_offsets() -> None:
    batches = RecentBatches(10)
    for last_offset, position in ((14, 100), (19, 250)):
        batches.positions.append(position)
        batches.last_offsets.append(last_offset)
    assert {batches.locate(offset, 300) for offset in range(10, 15)} == {(100, 250)}
    assert {batches.locate(offset, 300) for offset in range(15, 20)} == {(250, 300)}
    assert batches.locate(20, 300) is None


def test_the_newer_half_begins_where_the_older_ends() -> None:
    batches = RecentBatches(0)
    for number in range(10):
        batches.positions.append(number)
        batches.last_offsets.append(3 * number + 2)
    newer = batches.newer_half()
    assert newer.first_offset == 15
    assert [newer.locate(offset, 99) for offset in range(15, 30)] == [
        batches.locate(offset, 99) for offset in range(15, 30)
    ]


def test_every_offset_is_found_before_and_after_the_limit(simulation: Simulation) -> None:
    log = open_log(simulation.host, "/data/topic-0", LogConfig(index_interval_bytes=500))
    size_bytes = len(make_batch([b"", b""]))
    for number in range(2 * LIMIT):
        append(log, make_batch([b"", b""]))
        assert len(log.segments[0].recent_batches.positions) < LIMIT
        if number % 700 == 0 or number == 2 * LIMIT - 1:
            for offset in range(log.log_end_offset):
                assert log.segments[0].locate(offset) == (offset // 2 * size_bytes, (offset // 2 + 1) * size_bytes)
    first_recent = log.segments[0].recent_batches.first_offset
    assert log.needs_disk(first_recent - 1)
    assert not log.needs_disk(first_recent)
    data = log.segments[0].file.read_at(size_bytes, (first_recent // 2) * size_bytes)
    assert read_batch_header(data).base_offset == first_recent


def test_the_last_whole_batch_before_a_position_is_found() -> None:
    recent = RecentBatches(10)
    for position, last_offset in ((100, 10), (150, 12), (200, 15)):
        recent.positions.append(position)
        recent.last_offsets.append(last_offset)
    found = {position: recent.last_offset_before(position, 250) for position in (100, 149, 150, 199, 200, 249, 250)}
    assert found == {100: None, 149: None, 150: 10, 199: 10, 200: 12, 249: 12, 250: 15}
