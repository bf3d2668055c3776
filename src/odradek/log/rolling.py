"""When a log begins a new segment. Pure; the rules are Kafka's."""

from odradek.log.log_config import LogConfig
from odradek.log.offset_index import ENTRY_BYTES as OFFSET_ENTRY_BYTES
from odradek.log.segment import LARGEST_RELATIVE_OFFSET, Segment
from odradek.log.time_index import ENTRY_BYTES as TIME_ENTRY_BYTES


def must_roll(
    segment: Segment, config: LogConfig, size_bytes: int, last_offset: int, max_timestamp: int, now_ms: int
) -> bool:
    """Whether a batch that ends at `last_offset` belongs into the segment after this one."""
    if segment.size_bytes + size_bytes > config.segment_bytes:
        return True
    if segment.size_bytes:
        # By the records' own time where they have one, so that a segment spans a stretch of it.
        first_timestamp = segment.first_timestamp
        waited_ms = max_timestamp - first_timestamp if first_timestamp >= 0 else now_ms - segment.created_ms
        if waited_ms > config.segment_ms - segment.roll_jitter_ms:
            return True
    return (
        segment.offset_index.entry_count >= config.segment_index_bytes // OFFSET_ENTRY_BYTES
        or segment.time_index.entry_count >= config.segment_index_bytes // TIME_ENTRY_BYTES - 1
        or last_offset - segment.base_offset > LARGEST_RELATIVE_OFFSET
    )
