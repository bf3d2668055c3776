"""The threads behind live parts of the messages page: the tail of a topic, a search, and an export."""

from __future__ import annotations

import queue
import time
from typing import TYPE_CHECKING

from odradek.cli.framework.failure import Failure
from odradek.console.cluster.records import find_reading_ranges, follow, scan
from odradek.console.feed import BATCH_RECORDS
from odradek.console.masking import mask
from odradek.console.record import json_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from odradek.cli.client.cluster import Cluster
    from odradek.console.cluster.records import Reading
    from odradek.console.feed import Feed
    from odradek.console.masking import MaskRule
    from odradek.console.record import Record
    from odradek.console.record_filter import RecordFilter

MOST_MATCHES = 500
MOST_SCANNED = 5_000_000
SEARCH_S = 120.0
EXPORT_RECORDS = 100_000
EXPORT_S = 600.0


def tail(cluster: Cluster, feed: Feed, reading: Reading, masks: Sequence[MaskRule], wanted: RecordFilter) -> None:
    """Until the reader of the feed goes away. Without a filter only the newest records are masked and kept."""
    try:
        for batch in follow(cluster, reading.topic, reading.partition, lambda: feed.is_stopped):
            newest = batch if wanted.is_active else batch[-BATCH_RECORDS:]
            feed.add(len(batch), _matching(newest, masks, wanted), len(batch) - len(newest))
        feed.end()
    except Failure as failure:
        feed.end(failure.message)
    except Exception as error:
        feed.end(f"{type(error).__name__}: {error}")


def search(cluster: Cluster, feed: Feed, reading: Reading, masks: Sequence[MaskRule], wanted: RecordFilter) -> None:
    """From the start of the reading to the end of the topic, or until a limit is reached."""
    deadline = time.monotonic() + SEARCH_S
    seen = matched = 0
    try:
        ranges = find_reading_ranges(cluster, reading)
        feed.total = sum(max(each.end_offset - each.start_offset, 0) for each in ranges)
        for batch in scan(cluster, reading.topic, ranges, lambda: feed.is_stopped):
            matching = _matching(batch, masks, wanted)[: MOST_MATCHES - matched]
            seen += len(batch)
            matched += len(matching)
            feed.add(len(batch), matching)
            if matched >= MOST_MATCHES or seen >= MOST_SCANNED or time.monotonic() > deadline:
                feed.end(f"stopped after {seen:,} records and {matched:,} matches; narrow the search for more")
                return
        feed.end()
    except Failure as failure:
        feed.end(failure.message)
    except Exception as error:
        feed.end(f"{type(error).__name__}: {error}")


def _matching(batch: Sequence[Record], masks: Sequence[MaskRule], wanted: RecordFilter) -> list[Record]:
    if not masks and not wanted.is_active:
        return list(batch)
    masked = (mask(record, masks) for record in batch)
    return [record for record in masked if wanted.matches(record)]


def export(
    cluster: Cluster,
    reading: Reading,
    masks: Sequence[MaskRule],
    wanted: RecordFilter,
    chunks: queue.Queue[bytes | None],
    is_stopped: Callable[[], bool],
) -> None:
    """Put JSON lines into the queue, and None at the end. A slow browser makes the reading slow."""
    try:
        for chunk in _lines(cluster, reading, masks, wanted, is_stopped):
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
    masks: Sequence[MaskRule],
    wanted: RecordFilter,
    is_stopped: Callable[[], bool],
) -> Iterator[bytes]:
    deadline = time.monotonic() + EXPORT_S
    left = EXPORT_RECORDS
    for batch in scan(cluster, reading.topic, find_reading_ranges(cluster, reading), is_stopped):
        found = _matching(batch, masks, wanted)[:left]
        left -= len(found)
        if found:
            yield b"".join(map(json_line, found))
        if not left or time.monotonic() > deadline:
            return
