"""Neighbours go together as long as they fit."""

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.log.compaction.grouping import SegmentFiles, group_segments

SEGMENTS = st.lists(
    st.tuples(st.integers(1, 2**31), st.integers(0, 9), st.integers(0, 9), st.integers(0, 9)), max_size=9
)


@settings(deadline=None)
@given(SEGMENTS)
def test_groups_fit_and_could_not_be_fewer(sizes: list[tuple[int, int, int, int]]) -> None:
    segments, base_offset = [], 0
    for span, size, index, times in sizes:
        segments.append(SegmentFiles(base_offset, size, index, times))
        base_offset += span
    ends = {segment: following.base_offset for segment, following in pairwise(segments)}

    def fits(group: list[SegmentFiles]) -> bool:
        return (
            sum(each.size_bytes for each in group) <= 20
            and sum(each.offset_index_bytes for each in group) <= 15
            and sum(each.time_index_bytes for each in group) <= 15
            and ends.get(group[-1], base_offset) - 1 - group[0].base_offset < 2**31
        )

    groups = group_segments(segments, segment_bytes=20, index_bytes=15, end_offset=base_offset)
    assert [segment for group in groups for segment in group] == segments
    assert all(len(group) == 1 or fits(group) for group in groups)
    assert not any(fits([*group, following[0]]) for group, following in pairwise(groups))
