"""Room held on the disk for when there is none."""

from odradek.metadata.disk_reserve import SIZE_BYTES, DiskReserve
from tests.simulation.simulated_disk import SimulatedDisk

PATH = "/reserve"


def test_room_is_held_and_given_once() -> None:
    disk = SimulatedDisk()
    reserve = DiskReserve(disk, PATH)
    assert not reserve.release()
    reserve.hold()
    reserve.hold()
    assert disk.file_size(PATH) == SIZE_BYTES
    assert reserve.release()
    assert not disk.exists(PATH)
    assert not reserve.release()


def test_what_an_earlier_run_held_is_held_still() -> None:
    disk = SimulatedDisk()
    DiskReserve(disk, PATH).hold()
    disk.capacity_bytes = SIZE_BYTES
    reserve = DiskReserve(disk, PATH)
    reserve.hold()
    assert reserve.release()


def test_without_room_nothing_is_taken() -> None:
    disk = SimulatedDisk()
    disk.capacity_bytes = SIZE_BYTES - 1
    reserve = DiskReserve(disk, PATH)
    reserve.hold()
    assert not disk.exists(PATH)
    disk.capacity_bytes = SIZE_BYTES
    reserve.hold()
    assert disk.file_size(PATH) == SIZE_BYTES
