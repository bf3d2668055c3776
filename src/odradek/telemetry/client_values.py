"""The latest values of each client's metrics, bounded in bytes for each client and for all of them together.

Values of the clients that have pushed least recently make room for those of others.
"""

from __future__ import annotations

import math
import sys
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from odradek.telemetry.otlp import Kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from uuid import UUID

    from odradek.telemetry.otlp import Point
    from odradek.telemetry.subscriptions import ClientFacts

MOST_BYTES_OF_A_CLIENT = 256 << 10
MOST_BYTES = 16 << 20
SERIES_BYTES = 400  # of the objects of one value, beside its text
MOST_AGGREGATES = 500
LARGEST_COUNT = (1 << 63) - 1  # the largest INT64 of a response
LARGEST_VALUE = sys.float_info.max

SeriesKey = tuple[str, tuple[tuple[str, str], ...]]  # name, attributes


@dataclass(slots=True)
class Value:
    """A gauge's last value, or the total of a sum. A histogram also has the number of its values."""

    kind: Kind
    value: float
    count: int


@dataclass(slots=True)
class ClientValues:
    client: ClientFacts
    pushed_ms: int = 0  # wall clock
    expires_ms: float = 0.0
    pushes: int = 0
    received_bytes: int = 0
    size_bytes: int = 0
    dropped: int = 0  # series that had no room
    series: dict[SeriesKey, Value] = field(default_factory=dict)


class Aggregate(NamedTuple):
    """One metric over all clients: how many have it, its sum, and its extremes."""

    name: str
    kind: Kind
    clients: int
    total: float
    smallest: float
    largest: float


class ClientValueStore:
    """The one owner of all values."""

    def __init__(self, most_bytes: int = MOST_BYTES, most_bytes_of_a_client: int = MOST_BYTES_OF_A_CLIENT) -> None:
        self._clients: OrderedDict[UUID, ClientValues] = OrderedDict()  # the least recent push first
        self._most_bytes = most_bytes
        self._most_bytes_of_a_client = most_bytes_of_a_client
        self.size_bytes = 0

    def __len__(self) -> int:
        return len(self._clients)

    def get(self, instance_id: UUID) -> ClientValues | None:
        return self._clients.get(instance_id)

    def items(self) -> Iterable[tuple[UUID, ClientValues]]:
        """The most recent push first."""
        return reversed(self._clients.items())

    def take(
        self,
        instance_id: UUID,
        client: ClientFacts,
        points: Iterable[Point],
        *,
        received_bytes: int,
        now_ms: int,
        expires_ms: float,
    ) -> None:
        values = self._clients.get(instance_id)
        if values is None:
            values = self._clients[instance_id] = ClientValues(client)
            self._grow(values, SERIES_BYTES)
        self._clients.move_to_end(instance_id)
        values.pushed_ms, values.expires_ms = now_ms, expires_ms
        values.pushes += 1
        values.received_bytes += received_bytes
        for point in points:
            self._add(values, point)
        while self.size_bytes > self._most_bytes and len(self._clients) > 1:
            self._forget(next(iter(self._clients)))

    def _add(self, values: ClientValues, point: Point) -> None:
        if point.value_count < 0:
            return
        key = (point.name, point.attributes)
        value = point.value if math.isfinite(point.value) else 0.0
        present = values.series.get(key)
        if present is not None and present.kind is point.kind:
            is_added = point.is_delta and point.kind is not Kind.GAUGE
            present.value = _in_range(present.value + value) if is_added else value
            present.count = min(present.count + point.value_count, LARGEST_COUNT) if is_added else point.value_count
            return
        size_bytes = SERIES_BYTES + len(point.name) + sum(len(name) + len(text) for name, text in point.attributes)
        if present is None and values.size_bytes + size_bytes > self._most_bytes_of_a_client:
            values.dropped += 1
            return
        if present is None:
            self._grow(values, size_bytes)
        values.series[key] = Value(point.kind, value, point.value_count)

    def _grow(self, values: ClientValues, size_bytes: int) -> None:
        values.size_bytes += size_bytes
        self.size_bytes += size_bytes

    def expire(self, now_ms: float) -> None:
        for instance_id in [each for each, values in self._clients.items() if values.expires_ms <= now_ms]:
            self._forget(instance_id)

    def _forget(self, instance_id: UUID) -> None:
        self.size_bytes -= self._clients.pop(instance_id).size_bytes

    def aggregates(self, limit: int = MOST_AGGREGATES) -> Iterator[Aggregate]:
        """One for each name, in the order of the names, at most `limit`: a bounded number of series for /metrics."""
        found: dict[str, tuple[Kind, int, float, float, float]] = {}
        for values in self._clients.values():
            totals: dict[str, tuple[Kind, float]] = {}
            for (name, _attributes), value in values.series.items():
                kind, total = totals.get(name, (value.kind, 0.0))
                totals[name] = (kind, _in_range(total + value.value))
            for name, (kind, total) in totals.items():
                known = found.get(name)
                if known is not None:
                    _, count, before, smallest, largest = known
                    both = _in_range(before + total)
                    found[name] = (kind, count + 1, both, min(smallest, total), max(largest, total))
                elif len(found) < limit:
                    found[name] = (kind, 1, total, total, total)
        for name in sorted(found):
            yield Aggregate(name, *found[name])


def _in_range(value: float) -> float:
    """The sum of finite numbers may be infinite."""
    return max(-LARGEST_VALUE, min(value, LARGEST_VALUE))
