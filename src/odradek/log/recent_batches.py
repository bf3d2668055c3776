"""The positions of the newest batches of a segment, so that a read at the tail needs no disk access to find its batch.
Bounded: older batches are found through the offset index."""

from array import array
from bisect import bisect_left, bisect_right

LIMIT = 1024


class RecentBatches:
    """Offsets are relative to the segment's base offset. Entries are only added; when there are too many, another
    object takes the newer half, so that a worker thread can continue to read this one."""

    __slots__ = ("first_offset", "last_offsets", "positions")

    def __init__(self, first_offset: int) -> None:
        self.first_offset = first_offset  # the first offset that can be looked up here
        self.last_offsets: array[int] = array("I")
        self.positions: array[int] = array("I")

    def newer_half(self) -> "RecentBatches":
        half = len(self.last_offsets) // 2
        newer = RecentBatches(self.last_offsets[half - 1] + 1)
        newer.last_offsets = self.last_offsets[half:]
        newer.positions = self.positions[half:]
        return newer

    def last_offset_before(self, position: int, end_position: int) -> int | None:
        """The last offset of the last batch that ends at or before `position`; None if it is not one of these. The last
        batch of all ends at `end_position`."""
        count = len(self.last_offsets)
        index = bisect_right(self.positions, position, hi=count)
        if index < count or position < end_position:
            index -= 1  # the batch that begins last ends after the position
        return self.last_offsets[index - 1] if index > 0 else None

    def locate(self, relative_offset: int, end_position: int) -> tuple[int, int] | None:
        """The start and end position of the first batch that ends at or after this offset; None when there is none."""
        index = bisect_left(self.last_offsets, relative_offset)
        positions = self.positions
        if index >= len(self.last_offsets):
            return None
        next_index = index + 1
        return positions[index], positions[next_index] if next_index < len(positions) else end_position
