"""The records of a page, chosen while those of several partitions arrive. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from odradek.console.records.record import Record

Rank = tuple[int, int, int]


def in_page_order(records: Iterable[Record], *, is_newest_first: bool, is_by_offset: bool) -> list[Record]:
    """By time, or the newest first; records of a partition stay in the order of their offsets, whatever their times."""
    sign = -1 if is_newest_first else 1
    by_offset = sorted(records, key=lambda record: sign * record.offset)
    latest: dict[int, int] = {}
    ranks: dict[tuple[int, int], Rank] = {}
    for record in by_offset:
        partition, offset = record.partition, record.offset
        time_ms = 0 if is_by_offset else sign * (record.timestamp_ms or 0)
        time_ms = latest[partition] = max(time_ms, latest.get(partition, time_ms))
        ranks[partition, offset] = time_ms, sign * offset, sign * partition
    return sorted(by_offset, key=lambda record: ranks[record.partition, record.offset])


class RecordPage:
    """The first records by time, or the newest ones first; of a single partition by offset. Of a bounded number and
    size; the first record is kept whatever its size.

    Of each partition the page has records without a gap, so that another page can go on behind them.
    """

    def __init__(self, limit: int, most_bytes: int, *, is_newest_first: bool, is_by_offset: bool) -> None:
        self.records: list[Record] = []
        self.is_cut = False  # at the limit of bytes
        self._limit = limit
        self._most_bytes = most_bytes
        self._is_newest_first = is_newest_first
        self._sign = -1 if is_newest_first else 1
        self._is_by_offset = is_by_offset
        self._left_out: dict[int, int] = {}  # the offset of the first record that is not on the page, by partition

    def add(self, records: Iterable[Record]) -> None:
        self.records += [record for record in records if not self._is_behind_gap(record)]
        self.records = in_page_order(
            self.records, is_newest_first=self._is_newest_first, is_by_offset=self._is_by_offset
        )
        size_bytes = kept = 0
        for record in self.records[: self._limit]:
            size_bytes += record.size_bytes
            if kept and size_bytes > self._most_bytes:
                self.is_cut = True
                break
            kept += 1
        for record in reversed(self.records[kept:]):
            self._left_out[record.partition] = record.offset
        del self.records[kept:]

    def wants_more_of(self, partition: int) -> bool:
        """Whether records of the partition that follow those that were added may belong to the page."""
        is_full = self.is_cut or len(self.records) == self._limit
        return partition not in self._left_out and not (is_full and self.records[-1].partition == partition)

    @property
    def has_left_out(self) -> bool:
        return bool(self._left_out)

    def end_in(self, partition: int, read_until: int) -> int:
        """The offset between the records of a partition that are on the page and those that follow."""
        left_out = self._left_out.get(partition)
        return read_until if left_out is None else left_out + self._is_newest_first

    def _is_behind_gap(self, record: Record) -> bool:
        left_out = self._left_out.get(record.partition)
        return left_out is not None and self._sign * record.offset >= self._sign * left_out
