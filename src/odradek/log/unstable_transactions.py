"""The transactions of one partition that bound what a read_committed consumer may read: the open ones, and those that
have ended but whose marker is not below the high watermark. Pure."""

from collections.abc import Iterable
from typing import NamedTuple

NO_UNSTABLE_OFFSET = 2**63 - 1  # larger than any offset


class EndedTransaction(NamedTuple):
    first_offset: int
    marker_offset: int


class UnstableTransactions:
    """A transaction begins at the log end, so transactions are added in the order of their first offsets."""

    __slots__ = ("ended", "first_unstable_offset", "open")

    def __init__(self, open_transactions: Iterable[tuple[int, int]] = ()) -> None:
        """`open_transactions` are producer ids and first offsets, in any order."""
        self.open: dict[int, int] = dict(sorted(open_transactions, key=lambda each: each[1]))
        """The first offset by the producer id, the oldest transaction first."""
        self.ended: list[EndedTransaction] = []  # in the order of their markers
        self.first_unstable_offset = self._find_first()

    def begin(self, producer_id: int, first_offset: int) -> None:
        self.open[producer_id] = first_offset
        self.first_unstable_offset = min(self.first_unstable_offset, first_offset)

    def end(self, producer_id: int, marker_offset: int) -> int | None:
        """Its first offset; None when the producer has no open transaction. The first unstable offset moves with the
        high watermark, in `commit_before`."""
        first_offset = self.open.pop(producer_id, None)
        if first_offset is not None:
            self.ended.append(EndedTransaction(first_offset, marker_offset))
        return first_offset

    def oldest_open_offset(self, otherwise: int) -> int:
        """The first offset of the oldest open transaction."""
        return next(iter(self.open.values()), otherwise)

    def commit_before(self, high_watermark: int) -> None:
        """Forgets the ended transactions whose markers lie below the high watermark."""
        if self.ended:
            self.ended = [each for each in self.ended if each.marker_offset >= high_watermark]
            self.first_unstable_offset = self._find_first()

    def take_ended(self, others: "UnstableTransactions", end_offset: int) -> None:
        """Replaces the ended transactions by those of `others` whose markers lie before this offset: a state that is
        rebuilt from a snapshot does not know the transactions that ended before it."""
        self.ended = [each for each in tuple(others.ended) if each.marker_offset < end_offset]
        self.first_unstable_offset = self._find_first()

    def _find_first(self) -> int:
        first_open_offset = self.oldest_open_offset(NO_UNSTABLE_OFFSET)
        if not self.ended:
            return first_open_offset
        return min(first_open_offset, *[each.first_offset for each in self.ended])
