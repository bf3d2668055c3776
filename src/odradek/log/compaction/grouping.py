"""Which segments are compacted together into one. Pure."""

from collections.abc import Sequence
from typing import NamedTuple

from odradek.log.segment import LARGEST_RELATIVE_OFFSET


class SegmentFiles(NamedTuple):
    base_offset: int
    size_bytes: int
    offset_index_bytes: int
    time_index_bytes: int


def group_segments(
    segments: Sequence[SegmentFiles], *, segment_bytes: int, index_bytes: int, end_offset: int
) -> list[list[SegmentFiles]]:
    """Groups of neighbours that fit into one segment by their sizes, the sizes of their indexes, and their offsets.
    Without groups, a compacted log would become thousands of small files. `end_offset` is the end of the last one."""
    groups: list[list[SegmentFiles]] = []
    sizes = (0, 0, 0)
    for number, segment in enumerate(segments):
        next_offset = segments[number + 1].base_offset if number + 1 < len(segments) else end_offset
        grown = (
            sizes[0] + segment.size_bytes,
            sizes[1] + segment.offset_index_bytes,
            sizes[2] + segment.time_index_bytes,
        )
        fits = (
            bool(groups)
            and grown[0] <= segment_bytes
            and max(grown[1], grown[2]) <= index_bytes
            and next_offset - 1 - groups[-1][0].base_offset <= LARGEST_RELATIVE_OFFSET
        )
        if fits:
            groups[-1].append(segment)
            sizes = grown
        else:
            groups.append([segment])
            sizes = segment[1:]
    return groups
