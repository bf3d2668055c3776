"""Samples of the last hour, in rings of a fixed size: those of the cluster, and series by topic or group."""

from __future__ import annotations

from collections import OrderedDict, deque
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

HOUR_S = 3600
BUCKET_S = 10.0
SET_BACK_S = 60.0


class Sample(NamedTuple):
    """Values at one moment, by the name of the chart that shows them."""

    time_s: float
    values: Mapping[str, float]


class Samples:
    """The samples of an hour. Each has a number, so that a reader finds those that it has not seen."""

    def __init__(self, interval_s: float) -> None:
        self._ring: deque[Sample] = deque(maxlen=max(1, round(HOUR_S / interval_s)))
        self.count = 0  # of all samples, those that were dropped included

    def __len__(self) -> int:
        return len(self._ring)

    def add(self, sample: Sample) -> None:
        """A clock that was set back by a minute or more begins another history: times in a chart rise."""
        if self._ring and sample.time_s <= self._ring[-1].time_s - SET_BACK_S:
            self._ring.clear()
        self._ring.append(sample)
        self.count += 1

    def since(self, count: int) -> list[Sample]:
        """The samples that were added after the first `count`, as far as they are kept."""
        new = min(self.count - count, len(self._ring))
        return list(self._ring)[len(self._ring) - new :] if new > 0 else []


class Series:
    """Means of buckets of ten seconds, by name. Beyond `names`, the name that was changed least recently is dropped."""

    def __init__(self, names: int, points: int = int(HOUR_S / BUCKET_S)) -> None:
        self._names = names
        self._points = points
        self._rings: OrderedDict[str, deque[tuple[int, float, int]]] = OrderedDict()  # bucket, sum, number of values

    def __iter__(self) -> Iterator[str]:
        return iter(self._rings)

    def __len__(self) -> int:
        return len(self._rings)

    def add(self, name: str, time_s: float, value: float) -> None:
        ring = self._rings.get(name)
        if ring is None:
            ring = self._rings[name] = deque(maxlen=self._points)
            if len(self._rings) > self._names:
                self._rings.popitem(last=False)
        self._rings.move_to_end(name)
        bucket = int(time_s // BUCKET_S)
        if ring and ring[-1][0] == bucket:
            _, total, number = ring.pop()
            ring.append((bucket, total + value, number + 1))
        else:
            ring.append((bucket, value, 1))

    def has(self, name: str) -> bool:
        return name in self._rings

    def forget(self, name: str) -> None:
        self._rings.pop(name, None)

    def points(self, name: str, now_s: float, points: int = 60) -> list[float | None]:
        """The last buckets up to now; None where there is no value."""
        ring = self._rings.get(name)
        if ring is None:
            return []
        known = {bucket: total / number for bucket, total, number in list(ring)}
        last = int(now_s // BUCKET_S)
        return [known.get(bucket) for bucket in range(last - points + 1, last + 1)]
