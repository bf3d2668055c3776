"""Reads on a worker thread while the event loop appends: what a read returns ends at the offset that bounds it."""

import pytest

from odradek.host.slices import FileSlice
from odradek.log.log_config import LogConfig
from odradek.log.partition_log import PartitionLog
from tests.log.batches import append, make_batch, open_log
from tests.log.interleaving import first_missing_step, interrupt_at_every_step, interrupt_at_step
from tests.simulation.simulated_host import Simulation

LARGE = 1 << 20


def read(log: PartitionLog, offset: int, max_bytes: int, end_offset: int) -> bytes:
    piece = log.read(offset, max_bytes, end_offset, whole_first_batch=True)
    assert isinstance(piece, FileSlice)
    return piece.read()


def log_of_batches(simulation: Simulation, count: int, *, rolls_next: bool) -> tuple[PartitionLog, list[bytes]]:
    """With `rolls_next` the batch after these begins a new segment."""
    batches = [make_batch([b"x" * number]) for number in range(count)]
    size_bytes = sum(map(len, batches))
    config = LogConfig(index_interval_bytes=100, segment_bytes=size_bytes if rolls_next else LARGE)
    log = open_log(simulation.host, "/data/topic-0", config)
    for batch in batches:
        append(log, batch)
    return log, [bytes(batch) for batch in batches]


@pytest.mark.parametrize("rolls_next", [False, True])
def test_a_read_during_an_append_ends_at_the_high_watermark(simulation: Simulation, rolls_next: bool) -> None:
    log, batches = log_of_batches(simulation, 4, rolls_next=rolls_next)

    def check_reads() -> None:
        assert read(log, 0, LARGE, 4) == b"".join(batches)
        assert read(log, 3, LARGE, 4) == batches[3]
        assert read(log, 3, 1, 4) == batches[3], "a first batch over the limit is returned whole, and alone"
        assert log.read(4, LARGE, 4, whole_first_batch=True) is None

    batch = make_batch([b"y" * 10])
    _, steps = interrupt_at_every_step(lambda: append(log, batch), check_reads)
    assert steps > 50
    assert read(log, 4, LARGE, 5) == bytes(batch)


@pytest.mark.parametrize("rolls_next", [False, True])
@pytest.mark.parametrize("offset", [0, 3])
@pytest.mark.parametrize("max_bytes", [1, LARGE])
def test_an_append_during_a_read_does_not_lengthen_it(
    simulation: Simulation, rolls_next: bool, offset: int, max_bytes: int
) -> None:
    def read_with_appends_at(step: int) -> bool:
        if simulation.disk.exists("/data/topic-0"):
            simulation.disk.remove_tree("/data/topic-0")
        log, batches = log_of_batches(simulation, 4, rolls_next=rolls_next)

        def append_two() -> None:
            append(log, make_batch([b"y" * 9]))
            append(log, make_batch([b"z" * 9]))

        found, has_step = interrupt_at_step(lambda: read(log, offset, max_bytes, 4), step, append_two)
        assert found == (batches[offset] if max_bytes == 1 else b"".join(batches[offset:]))
        return has_step

    assert first_missing_step(read_with_appends_at) > 20


def test_an_index_entry_that_leads_past_an_offset_is_not_followed(simulation: Simulation) -> None:
    """A bit of its offset has changed: the batches between would be skipped."""
    log, batches = log_of_batches(simulation, 40, rolls_next=True)
    append(log, make_batch())
    path = log.segments[0].offset_index.path
    data = bytearray(simulation.disk.read_file(path))
    entry = bytes(data[80:88])
    data[80:88] = (int.from_bytes(entry[:4], "big") & ~0b1100).to_bytes(4, "big") + entry[4:]
    assert bytes(data[80:88]) != entry
    simulation.disk.replace_file(path, bytes(data))
    for offset, batch in enumerate(batches):
        assert read(log, offset, 1, 40) == batch
