"""The median of several runs with its extremes, and the ratio of two medians. Pure."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Spread:
    median: float
    minimum: float
    maximum: float
    count: int


def spread(values: Sequence[float]) -> Spread:
    if not values:
        raise ValueError("no run gave a figure")
    return Spread(statistics.median(values), min(values), max(values), len(values))


def ratio(ours: Spread | None, theirs: Spread | None) -> float | None:
    """Ours divided by theirs; None if one is missing or theirs is zero."""
    if ours is None or theirs is None or theirs.median == 0:
        return None
    return ours.median / theirs.median
