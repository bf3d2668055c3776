"""Bits that rotted while the broker was not looking are found before anybody is given them."""

import pytest

from odradek.host.slices import FileSlice
from odradek.log.log_config import LogConfig
from odradek.log.partition_log import PartitionLog
from odradek.protocol.errors import ErrorCode
from tests.log.batches import EVERYTHING, append, make_batch, open_log, read_all, split
from tests.simulation.simulated_host import Simulation

DIRECTORY = "/data/topic-0"
CONFIG = LogConfig(index_interval_bytes=0)
# Neither base offset nor leader epoch is covered by a batch's checksum: the broker writes them after the producer.
UNCOVERED = {*range(8), *range(12, 16)}


def fill(simulation: Simulation) -> list[bytes]:
    """Two segments of three batches each, closed."""
    log = open_log(simulation.host, DIRECTORY, CONFIG)
    for number in range(6):
        if number == 3:
            log.roll()
        append(log, make_batch([b"value %d" % number] * 2))
    batches = read_all(log)
    log.close()
    return batches


def flip(simulation: Simulation, base_offset: int, position: int) -> None:
    file = simulation.disk.open(f"{DIRECTORY}/{base_offset:020d}.log")
    file.write_at(bytes([file.read_at(1, position)[0] ^ 0x10]), position)


def consume(log: PartitionLog) -> tuple[list[bytes], bool]:
    """What a reader gets from the start on, and whether it came to the end."""
    batches: list[bytes] = []
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        piece = log.read(offset, 1000, log.log_end_offset, whole_first_batch=True)
        if piece is ErrorCode.CORRUPT_MESSAGE:
            return batches, False
        assert isinstance(piece, FileSlice), "a consumer that gets no bytes retries without end"
        for header, batch in split(piece.read()):
            batches.append(batch)
            offset = header.last_offset + 1
    return batches, True


@pytest.mark.parametrize("base_offset", [0, 6])
def test_no_flipped_bit_is_served(simulation: Simulation, base_offset: int, caplog: pytest.LogCaptureFixture) -> None:
    """In an old segment, and in the one that is written to again; the batches before it still are."""
    whole = fill(simulation)
    size = simulation.disk.file_size(f"{DIRECTORY}/{base_offset:020d}.log")
    batch_bytes = size // 3
    for position in range(0, size, 3):
        if position % batch_bytes in UNCOVERED:
            continue
        flip(simulation, base_offset, position)
        caplog.clear()
        log = open_log(simulation.host, DIRECTORY, CONFIG)
        served, is_complete = consume(log)
        first_damaged = base_offset // 2 + position // batch_bytes
        if log.log_end_offset < 12:
            # The way to the end of the active segment broke off: it was recovered, and that was said.
            assert "log repaired" in caplog.messages
            assert served == whole[: len(served)]
            fill_again(simulation, whole)
            continue
        flip(simulation, base_offset, position)
        assert not is_complete
        assert served == whole[:first_damaged]
    caplog.clear()


def fill_again(simulation: Simulation, whole: list[bytes]) -> None:
    for name in simulation.disk.list_directory(DIRECTORY):
        simulation.disk.remove(f"{DIRECTORY}/{name}")
    assert fill(simulation) == whole


def test_a_checked_stretch_is_not_read_again(simulation: Simulation, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(simulation)
    log = open_log(simulation.host, DIRECTORY, CONFIG)
    assert consume(log)[1]

    def fail(*_: object) -> int:
        raise AssertionError("read again")

    monkeypatch.setattr("odradek.log.segment.count_sound_bytes", fail)
    assert consume(log)[1]


def test_what_this_run_has_written_is_not_checked(simulation: Simulation, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> int:
        raise AssertionError("checked")

    monkeypatch.setattr("odradek.log.segment.count_sound_bytes", fail)
    whole = fill(simulation)
    simulation.disk.kill()
    log = open_log(simulation.host, DIRECTORY, CONFIG, clean_shutdown=False)
    append(log, make_batch())
    assert len(consume(log)[0]) == len(whole) + 1


def test_a_read_at_the_tail_needs_no_disk(simulation: Simulation) -> None:
    fill(simulation)
    log = open_log(simulation.host, DIRECTORY, CONFIG)
    assert log.needs_disk(11), "it must be checked first"
    append(log, make_batch())
    assert not log.needs_disk(12)
    piece = log.read(12, 1000, EVERYTHING, whole_first_batch=True)
    assert isinstance(piece, FileSlice)


def test_truncation_leaves_checked_what_was(simulation: Simulation) -> None:
    whole = fill(simulation)
    log = open_log(simulation.host, DIRECTORY, CONFIG)
    consume(log)
    log.truncate_to(8)
    append(log, make_batch())
    assert consume(log)[0][:4] == whole[:4]
