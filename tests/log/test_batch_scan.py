"""Walking through a segment by headers: every whole batch in turn, and nothing past the first that is not."""

import pytest

from odradek.host.disk import File
from odradek.log.batch_scan import locate_batch, scan_checked, scan_headers
from odradek.protocol.batch import assign_offset
from tests.log.batches import make_batch
from tests.simulation.simulated_host import Simulation

SIZES = [10, 5000, 0, 20_000, 1, 1 << 20, 3]


@pytest.fixture
def batches() -> list[bytes]:
    made = []
    for number, size in enumerate(SIZES):
        batch = make_batch([b"x" * size, b"y"])
        assign_offset(batch, 0, 2 * number, 0)
        made.append(bytes(batch))
    return made


@pytest.fixture
def file(simulation: Simulation, batches: list[bytes]) -> File:
    file = simulation.disk.open("/data/file", create=True)
    file.write_at(b"".join(batches), 0)
    return file


def test_every_batch_is_found_where_it_lies(file: File, batches: list[bytes]) -> None:
    positions = [sum(map(len, batches[:number])) for number in range(len(batches))]
    for scanned in (scan_headers(file, 0, file.size()), scan_checked(file, file.size())):
        assert [(position, header.base_offset) for position, header in scanned] == [
            (position, 2 * number) for number, position in enumerate(positions)
        ]
    assert [position for position, _ in scan_headers(file, positions[3], file.size())] == positions[3:]
    for number, (position, batch) in enumerate(zip(positions, batches, strict=True)):
        for offset in (2 * number, 2 * number + 1):
            assert locate_batch(file, offset, 0, file.size()) == (position, position + len(batch))
    assert locate_batch(file, 2 * len(batches), 0, file.size()) is None


@pytest.mark.parametrize("missing_bytes", [1, 3, 60, 70])
def test_a_batch_that_is_cut_off_is_not_found(file: File, batches: list[bytes], missing_bytes: int) -> None:
    file.truncate(file.size() - missing_bytes)
    assert len(list(scan_headers(file, 0, file.size()))) == len(batches) - 1
    assert len(list(scan_checked(file, file.size()))) == len(batches) - 1


def test_only_the_checked_walk_ends_at_a_wrong_checksum(file: File, batches: list[bytes]) -> None:
    file.write_at(b"z", len(batches[0]) + 100)
    assert len(list(scan_headers(file, 0, file.size()))) == len(batches)
    assert len(list(scan_checked(file, file.size()))) == 1


@pytest.mark.parametrize("length", [b"\0\0\0\0", b"\xff\xff\xff\xff", b"\x80\0\0\0", b"\0\0\0\x30"])
def test_a_length_that_is_nonsense_ends_the_walk(file: File, batches: list[bytes], length: bytes) -> None:
    file.write_at(length, len(batches[0]) + 8)
    assert len(list(scan_headers(file, 0, file.size()))) == 1
    assert len(list(scan_checked(file, file.size()))) == 1
