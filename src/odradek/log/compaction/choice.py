"""Whether a log is worth compacting, and from where to where. The rules are those of Kafka's LogCleanerManager."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from odradek.log.batch_scan import scan_headers
from odradek.log.log_config import NO_LIMIT_MS, LogConfig
from odradek.log.segment import Segment


class Cleanable(NamedTuple):
    """`end_offset` is the base offset of the first segment that may not be compacted."""

    first_dirty_offset: int
    end_offset: int
    clean_bytes: int
    dirty_bytes: int
    is_overdue: bool  # by max.compaction.lag.ms

    @property
    def dirty_ratio(self) -> float:
        return self.dirty_bytes / (self.clean_bytes + self.dirty_bytes) if self.dirty_bytes else 0.0

    def is_worth_compacting(self, config: LogConfig) -> bool:
        return self.dirty_bytes > 0 and (self.is_overdue or self.dirty_ratio > config.min_cleanable_dirty_ratio)


def choose_first_dirty_offset(clean_offset: int | None, log_start_offset: int, log_end_offset: int) -> int:
    """The offset of the checkpoint, or the log start when the checkpoint lies outside the log. The owner of the offset
    lowers it when the log is truncated: a log that has grown past it again does not show that."""
    if clean_offset is None or not log_start_offset <= clean_offset <= log_end_offset:
        return log_start_offset
    return clean_offset


def assess(
    segments: Sequence[Segment], config: LogConfig, *, first_dirty_offset: int, safe_offset: int, now_ms: int
) -> Cleanable:
    """The last segment is the active one. Blocks: the compaction lags depend on timestamps in files."""
    active_offset = segments[-1].base_offset
    inactive = [(segment, following.base_offset) for segment, following in pairwise(segments)]
    end_offset = min(safe_offset, active_offset)
    if config.min_compaction_lag_ms > 0:
        youngest_ms = now_ms - config.min_compaction_lag_ms
        dirty = (segment for segment, end in inactive if end > first_dirty_offset)
        end_offset = min([end_offset, *_first_offset_newer_than(youngest_ms, dirty)])
    # Whole segments only: the segment that holds `end_offset` is not compacted.
    cleanable = [(segment, end) for segment, end in inactive if end <= end_offset]
    dirty_segments = [segment for segment, end in cleanable if end > first_dirty_offset]
    return Cleanable(
        first_dirty_offset,
        segments[len(cleanable)].base_offset,
        clean_bytes=sum(segment.size_bytes for segment, _ in cleanable if segment.base_offset < first_dirty_offset),
        dirty_bytes=sum(segment.size_bytes for segment in dirty_segments),
        is_overdue=_is_overdue(dirty_segments, config, now_ms),
    )


def _first_offset_newer_than(timestamp_ms: int, segments: Iterable[Segment]) -> Iterator[int]:
    """The base offset of the first segment with a newer record, if there is one."""
    for segment in segments:
        if segment.load_max_timestamp() > timestamp_ms:
            yield segment.base_offset
            return


def _is_overdue(dirty: Sequence[Segment], config: LogConfig, now_ms: int) -> bool:
    """Whether the first record of a segment is older than `max.compaction.lag.ms`."""
    if config.max_compaction_lag_ms >= NO_LIMIT_MS:
        return False
    latest_ms = now_ms - config.max_compaction_lag_ms
    return any(0 < _first_timestamp(segment) < latest_ms for segment in dirty)


def _first_timestamp(segment: Segment) -> int:
    first = next(scan_headers(segment.file, 0, segment.size_bytes), None)
    return first[1].max_timestamp if first else -1
