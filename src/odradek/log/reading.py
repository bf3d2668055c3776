"""From an offset to a slice of a segment file: the parts of `PartitionLog.read`. Segments may be appended to, removed,
replaced or truncated by other threads while these functions run."""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import TypeVar

from odradek.host.logs import get_logger
from odradek.host.slices import FileSlice
from odradek.log.segment import Segment
from odradek.protocol.errors import ErrorCode

logger = get_logger(__name__)

T = TypeVar("T")


def read_segments(
    segments: Sequence[Segment], fetch_offset: int, max_bytes: int, end_offset: int, whole_first_batch: bool
) -> FileSlice | ErrorCode | None:
    """Like PartitionLog.read, for offsets within the log. FileNotFoundError when a segment is removed."""
    segment = segments[-1]
    place: tuple[int, int] | None
    if fetch_offset >= segment.base_offset:
        end_position = segment.size_bytes  # before `next_offset`: see Segment._publish_batch
        place = segment.locate(fetch_offset)
        holds_end = end_offset < segment.next_offset
        file = segment.file
    else:
        segment, place, next_base_offset = locate_in_segments(segments, fetch_offset)
        file = segment.file
        end_position = segment.size_bytes
        holds_end = end_offset < (segment.next_offset if next_base_offset is None else next_base_offset)
    if place is None:
        return refuse_damaged(segment, fetch_offset) if segment.breaks_off_before(fetch_offset, file) else None
    if holds_end:
        end_place = segment.locate(end_offset)
        if end_place is not None:
            end_position = end_place[0]
    position, first_end_position = place
    size_bytes = end_position - position
    if size_bytes > max_bytes:
        size_bytes = max_bytes
        first_size_bytes = first_end_position - position
        if first_size_bytes > max_bytes:
            size_bytes = first_size_bytes if whole_first_batch else 0
    if size_bytes <= 0:
        return None
    if position < segment.unchecked_end_position:
        size_bytes = segment.count_sound_bytes(file, position, size_bytes)
        if size_bytes == 0:
            return refuse_damaged(segment, fetch_offset)
    return FileSlice(file, position, size_bytes)


def locate_in_segments(segments: Sequence[Segment], offset: int) -> tuple[Segment, tuple[int, int] | None, int | None]:
    """The segment that holds the offset, where its batch begins and ends, and the base offset of the next segment, if
    there is one. Blocks."""
    index = find_segment(segments, offset)
    while True:
        segment = segments[index]
        index += 1
        is_last = index >= len(segments)
        place = segment.locate(offset)
        # Compaction and truncation leave segments that end before the next one begins.
        if place is not None or is_last or segment.breaks_off_before(offset, segment.file):
            return segment, place, None if is_last else segments[index].base_offset


def refuse_damaged(segment: Segment, offset: int) -> ErrorCode:
    logger.error("damaged records are not served: run `odradek log verify`", directory=segment.directory, offset=offset)
    return ErrorCode.CORRUPT_MESSAGE


def search_segments(find: Callable[[Sequence[Segment]], T], get_segments: Callable[[], Sequence[Segment]]) -> T:
    """The result of `find`, which is repeated when segments were removed while it ran."""
    while True:
        segments = tuple(get_segments())
        try:
            return find(segments)
        except FileNotFoundError:
            if segments == tuple(get_segments()):
                raise


def find_segment(segments: Sequence[Segment], offset: int) -> int:
    """The index of the last segment that begins at or before `offset`, or 0."""
    return max(0, bisect_right(segments, offset, key=_base_offset) - 1)


def _base_offset(segment: Segment) -> int:
    return segment.base_offset
