"""The index files are Kafka's byte by byte, and answer the same from memory and from the disk."""

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.log.offset_index import GROUP_ENTRIES, OffsetIndex
from odradek.log.time_index import TimeIndex
from tests.simulation.simulated_disk import SimulatedDisk


def offset_index(disk: SimulatedDisk) -> OffsetIndex:
    index = OffsetIndex(disk, "/0.index")
    index.create()
    return index


def time_index(disk: SimulatedDisk) -> TimeIndex:
    index = TimeIndex(disk, "/0.timeindex")
    index.create()
    return index


def test_an_offset_index_entry_is_two_big_endian_ints() -> None:
    disk = SimulatedDisk()
    index = offset_index(disk)
    index.append(9, 0x01020304)
    index.append(0x7FFFFFFF, 0x7FFFFFFE)
    index.write()
    assert disk.read_file("/0.index") == struct.pack(">iiii", 9, 0x01020304, 0x7FFFFFFF, 0x7FFFFFFE)


def test_a_time_index_entry_is_a_timestamp_and_an_offset() -> None:
    disk = SimulatedDisk()
    index = time_index(disk)
    index.append_if_larger(1_700_000_000_000, 7)
    index.append_if_larger(1_700_000_000_000, 8)
    index.append_if_larger(1_600_000_000_000, 9)
    index.append_if_larger(1_700_000_000_001, 9)
    index.write()
    assert disk.read_file("/0.timeindex") == struct.pack(">qiqi", 1_700_000_000_000, 7, 1_700_000_000_001, 9)


def test_a_record_without_timestamp_is_not_indexed() -> None:
    index = time_index(SimulatedDisk())
    index.append_if_larger(-1, 3)
    assert index.last_entry() is None


def test_entries_reach_the_file_in_groups() -> None:
    disk = SimulatedDisk()
    index = offset_index(disk)
    for number in range(GROUP_ENTRIES - 1):
        index.append(number, number * 10)
    assert not disk.exists("/0.index")
    index.append(GROUP_ENTRIES, 5000)
    assert disk.file_size("/0.index") == GROUP_ENTRIES * 8
    index.append(GROUP_ENTRIES + 1, 6000)
    assert disk.file_size("/0.index") == GROUP_ENTRIES * 8
    index.write()
    assert disk.file_size("/0.index") == (GROUP_ENTRIES + 1) * 8


def test_an_index_without_entries_is_an_empty_file() -> None:
    disk = SimulatedDisk()
    offset_index(disk).write()
    assert disk.read_file("/0.index") == b""
    assert offset_index(disk).load()


def test_entries_that_a_full_disk_refused_are_written_later() -> None:
    disk = SimulatedDisk()
    disk.capacity_bytes = 0
    offsets, times = offset_index(disk), time_index(disk)
    for number in range(GROUP_ENTRIES):
        offsets.append(number, number)
        times.append_if_larger(number, number)
    disk.capacity_bytes = None
    offsets.write()
    times.write()
    assert disk.file_size("/0.index") == GROUP_ENTRIES * 8
    assert disk.file_size("/0.timeindex") == GROUP_ENTRIES * 12


@pytest.mark.parametrize("data", [b"1234567", struct.pack(">iiii", 5, 0, 5, 1), struct.pack(">iiii", 5, 0, 0, 0)])
def test_what_cannot_be_an_offset_index_is_not_loaded(data: bytes) -> None:
    disk = SimulatedDisk()
    assert not OffsetIndex(disk, "/0.index").load()
    disk.replace_file("/0.index", data)
    assert not OffsetIndex(disk, "/0.index").load()


@pytest.mark.parametrize("data", [b"1234567", struct.pack(">qiqi", 5, 0, 5, 1), struct.pack(">qiqi", 5, 1, 6, 0)])
def test_what_cannot_be_a_time_index_is_not_loaded(data: bytes) -> None:
    disk = SimulatedDisk()
    assert not TimeIndex(disk, "/0.timeindex").load()
    disk.replace_file("/0.timeindex", data)
    assert not TimeIndex(disk, "/0.timeindex").load()


@settings(deadline=None)
@given(st.sets(st.integers(0, 500), max_size=200), st.integers(0, 501), st.integers(0, 501), st.booleans())
def test_offset_lookups_agree_with_a_list(offsets: set[int], wanted: int, cut: int, is_released: bool) -> None:
    disk = SimulatedDisk()
    index = offset_index(disk)
    entries = [(offset, 3 * offset + 1) for offset in sorted(offsets)]
    for entry in entries:
        index.append(*entry)
    expected = max((position for offset, position in entries if offset <= wanted), default=0)
    assert index.lookup(wanted) == expected
    index.write()
    index.release()
    assert index.lookup(wanted) == expected
    assert index.load()
    assert index.lookup(wanted) == expected
    before = disk.read_file("/0.index")
    if is_released:
        index.release()
    copy = index.copy_before(cut)
    assert copy is not None
    assert disk.read_file("/0.index") == before, "a reader may use the file"
    copy.write()
    left = [entry for entry in entries if entry[0] < cut]
    assert disk.read_file("/0.index") == b"".join(struct.pack(">ii", *entry) for entry in left)
    assert copy.last_entry() == (left[-1] if left else None)


@settings(deadline=None)
@given(st.lists(st.integers(0, 500), max_size=200), st.integers(0, 501), st.integers(0, 201), st.booleans())
def test_time_lookups_agree_with_a_list(timestamps: list[int], wanted: int, cut: int, is_released: bool) -> None:
    disk = SimulatedDisk()
    index = time_index(disk)
    entries: list[tuple[int, int]] = []
    for offset, timestamp in enumerate(timestamps):
        index.append_if_larger(timestamp, offset)
        if not entries or timestamp > entries[-1][0]:
            entries.append((timestamp, offset))
    expected = max((offset for timestamp, offset in entries if timestamp <= wanted), default=0)
    last = entries[-1] if entries else None
    assert (index.lookup(wanted), index.last_entry()) == (expected, last)
    index.write()
    index.release()
    assert (index.lookup(wanted), index.last_entry()) == (expected, last)
    assert index.load()
    assert (index.lookup(wanted), index.last_entry()) == (expected, last)
    before = disk.read_file("/0.timeindex")
    if is_released:
        index.release()
    copy = index.copy_before(cut)
    assert copy is not None
    assert disk.read_file("/0.timeindex") == before, "a reader may use the file"
    copy.write()
    left = [entry for entry in entries if entry[1] < cut]
    assert disk.read_file("/0.timeindex") == b"".join(struct.pack(">qi", *entry) for entry in left)
