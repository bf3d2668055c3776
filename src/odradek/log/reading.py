"""From an offset to a stretch of a segment file: the parts of `PartitionLog.read`."""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import TypeVar

from odradek.host.disk import File
from odradek.host.logs import get_logger
from odradek.host.slices import FileSlice
from odradek.log.segment import Segment
from odradek.protocol.errors import ErrorCode

logger = get_logger(__name__)

T = TypeVar("T")


def locate_in_segments(segments: Sequence[Segment], offset: int) -> tuple[Segment, tuple[int, int] | None, int | None]:
    """The segment, the place in it, and the base offset of the segment that follows, if one does. Blocks."""
    index = max(0, bisect_right(segments, offset, key=base_offset) - 1)
    while True:
        segment = segments[index]
        index += 1
        is_last = index >= len(segments)
        place = segment.locate(offset)
        # Compaction and truncation leave segments that end before the next one begins.
        if place is not None or is_last or segment.breaks_off_before(offset, segment.file):
            return segment, place, None if is_last else segments[index].base_offset


def cut_slice(
    segment: Segment, file: File, place: tuple[int, int], end_position: int, max_bytes: int, whole_first_batch: bool
) -> FileSlice | ErrorCode | None:
    """From a batch on, as much as is wanted, or CORRUPT_MESSAGE when that batch is damaged. It blocks only where an
    earlier run's records have not been checked yet."""
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
            return ErrorCode.CORRUPT_MESSAGE
    return FileSlice(file, position, size_bytes)


def refuse_damaged(segment: Segment, offset: int) -> ErrorCode:
    logger.error(
        "damaged records are not served: `odradek log verify` tells more", directory=segment.directory, offset=offset
    )
    return ErrorCode.CORRUPT_MESSAGE


def search_segments(find: Callable[[Sequence[Segment]], T], segments_now: Callable[[], Sequence[Segment]]) -> T:
    """What `find` finds, once more when segments were removed under it."""
    while True:
        segments = tuple(segments_now())
        try:
            return find(segments)
        except FileNotFoundError:
            if segments == tuple(segments_now()):
                raise


def base_offset(segment: Segment) -> int:
    return segment.base_offset
