"""Totals of clients' metrics by name, kept up to date with each push, so that reading them takes few milliseconds.

A name stays as long as a client has it. When there are as many names as are allowed, others wait until one leaves:
clients that push new names displace none.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, NamedTuple

from odradek.conventions.dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from uuid import UUID

    from odradek.telemetry.otlp import Kind

MOST_AGGREGATES = 500
LARGEST_VALUE = sys.float_info.max


SeriesKey = tuple[str, tuple[tuple[str, str], ...]]  # name, attributes


@dataclass(slots=True)
class Value:
    """A gauge's last value, or the total of a sum. A histogram also has the number of its values."""

    kind: Kind
    value: float
    count: int


class Aggregate(NamedTuple):
    """One metric over all clients: how many have it, its sum, and its largest value."""

    name: str
    kind: Kind
    clients: int
    total: float
    largest: float


class _Metric:
    __slots__ = ("by_client", "kind")

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self.by_client: dict[UUID, float] = {}


class TotalsByName:
    def __init__(self, most_names: int = MOST_AGGREGATES) -> None:
        self._most_names = most_names
        self._metrics: dict[str, _Metric] = {}

    def replace(self, instance_id: UUID, series: Mapping[SeriesKey, Value]) -> None:
        """The totals of a client over the attributes of each metric. A client's series are only ever added to."""
        totals: dict[str, float] = {}
        kinds: dict[str, Kind] = {}
        for (name, _attributes), value in series.items():
            totals[name] = in_range(totals.get(name, 0.0) + value.value)
            kinds[name] = value.kind
        for name, total in totals.items():
            metric = self._metrics.get(name)
            if metric is None:
                if len(self._metrics) >= self._most_names:
                    continue
                metric = self._metrics[name] = _Metric(kinds[name])
            metric.by_client[instance_id] = total

    def remove(self, instance_id: UUID, series: Iterable[SeriesKey]) -> None:
        for name, _attributes in series:
            metric = self._metrics.get(name)
            if metric is not None:
                metric.by_client.pop(instance_id, None)
                if not metric.by_client:
                    del self._metrics[name]

    def aggregates(self) -> list[Aggregate]:
        found = []
        for name, metric in sorted(self._metrics.items()):
            totals = metric.by_client.values()
            found.append(Aggregate(name, metric.kind, len(totals), in_range(sum(totals)), max(totals)))
        return found


def in_range(value: float) -> float:
    """The sum of finite numbers may be infinite, or no number if infinite ones of both signs were added."""
    return max(-LARGEST_VALUE, min(value, LARGEST_VALUE))
