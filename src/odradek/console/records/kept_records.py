"""The newest records of a search, of a bounded number and size. Pure."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from odradek.console.records.record import Record


class NewestRecords:
    """Beyond its limits the oldest records are dropped; the newest one is kept whatever its size."""

    def __init__(self, most_records: int, most_bytes: int) -> None:
        self.records: deque[Record] = deque()
        self.dropped = 0
        self.dropped_until: dict[int, int] = {}  # the offset after the last one that was dropped, by partition
        self._size_bytes = 0
        self._most_records = most_records
        self._most_bytes = most_bytes

    def add(self, records: Iterable[Record]) -> None:
        for record in records:
            self.records.append(record)
            self._size_bytes += record.size_bytes
            while len(self.records) > 1 and (
                len(self.records) > self._most_records or self._size_bytes > self._most_bytes
            ):
                oldest = self.records.popleft()
                self._size_bytes -= oldest.size_bytes
                self.dropped_until[oldest.partition] = oldest.offset + 1
                self.dropped += 1

    def take(self) -> list[Record]:
        taken = list(self.records)
        self.records.clear()
        self._size_bytes = 0
        return taken
