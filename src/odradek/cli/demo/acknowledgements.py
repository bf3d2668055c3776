"""Acknowledgements of each partition over time: how many, and the gaps between them. Pure: the caller has the clock."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from itertools import pairwise

CELL_S = 0.1  # of the strip that the picture shows
CELLS = 40
WARM_UP_S = 1.0  # after the first acknowledgement; until then connections are opened
GAP_S = 0.25  # a longer pause between two acknowledgements is reported


@dataclass(frozen=True, slots=True)
class Gap:
    """A pause between two acknowledgements of a partition, from `began_s` on."""

    partition: int
    began_s: float
    seconds: float

    @property
    def milliseconds(self) -> int:
        return round(self.seconds * 1000)


@dataclass(slots=True)
class PartitionAcks:
    """`acknowledged` has the number of each acknowledged record."""

    index: int
    last_s: float
    first_s: float | None = None
    longest_s: float = 0.0
    acknowledged: list[int] = field(default_factory=list)
    cells: deque[tuple[int, int]] = field(default_factory=lambda: deque(maxlen=CELLS + 1))  # number of the cell, count

    def take(self, number: int, now_s: float) -> Gap | None:
        """Count an acknowledgement; a gap if it was awaited long."""
        pause_s = now_s - self.last_s
        began_s, self.last_s = self.last_s, now_s
        self.acknowledged.append(number)
        cell = int(now_s / CELL_S)
        if self.cells and self.cells[-1][0] == cell:
            self.cells[-1] = cell, self.cells[-1][1] + 1
        else:
            self.cells.append((cell, 1))
        if self.first_s is None:
            self.first_s = now_s
        if now_s - self.first_s < WARM_UP_S:
            return None
        self.longest_s = max(self.longest_s, pause_s)
        return Gap(self.index, began_s, pause_s) if pause_s >= GAP_S else None

    def strip(self, now_s: float) -> list[int | None]:
        """Acknowledgements in each of the last cells, the present one excluded, the oldest first; None before the first
        acknowledgement."""
        counts = dict(self.cells)
        last = int(now_s / CELL_S)
        first = last if self.first_s is None else int(self.first_s / CELL_S)
        return [counts.get(cell, 0) if cell >= first else None for cell in range(last - CELLS, last)]

    def waiting_s(self, now_s: float) -> float:
        return now_s - self.last_s


class Acknowledgements:
    def __init__(self, partitions: int, now_s: float) -> None:
        self.partitions = [PartitionAcks(index, now_s) for index in range(partitions)]
        self.failed = 0

    @property
    def total(self) -> int:
        return sum(len(each.acknowledged) for each in self.partitions)

    @property
    def longest_s(self) -> float:
        return max(each.longest_s for each in self.partitions)


@dataclass(frozen=True, slots=True)
class ReadBack:
    """What was read at the end, beside what was acknowledged."""

    read: int
    lost: int
    repeated: int
    reordered: int


def compare(acknowledged: list[list[int]], read: list[list[int]]) -> ReadBack:
    """Numbers by partition. Records that were read but not acknowledged are not counted as errors: the answer to them
    was on its way when the demo ended."""
    lost = repeated = reordered = 0
    for expected, found in zip(acknowledged, read, strict=True):
        present = set(found)
        lost += sum(number not in present for number in expected)
        repeated += len(found) - len(present)
        reordered += sum(later < earlier for earlier, later in pairwise(found))
    return ReadBack(sum(map(len, read)), lost, repeated, reordered)
