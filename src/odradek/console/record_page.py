"""The records of a page, chosen while those of several partitions arrive. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from odradek.console.record import Record

Rank = tuple[int, int, int]


class RecordPage:
    """The first records by time, or the newest ones first; of a single partition by offset. Of a bounded number and
    size; the first record is kept whatever its size."""

    def __init__(self, limit: int, most_bytes: int, *, is_newest_first: bool, is_by_offset: bool) -> None:
        self.records: list[Record] = []
        self.is_cut = False  # at the limit of bytes
        self._limit = limit
        self._most_bytes = most_bytes
        self._sign = -1 if is_newest_first else 1
        self._is_by_offset = is_by_offset
        self._counts: dict[int, int] = {}  # records that were added, by partition
        self._last: dict[int, Rank] = {}  # the last one in the order of the page, by partition

    def add(self, records: Iterable[Record]) -> None:
        for record in records:
            rank = self._rank(record)
            self._counts[record.partition] = self._counts.get(record.partition, 0) + 1
            self._last[record.partition] = max(self._last.get(record.partition, rank), rank)
            self.records.append(record)
        self.records.sort(key=self._rank)
        del self.records[self._limit :]
        size_bytes = 0
        for number, record in enumerate(self.records):
            size_bytes += record.size_bytes
            if number and size_bytes > self._most_bytes:
                del self.records[number:]
                self.is_cut = True
                break

    def wants_more_of(self, partition: int) -> bool:
        """Whether records of the partition that follow those that were added may belong to the page."""
        if self._counts.get(partition, 0) >= self._limit:
            return False
        is_full = self.is_cut or len(self.records) == self._limit
        return not is_full or partition not in self._last or self._last[partition] <= self._rank(self.records[-1])

    def _rank(self, record: Record) -> Rank:
        time_ms = 0 if self._is_by_offset else record.timestamp_ms or 0
        return self._sign * time_ms, self._sign * record.offset, self._sign * record.partition
