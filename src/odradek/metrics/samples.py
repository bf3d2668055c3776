"""The values of metrics at one moment."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence


class Kind(enum.Enum):
    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class Definition(NamedTuple):
    """One metric of the catalog."""

    name: str
    kind: Kind
    labels: tuple[str, ...]
    text: str


class HistogramValue(NamedTuple):
    """`counts` has one more entry than `bounds`: the observations above the largest bound."""

    bounds: Sequence[float]
    counts: Sequence[int]
    sum: float


class Sample(NamedTuple):
    """One series of a metric: the values of its labels in the order of the definition, and its value."""

    name: str
    labels: tuple[str, ...]
    value: float | HistogramValue


class Point(NamedTuple):
    """One line of the exposition format; a histogram has several. `suffix` is empty, _bucket, _sum or _count."""

    suffix: str
    labels: tuple[tuple[str, str], ...]
    value: float


class Family(NamedTuple):
    """A metric and its series."""

    definition: Definition
    points: list[Point]
