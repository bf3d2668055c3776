"""The records that a thread hands to a page that watches it, with counts and how it ended. Of a bounded size."""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.console.records.record import Record

BATCH_RECORDS = 100
KEPT_BYTES = 2 * 1024 * 1024


class Taken(NamedTuple):
    """`skipped` records were dropped, because more arrived than a page shows."""

    records: list[Record]
    seen: int
    matched: int
    skipped: int
    total: int
    is_done: bool
    failure: str
    notice: str  # what is not shown; the feed goes on
    rest: Mapping[int, int]  # the offset of each partition at which another search goes on; empty without a limit


class Feed:
    """One writer, one reader. Beyond its size the oldest records are dropped, or, in a search, the writer stops."""

    def __init__(self, limit: int = BATCH_RECORDS) -> None:
        self._lock = threading.Lock()
        self._waiting: deque[Record] = deque()
        self._waiting_bytes = 0
        self._limit = limit
        self._seen = self._matched = self._skipped = 0
        self.total = 0
        self.notice = ""
        self.rest: Mapping[int, int] = {}
        self._failure = ""
        self._is_done = False
        self.is_stopped = False

    def stop(self) -> None:
        """The reader has gone away."""
        self.is_stopped = True

    def add(self, seen: int, matching: list[Record], dropped: int = 0) -> None:
        """`dropped` further records match, and are older than these."""
        with self._lock:
            self._seen += seen
            self._matched += len(matching) + dropped
            self._skipped += dropped
            for record in matching:
                self._waiting.append(record)
                self._waiting_bytes += record.size_bytes
                while len(self._waiting) > self._limit or (self._waiting_bytes > KEPT_BYTES and len(self._waiting) > 1):
                    self._waiting_bytes -= self._waiting.popleft().size_bytes
                    self._skipped += 1

    def end(self, failure: str = "") -> None:
        with self._lock:
            self._failure = failure
            self._is_done = True

    def take(self) -> Taken:
        """The records since the last call; counts are of the whole time."""
        with self._lock:
            records = list(self._waiting)
            self._waiting.clear()
            self._waiting_bytes = 0
            counts = self._seen, self._matched, self._skipped, self.total
            return Taken(records, *counts, self._is_done, self._failure, self.notice, self.rest)
