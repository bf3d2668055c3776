"""The reader behind `odradek consume` and the console: ranges of partitions, which are found before the first record is
read, batch by batch, without a group."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from odradek.admin.errors import NotAuthorized
from odradek.admin.records.record_fetcher import FetchSettings, RecordFetcher
from odradek.conventions.dataclass import dataclass
from odradek.conventions.failures import Failure
from odradek.conventions.figures import offset_range_text

if TYPE_CHECKING:
    from odradek.admin.cluster import Cluster
    from odradek.admin.offsets import Key
    from odradek.admin.records.fetched_batches import FetchedRecord, UnreadableBatch

POLL_S = 0.2
LAGGING_S = 10.0  # how long a new leader may have a lower high watermark than the last one had
COMMAND_SETTINGS = FetchSettings(decompressed_limit_bytes=256 * 1024 * 1024)


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """Where to start. At most one field is set; if none is, reading starts at the end."""

    from_beginning: bool = False
    from_time_ms: int | None = None
    offset: int | None = None
    last: int | None = None


class PartitionRange(NamedTuple):
    """Records from `start_offset`. `end_offset` is the end of the partition when the range was found."""

    partition: int
    start_offset: int
    end_offset: int


def find_ranges(cluster: Cluster, topic: str, partitions: Sequence[int], start: Start) -> list[PartitionRange]:
    """Range of each partition; Failure for an offset that no partition holds."""
    earliest = cluster.earliest_offsets(topic, partitions)
    latest = cluster.latest_offsets(topic, partitions)
    if start.from_time_ms is not None:
        starts = cluster.first_offsets(topic, start.from_time_ms, earliest, latest)
    elif start.offset is not None:
        starts = dict.fromkeys(partitions, start.offset)
        check_offset(topic, start.offset, earliest, latest)
    elif start.last is not None:
        starts = {partition: max(earliest[partition], latest[partition] - start.last) for partition in partitions}
    else:
        starts = earliest if start.from_beginning else latest
    bounds = ((each, earliest[each], latest[each]) for each in partitions)
    return [PartitionRange(each, min(max(starts[each], first), last), last) for each, first, last in bounds]


def check_offset(topic: str, offset: int, earliest: dict[int, int], latest: dict[int, int]) -> None:
    """Failure unless some partition holds the offset or ends there. The others start at their nearest offset."""
    if not any(earliest[partition] <= offset <= latest[partition] for partition in earliest):
        held = "; ".join(f"partition {p}: {offset_range_text(earliest[p], latest[p])}" for p in sorted(earliest))
        raise Failure(f"topic {topic} has no offset {offset} ({held})")


class RecordReader:
    """Reads ranges of partitions, by topic. `batches` yields lists of records until the ends or the idle timeout are
    reached.

    The idle timeout counts from the last record; up to the ends, from the last batch, with or without records.
    Batches that cannot be read are passed over, and given to `on_unreadable`. A partition that cannot be read is given
    to `on_failure`, and the others are read on; without `on_failure`, or with no other partition to follow, it is a
    Failure. `on_trouble` gets a line when the reading cannot go on for a while.
    """

    def __init__(
        self, cluster: Cluster, ranges: Mapping[str, Sequence[PartitionRange]], *, until_end: bool,
        on_unreadable: Callable[[UnreadableBatch], None],
        on_failure: Callable[[Key, Failure], None] | None = None,
        on_trouble: Callable[[str], None] = lambda _trouble: None, idle_timeout_ms: int | None = None,
        settings: FetchSettings = COMMAND_SETTINGS,
    ) -> None:  # fmt: skip
        self.cluster = cluster
        self.idle_timeout_ms = idle_timeout_ms
        self.until_end = until_end
        by_key = {(topic, each.partition): each for topic, found in ranges.items() for each in found}
        self.ends: dict[Key, int] = {
            key: each.end_offset for key, each in by_key.items() if until_end and each.start_offset < each.end_offset
        }
        self.reached: dict[Key, int] = {}  # the offset after the last record, of partitions that are finished
        self._fetcher = RecordFetcher(cluster, settings, on_unreadable, self._leave_out, on_trouble)
        wanted = self.ends if until_end else by_key
        self._fetcher.assign((key, by_key[key].start_offset) for key in wanted)
        self._short_since: dict[Key, float] = {}  # when partitions were found to end before their ranges
        self._on_failure = on_failure

    def __enter__(self) -> RecordReader:
        return self

    def __exit__(self, *_error: object) -> None:
        self._fetcher.close()

    def batches(self) -> Iterator[list[FetchedRecord]]:
        """Records as they arrive; an empty list after `POLL_S` without any, so that callers can check their limits."""
        active_at = time.monotonic()
        while not self.until_end or self.ends:
            records = self._fetcher.poll(POLL_S)
            if self.until_end:
                records = self._until_ends(records)
            yield records
            if records:
                active_at = time.monotonic()
                continue
            idle_s = time.monotonic() - (max(active_at, self._fetcher.heard_at) if self.until_end else active_at)
            if self.idle_timeout_ms is not None and idle_s * 1000 >= self.idle_timeout_ms:
                return

    def _leave_out(self, key: Key, failure: Failure) -> None:
        if self._on_failure is None or isinstance(failure, NotAuthorized):
            raise failure
        self._on_failure(key, failure)
        self.ends.pop(key, None)
        if not self.until_end and not self._fetcher.keys:
            raise failure

    def mark_written(self, records: Sequence[FetchedRecord]) -> None:
        """Nothing to do: without a group no offsets are committed."""

    def _until_ends(self, records: list[FetchedRecord]) -> list[FetchedRecord]:
        """The records before the ends. A partition is finished at its end in the range, or where an open transaction
        ends the log for this reader. A log that is shorter than it was may have a new leader that lags."""
        for key, end in list(self.ends.items()):
            position = self._fetcher.position(key)
            is_short = self._fetcher.is_at_end(key) and self._fetcher.high_watermark(key) < end
            if position is not None and position < end and is_short:
                since = self._short_since.setdefault(key, time.monotonic())
                if time.monotonic() - since > LAGGING_S:
                    self._fetcher.remove([key])
                    self._leave_out(key, Failure(f"{key[0]}-{key[1]} ends at offset {position}, and not at {end}"))
            elif position is not None and (position >= end or self._fetcher.is_at_end(key)):
                self.reached[key] = position
                self._fetcher.remove([key])
                if position > end:
                    kept = ((each, (each.topic(), each.partition()) != key) for each in records)
                    records = [each for each, is_other in kept if is_other or each.offset() < end]
                del self.ends[key]
        return records
