"""The threads behind live parts of the messages page: the tail of a topic, a search, and an export."""

from __future__ import annotations

import queue
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from odradek.cli.framework.failure import Failure
from odradek.cli.records.consume_range import PartitionRange
from odradek.console.cluster.records import find_reading_ranges, follow, scan
from odradek.console.feed import BATCH_RECORDS
from odradek.console.record import json_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from odradek.cli.client.cluster import Cluster
    from odradek.console.cluster.records import Reading
    from odradek.console.feed import Feed
    from odradek.console.preparation import Preparation
    from odradek.console.record import Record
    from odradek.console.record_filter import RecordFilter

MOST_MATCHES = 500
FIRST_WINDOW = 1_000  # offsets of each partition
MOST_SCANNED = 5_000_000
SEARCH_S = 120.0
EXPORT_RECORDS = 100_000
EXPORT_S = 600.0


def tail(cluster: Cluster, feed: Feed, reading: Reading, prepare: Preparation, wanted: RecordFilter) -> None:
    """Until the reader of the feed goes away. Without a filter only the newest records are masked and kept."""
    try:
        for batch in follow(cluster, reading.topic, reading.partition, lambda: feed.is_stopped):
            newest = batch if wanted.is_active else batch[-BATCH_RECORDS:]
            feed.add(len(batch), _matching(newest, prepare, wanted), len(batch) - len(newest))
        feed.end()
    except Failure as failure:
        feed.end(failure.message)
    except Exception as error:
        feed.end(f"{type(error).__name__}: {error}")


def search(cluster: Cluster, feed: Feed, reading: Reading, prepare: Preparation, wanted: RecordFilter) -> None:
    """From the start of the reading to the end of the topic, or from the newest records back to the oldest; until a
    limit is reached."""
    deadline = time.monotonic() + SEARCH_S
    seen = matched = 0
    is_backward = reading.start == "newest"
    try:
        ranges = find_reading_ranges(cluster, everything(reading))
        feed.total = sum(max(each.end_offset - each.start_offset, 0) for each in ranges)
        for window in backward_windows(ranges) if is_backward else [ranges]:
            found: list[Record] = []
            for batch in scan(cluster, reading.topic, window, lambda: feed.is_stopped):
                matching = _matching(batch, prepare, wanted)
                seen += len(batch)
                found += matching
                feed.add(len(batch), [] if is_backward else matching[: MOST_MATCHES - matched])
                matched += 0 if is_backward else len(matching)
                if matched >= MOST_MATCHES or seen >= MOST_SCANNED or time.monotonic() > deadline:
                    feed.end(f"stopped after {seen:,} records; narrow the search for more")
                    return
                del found[:-MOST_MATCHES]
            if is_backward:
                found.sort(key=lambda each: (each.timestamp_ms or 0, each.offset), reverse=True)
                feed.add(0, found[: MOST_MATCHES - matched])
                matched += len(found)
                if matched >= MOST_MATCHES:
                    feed.end(f"stopped after {MOST_MATCHES} matches; narrow the search for more")
                    return
        feed.end()
    except Failure as failure:
        feed.end(failure.message)
    except Exception as error:
        feed.end(f"{type(error).__name__}: {error}")


def everything(reading: Reading) -> Reading:
    """A search from the newest records on goes back to the oldest; any other begins where it says."""
    return replace(reading, start="oldest") if reading.start == "newest" else reading


def backward_windows(ranges: Sequence[PartitionRange]) -> Iterator[list[PartitionRange]]:
    """The ranges in parts, the last records of each partition first. Each part is four times as long as the one before:
    Kafka reads forward only, and the newest matches should come first."""
    ends = {each.partition: each.end_offset for each in ranges}
    length = FIRST_WINDOW
    while True:
        window = [
            PartitionRange(each.partition, max(each.start_offset, ends[each.partition] - length), ends[each.partition])
            for each in ranges
            if each.start_offset < ends[each.partition]
        ]
        if not window:
            return
        yield window
        ends.update({each.partition: each.start_offset for each in window})
        length *= 4


def _matching(batch: Sequence[Record], prepare: Preparation, wanted: RecordFilter) -> list[Record]:
    if not wanted.is_active and not (batch and prepare.changes(batch[0].topic)):
        return list(batch)
    return [record for record in map(prepare, batch) if wanted.matches(record)]


def export(
    cluster: Cluster,
    reading: Reading,
    prepare: Preparation,
    wanted: RecordFilter,
    chunks: queue.Queue[bytes | None],
    is_stopped: Callable[[], bool],
) -> None:
    """Put JSON lines into the queue, and None at the end. A slow browser makes the reading slow."""
    try:
        for chunk in _lines(cluster, reading, prepare, wanted, is_stopped):
            while not is_stopped():
                try:
                    chunks.put(chunk, timeout=0.5)
                    break
                except queue.Full:
                    continue
    finally:
        while not is_stopped():
            try:
                chunks.put(None, timeout=0.5)
                break
            except queue.Full:
                continue


def _lines(
    cluster: Cluster,
    reading: Reading,
    prepare: Preparation,
    wanted: RecordFilter,
    is_stopped: Callable[[], bool],
) -> Iterator[bytes]:
    deadline = time.monotonic() + EXPORT_S
    left = EXPORT_RECORDS
    ranges = find_reading_ranges(cluster, everything(reading) if wanted.is_active else reading)
    for batch in scan(cluster, reading.topic, ranges, is_stopped):
        found = _matching(batch, prepare, wanted)[:left]
        left -= len(found)
        if found:
            yield b"".join(map(json_line, found))
        if not left or time.monotonic() > deadline:
            return
