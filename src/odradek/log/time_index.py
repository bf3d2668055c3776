"""Kafka's time index: the largest timestamp so far, and the last offset of the batch that has it, whenever it grows.
As with the offset index, only the active segment has it in memory."""

import struct
from array import array
from bisect import bisect_left, bisect_right
from contextlib import suppress

from odradek.host.disk import Disk
from odradek.protocol.sentinels import NO_TIMESTAMP

ENTRY_BYTES = 12
GROUP_ENTRIES = 64

_ENTRY = struct.Struct(">qI")


class TimeIndex:
    __slots__ = ("_disk", "_next_group", "entry_count", "offsets", "path", "timestamps", "written_entries")

    def __init__(self, disk: Disk, path: str) -> None:
        self._disk = disk
        self.path = path
        self.timestamps: array[int] | None = None
        self.offsets: array[int] = array("I")
        self.entry_count = -1
        self.written_entries = 0
        self._next_group = GROUP_ENTRIES

    def create(self) -> None:
        self.timestamps = array("q")
        self.offsets = array("I")
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
        timestamps, offsets = array("q"), array("I")
        for timestamp, offset in _ENTRY.iter_unpack(data):
            if timestamps and (timestamp <= timestamps[-1] or offset < offsets[-1]):
                return False
            timestamps.append(timestamp)
            offsets.append(offset)
        self.timestamps, self.offsets = timestamps, offsets
        self.entry_count = self.written_entries = len(timestamps)
        self._next_group = self.entry_count + GROUP_ENTRIES
        return True

    def append_if_larger(self, timestamp: int, relative_offset: int) -> None:
        timestamps = self.timestamps
        assert timestamps is not None, "the index of an old segment is read-only"
        if timestamp <= (timestamps[-1] if timestamps else NO_TIMESTAMP):
            return
        # The searched array grows last: a worker thread may look something up concurrently.
        self.offsets.append(relative_offset)
        timestamps.append(timestamp)
        self.entry_count += 1
        if self.entry_count >= self._next_group:
            with suppress(OSError):  # as in the offset index: the batch is written already, and the entries are retried
                self.write()
            self._next_group = self.entry_count + GROUP_ENTRIES

    def lookup(self, timestamp: int) -> int:
        """The relative offset at or before which no batch has a larger timestamp than this one, or 0."""
        offsets = self.offsets  # before the timestamps: `release` on the event loop drops those first
        timestamps = self.timestamps
        if timestamps is not None:
            index = bisect_right(timestamps, timestamp)
            return offsets[index - 1] if index else 0
        file = self._disk.open(self.path)
        low, high = 0, file.size() // ENTRY_BYTES
        relative_offset = 0
        while low < high:
            middle = (low + high) // 2
            entry_timestamp, entry_offset = _ENTRY.unpack(file.read_at(ENTRY_BYTES, middle * ENTRY_BYTES))
            if entry_timestamp <= timestamp:
                relative_offset = entry_offset
                low = middle + 1
            else:
                high = middle
        return relative_offset

    def last_entry(self) -> tuple[int, int] | None:
        """(timestamp, relative offset)"""
        offsets, timestamps = self.offsets, self.timestamps
        if timestamps is not None:
            return (timestamps[-1], offsets[len(timestamps) - 1]) if timestamps else None
        file = self._disk.open(self.path)
        count = file.size() // ENTRY_BYTES
        if count == 0:
            return None
        timestamp, relative_offset = _ENTRY.unpack(file.read_at(ENTRY_BYTES, (count - 1) * ENTRY_BYTES))
        return timestamp, relative_offset

    def copy_before(self, relative_offset: int) -> "TimeIndex | None":
        """Like OffsetIndex.copy_before."""
        copy = TimeIndex(self._disk, self.path)
        if self.timestamps is None:
            if not copy.load():
                return None
        else:
            copy.timestamps, copy.offsets = self.timestamps, self.offsets
            copy.written_entries = self.written_entries
        assert copy.timestamps is not None
        keep = bisect_left(copy.offsets, relative_offset)
        copy.timestamps, copy.offsets = copy.timestamps[:keep], copy.offsets[:keep]
        copy.entry_count = keep
        copy.written_entries = min(copy.written_entries, keep)
        return copy

    def write(self) -> None:
        timestamps = self.timestamps
        if timestamps is None:
            return
        start, end = self.written_entries, self.entry_count
        data = b"".join(_ENTRY.pack(timestamps[index], self.offsets[index]) for index in range(start, end))
        file = self._disk.open(self.path, create=True)
        file.truncate(start * ENTRY_BYTES)
        file.write_at(data, start * ENTRY_BYTES)
        self.written_entries = end

    def release(self) -> None:
        self.timestamps = None
        self.offsets = array("I")
