"""Kafka's offset index: for every few kilobytes of a segment, the last offset of a batch and where that batch begins.
Entries of the active segment are kept in memory and written in groups; those of older segments are only in files."""

import sys
from array import array
from bisect import bisect_left, bisect_right
from contextlib import suppress
from itertools import pairwise

from odradek.host.disk import Disk

ENTRY_BYTES = 8
GROUP_ENTRIES = 64


class OffsetIndex:
    """Offsets are relative to the segment's base offset. `load` before writing; `release` frees the memory."""

    __slots__ = ("_disk", "_next_group", "entry_count", "offsets", "path", "positions", "written_entries")

    def __init__(self, disk: Disk, path: str) -> None:
        self._disk = disk
        self.path = path
        self.offsets: array[int] | None = None
        self.positions: array[int] = array("I")
        self.entry_count = -1
        self.written_entries = 0
        self._next_group = GROUP_ENTRIES

    def create(self) -> None:
        """Begins an empty index. Its file is created with the first entries: idle partitions cost no writes."""
        self.offsets = array("I")
        self.positions = array("I")
        self.entry_count = 0
        self.written_entries = 0
        self._next_group = GROUP_ENTRIES

    def load(self) -> bool:
        """False when the file is missing or cannot be an index: then it must be rebuilt from the segment."""
        try:
            data = self._disk.read_file(self.path)
        except FileNotFoundError:
            return False
        if len(data) % ENTRY_BYTES:
            return False
        numbers = array("I", data)
        if sys.byteorder == "little":
            numbers.byteswap()
        offsets, positions = numbers[0::2], numbers[1::2]
        if any(earlier >= later for earlier, later in pairwise(offsets)):
            return False
        self.offsets, self.positions = offsets, positions
        self.entry_count = self.written_entries = len(offsets)
        self._next_group = self.entry_count + GROUP_ENTRIES
        return True

    def append(self, relative_offset: int, position: int) -> None:
        assert self.offsets is not None, "the index of an old segment is read-only"
        # The searched array grows last: a worker thread may look something up concurrently.
        self.positions.append(position)
        self.offsets.append(relative_offset)
        self.entry_count += 1
        if self.entry_count >= self._next_group:
            # The batch is written already: a full disk must fail the next append, not this one.
            with suppress(OSError):
                self.write()
            self._next_group = self.entry_count + GROUP_ENTRIES

    def lookup(self, relative_offset: int) -> int:
        """The position of the last indexed batch that ends at or before this offset, or 0."""
        positions = self.positions  # before the offsets: `release` on the event loop drops those first
        offsets = self.offsets
        if offsets is None:
            return self._search_file(slice(0, 4), relative_offset)
        index = bisect_right(offsets, relative_offset)
        return positions[index - 1] if index else 0

    def lookup_position(self, end_position: int) -> int:
        """The position of the last indexed batch that begins before this position, or 0."""
        positions = self.positions
        offsets = self.offsets
        if offsets is None:
            return self._search_file(slice(4, 8), end_position - 1)
        index = bisect_left(positions, end_position, hi=len(offsets))
        return positions[index - 1] if index else 0

    def _search_file(self, column: slice, largest: int) -> int:
        """A binary search in the file, for the position of the last entry whose column is not larger: about twenty
        small reads and no memory."""
        file = self._disk.open(self.path)  # not kept open: every old segment that is read would hold two descriptors
        low, high = 0, file.size() // ENTRY_BYTES
        position = 0
        while low < high:
            middle = (low + high) // 2
            entry = file.read_at(ENTRY_BYTES, middle * ENTRY_BYTES)
            if int.from_bytes(entry[column], "big") <= largest:
                position = int.from_bytes(entry[4:], "big")
                low = middle + 1
            else:
                high = middle
        return position

    def last_entry(self) -> tuple[int, int] | None:
        if not self.offsets:
            return None
        return self.offsets[-1], self.positions[-1]

    def copy_before(self, relative_offset: int) -> "OffsetIndex | None":
        """Another object for the same file, with the entries below this offset in memory. The file keeps the others
        until `write`. None when the file is missing or cannot be an index. Blocks unless this index is in memory."""
        copy = OffsetIndex(self._disk, self.path)
        if self.offsets is None:
            if not copy.load():
                return None
        else:
            copy.offsets, copy.positions = self.offsets, self.positions
            copy.written_entries = self.written_entries
        assert copy.offsets is not None
        keep = bisect_left(copy.offsets, relative_offset)
        copy.offsets, copy.positions = copy.offsets[:keep], copy.positions[:keep]
        copy.entry_count = keep
        copy.written_entries = min(copy.written_entries, keep)
        return copy

    def write(self) -> None:
        """Appends the entries that the file lacks, after removing what an earlier run or a truncation left behind
        them; creates the file even when it stays empty."""
        if self.offsets is None:
            return
        start, end = self.written_entries, self.entry_count
        numbers = array("I", bytes(ENTRY_BYTES * (end - start)))
        numbers[0::2] = self.offsets[start:end]
        numbers[1::2] = self.positions[start:end]
        if sys.byteorder == "little":
            numbers.byteswap()
        file = self._disk.open(self.path, create=True)
        file.truncate(start * ENTRY_BYTES)
        file.write_at(numbers.tobytes(), start * ENTRY_BYTES)
        self.written_entries = end

    def release(self) -> None:
        """Drops the entries in memory, for a segment that takes no more batches."""
        self.offsets = None
        self.positions = array("I")
