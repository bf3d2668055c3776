"""The one owner of what a broker exposes: the sources of samples, and their order in the catalog."""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING

from odradek.metrics import catalog, exposition
from odradek.metrics.samples import Family, HistogramValue, Point

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from odradek.metrics.samples import Definition, Sample

    Source = Callable[[], Iterable[Sample]]


class MetricsRegistry:
    """Sources are read when samples are collected, so that measuring costs what its owner pays, and nothing else."""

    def __init__(self, definitions: Mapping[str, Definition] | None = None) -> None:
        self._definitions = definitions
        self._sources: list[Source] = []

    def add(self, source: Source) -> None:
        self._sources.append(source)

    def collect(self, prefixes: Sequence[str] = ()) -> list[Family]:
        """The families whose names begin with one of the prefixes, or all, in the order of the catalog; none without
        series. A sample that the catalog does not define is a bug: KeyError."""
        definitions = catalog.CATALOG if self._definitions is None else self._definitions
        by_name: dict[str, list[Point]] = {}
        beginnings = tuple(prefixes) or ("",)
        for source in self._sources:
            for sample in source():
                definition = definitions[sample.name]
                if sample.name.startswith(beginnings):
                    by_name.setdefault(sample.name, []).extend(points_of(sample, definition))
        return [Family(each, by_name[name]) for name, each in definitions.items() if name in by_name]


def points_of(sample: Sample, definition: Definition) -> list[Point]:
    labels = tuple(zip(definition.labels, sample.labels, strict=True))
    value = sample.value
    if not isinstance(value, HistogramValue):
        return [Point("", labels, value)]
    totals = list(accumulate(value.counts))
    bounds = [*(exposition.number_text(bound) for bound in value.bounds), "+Inf"]
    points = [Point("_bucket", (*labels, ("le", bound)), total) for bound, total in zip(bounds, totals, strict=True)]
    return [*points, Point("_sum", labels, value.sum), Point("_count", labels, totals[-1])]
