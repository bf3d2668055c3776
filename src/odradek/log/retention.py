"""Which segments of a log have expired: whole segments, from the oldest on, by size and then by age.

The rules are Kafka's. A segment is as old as its newest record says; one without any timestamp is as old as its file.
A timestamp in the future keeps a segment until that time and its retention have passed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.log.segment_list import count_before

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odradek.host.disk import Disk
    from odradek.log.log_config import LogConfig
    from odradek.log.partition_log import PartitionLog
    from odradek.log.segment import Segment


def may_have_expired(log: PartitionLog) -> bool:
    """Whether `expired_offset` may find anything: most logs are empty, or keep all records."""
    config = log.config
    if not config.is_deleted or log.size_bytes == 0:
        return False
    is_too_large = 0 <= config.retention_bytes <= log.size_bytes - log.segments[0].size_bytes
    return config.retention_ms >= 0 or is_too_large


def expired_offset(log: PartitionLog, committed_offset: int, now_ms: int) -> int | None:
    """The log start offset that retention requires; None when nothing has expired. Blocks."""
    segments = tuple(log.segments)
    try:
        count = count_expired(segments, log.config, committed_offset, now_ms)
    except FileNotFoundError:
        if segments == tuple(log.segments):
            raise
        return None  # segments were removed concurrently: the next round decides
    if not count:
        return None
    offset = segments[count].base_offset if count < len(segments) else segments[-1].next_offset
    return offset if offset > log.log_start_offset else None  # else the expired segments only wait for removal


def remove_expired_aside(log: PartitionLog, disk: Disk, now_ms: int) -> None:
    """Removes files that recovery has set aside: those whose last write is older than `retention.ms`, and the oldest
    ones while they and the log are larger than `retention.bytes`. Blocks."""
    config, kept = log.config, []
    if not config.is_deleted:
        return
    sizes = {name: disk.file_size(f"{log.directory}/{name}") for name in log.aside_names}
    size_bytes = log.size_bytes + sum(sizes.values())
    for name in sorted(log.aside_names):
        path = f"{log.directory}/{name}"
        is_old = 0 <= config.retention_ms < now_ms - disk.modified_ms(path)
        if is_old or 0 <= config.retention_bytes < size_bytes:
            disk.remove(path)
            size_bytes -= sizes[name]
        else:
            kept.append(name)
    log.aside_names = kept


def expire_to(log: PartitionLog, offset: int) -> None:
    """Applies a result of `expired_offset`. The active segment expires only if nothing was appended since then."""
    if log.is_truncating:
        return
    if offset == log.log_end_offset > log.segments[-1].base_offset:
        log.roll()
    log.advance_log_start_offset(min(offset, log.segments[-1].base_offset))


def count_expired(segments: Sequence[Segment], config: LogConfig, committed_offset: int, now_ms: int) -> int:
    """How many of the oldest segments have expired. All of them only when the active one holds records: the caller
    rolls it. Blocks. Raises FileNotFoundError when segments are removed concurrently."""
    if not config.is_deleted:
        return 0
    deletable = _committed(segments, committed_offset)
    by_size = _count_over_size(deletable, config, sum(segment.size_bytes for segment in segments))
    return by_size + _count_over_age(deletable[by_size:], config, now_ms)


def _committed(segments: Sequence[Segment], committed_offset: int) -> Sequence[Segment]:
    """The segments that lie below the high watermark, which the log start must not pass."""
    count = count_before(segments, committed_offset)
    last = segments[-1]
    if count + 1 == len(segments) and last.size_bytes > 0 and last.next_offset <= committed_offset:
        count += 1
    return segments[:count]


def _count_over_size(segments: Sequence[Segment], config: LogConfig, size_bytes: int) -> int:
    if config.retention_bytes < 0:
        return 0
    surplus_bytes = size_bytes - config.retention_bytes
    for count, segment in enumerate(segments):
        surplus_bytes -= segment.size_bytes
        if surplus_bytes < 0:
            return count
    return len(segments)


def _count_over_age(segments: Sequence[Segment], config: LogConfig, now_ms: int) -> int:
    if config.retention_ms < 0:
        return 0
    for count, segment in enumerate(segments):
        if now_ms - segment.newest_ms() <= config.retention_ms:
            return count
    return len(segments)
