"""Where exactly the newest batches of a segment lie, so that a consumer at the tail is served without reading the disk
to find its place. Bounded: the offset index answers for what is older."""

from array import array
from bisect import bisect_left

LIMIT = 1024


class RecentBatches:
    """Offsets are relative to the segment's base offset. Entries are only added; when there are too many, the newer
    half goes on in another object, so that a worker thread that holds this one is not disturbed."""

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

    def locate(self, relative_offset: int, end_position: int) -> tuple[int, int] | None:
        """Where the first batch that ends at or after this offset begins and ends; None when there is none."""
        index = bisect_left(self.last_offsets, relative_offset)
        positions = self.positions
        if index >= len(self.last_offsets):
            return None
        next_index = index + 1
        return positions[index], positions[next_index] if next_index < len(positions) else end_position
