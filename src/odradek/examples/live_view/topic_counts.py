"""Records and rates of topics, by their end offsets. Pure: the caller passes offsets and times."""

from __future__ import annotations

from collections import deque
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

RATE_OVER_S = 5.0
HISTORY_S = 60.0


class TopicCounts:
    def __init__(self, topics: Sequence[str]) -> None:
        self.topics = tuple(topics)
        self._first_ends: dict[str, dict[int, int]] = {}
        self._ends: dict[str, dict[int, int]] = {}
        self._totals: deque[tuple[float, dict[str, int]]] = deque()

    def take_ends(self, now_s: float, ends: Mapping[str, Mapping[int, int]]) -> None:
        """Takes end offsets by topic and partition. All records of a topic that appears after the first call count."""
        for topic, partitions in ends.items():
            first = self._first_ends.setdefault(topic, dict(partitions) if not self._totals else {})
            for partition, end in partitions.items():
                first.setdefault(partition, 0)
                self._ends.setdefault(topic, {})[partition] = end
        self._totals.append((now_s, {topic: self.total(topic) for topic in self.topics}))
        while now_s - self._totals[0][0] > HISTORY_S:
            self._totals.popleft()

    def first_ends(self, topic: str) -> Mapping[int, int]:
        return self._first_ends.get(topic, {})

    def ends(self, topic: str) -> Mapping[int, int]:
        return self._ends.get(topic, {})

    def total(self, topic: str) -> int:
        """The number of records written to the topic since the view started."""
        first = self._first_ends.get(topic, {})
        return sum(end - first[partition] for partition, end in self._ends.get(topic, {}).items())

    def rate(self, topic: str, now_s: float) -> float:
        """The rate of the last seconds, in records per second."""
        recent = [(at_s, totals[topic]) for at_s, totals in self._totals if now_s - at_s <= RATE_OVER_S]
        if len(recent) < 2 or recent[-1][0] <= recent[0][0]:
            return 0.0
        return (recent[-1][1] - recent[0][1]) / (recent[-1][0] - recent[0][0])

    def rate_history(self, topic: str, now_s: float, columns: int) -> list[float]:
        """The rate in each part of the last minute, oldest first."""
        width_s = HISTORY_S / columns
        last: dict[int, tuple[float, int]] = {}  # the last sample in each part
        for at_s, totals in self._totals:
            last[columns - 1 - int((now_s - at_s) / width_s)] = (at_s, totals[topic])
        rates = [0.0] * columns
        for (first, (from_s, before)), (index, (to_s, after)) in pairwise(sorted(last.items())):
            # A part without a sample of its own has the rate of the samples around it.
            for part in range(max(0, first + 1), min(index, columns - 1) + 1):
                rates[part] = max(0, after - before) / (to_s - from_s)
        return rates
