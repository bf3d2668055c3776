"""A histogram with fixed buckets: an observation costs a binary search and two additions."""

from __future__ import annotations

from bisect import bisect_left
from itertools import pairwise
from typing import TYPE_CHECKING

from odradek.metrics.samples import HistogramValue

if TYPE_CHECKING:
    from collections.abc import Sequence

LATENCY_BOUNDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Seconds. The smallest is near the time of a request that waits for nothing."""


class Histogram:
    __slots__ = ("bounds", "counts", "sum")

    def __init__(self, bounds: Sequence[float] = LATENCY_BOUNDS) -> None:
        if not bounds or any(low >= high for low, high in pairwise(bounds)):
            raise ValueError("the bounds of a histogram must rise")
        self.bounds = tuple(bounds)
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def observe(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value

    def value(self) -> HistogramValue:
        return HistogramValue(self.bounds, tuple(self.counts), self.sum)
