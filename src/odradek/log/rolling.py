"""When a log begins a new segment. Pure; the rules are Kafka's."""

from collections.abc import Sequence

from odradek.log.log_config import LogConfig
from odradek.log.offset_index import ENTRY_BYTES as OFFSET_ENTRY_BYTES
from odradek.log.segment import LARGEST_RELATIVE_OFFSET, Segment
from odradek.log.time_index import ENTRY_BYTES as TIME_ENTRY_BYTES
from odradek.protocol.batch import BatchHeader

LARGEST_TIMESTAMP = 2**63 - 1


def must_roll(
    segment: Segment, config: LogConfig, size_bytes: int, last_offset: int, max_timestamp: int, now_ms: int
) -> bool:
    """Whether a batch that ends at `last_offset` must begin a new segment instead of joining this one."""
    if segment.size_bytes + size_bytes > config.segment_bytes:
        return True
    if segment.size_bytes:
        # By the timestamps of the records where they have them, so that a segment covers a limited period.
        first_timestamp = segment.first_timestamp
        waited_ms = max_timestamp - first_timestamp if first_timestamp >= 0 else now_ms - segment.created_ms
        if waited_ms > config.segment_ms - segment.roll_jitter_ms:
            return True
    return (
        segment.offset_index.entry_count >= config.segment_index_bytes // OFFSET_ENTRY_BYTES
        or segment.time_index.entry_count >= config.segment_index_bytes // TIME_ENTRY_BYTES - 1
        or last_offset - segment.base_offset > LARGEST_RELATIVE_OFFSET
    )


def count_run(segment: Segment, config: LogConfig, headers: Sequence[BatchHeader], now_ms: int) -> int:
    """How many of these batches, of which `must_roll` has accepted the first, surely belong into this segment: they are
    appended with one write. Every batch is taken to add index entries, so a run may end early, never late."""
    free_bytes = config.segment_bytes - segment.size_bytes - headers[0].size_bytes
    free_entries = min(
        config.segment_index_bytes // OFFSET_ENTRY_BYTES - segment.offset_index.entry_count,
        config.segment_index_bytes // TIME_ENTRY_BYTES - 1 - segment.time_index.entry_count,
    )
    first_timestamp = segment.first_timestamp if segment.size_bytes else headers[0].max_timestamp
    period_ms = config.segment_ms - segment.roll_jitter_ms
    if first_timestamp < 0 and now_ms - segment.created_ms > period_ms:
        return 1
    largest_timestamp = first_timestamp + period_ms if first_timestamp >= 0 else LARGEST_TIMESTAMP
    largest_offset = segment.base_offset + LARGEST_RELATIVE_OFFSET
    for count, header in enumerate(headers):
        if count == 0:
            continue
        free_bytes -= header.size_bytes
        if free_bytes < 0 or count >= free_entries:
            return count
        if header.max_timestamp > largest_timestamp or header.last_offset > largest_offset:
            return count
    return len(headers)
