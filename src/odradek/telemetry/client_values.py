"""The latest values of each client's metrics, bounded in bytes for each client and for all of them together.

Values of the clients that have pushed least recently make room for those of others.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from dataclasses import field
from typing import TYPE_CHECKING

from odradek.conventions.dataclass import dataclass
from odradek.telemetry.otlp import Kind
from odradek.telemetry.totals import MOST_AGGREGATES, TotalsByName, Value, in_range

if TYPE_CHECKING:
    from collections.abc import Iterable
    from uuid import UUID

    from odradek.telemetry.otlp import Point
    from odradek.telemetry.subscriptions import ClientFacts
    from odradek.telemetry.totals import Aggregate, SeriesKey

MOST_BYTES_OF_A_CLIENT = 256 << 10
MOST_BYTES = 8 << 20
SERIES_BYTES = 400  # of the objects of one value, beside its text
LARGEST_COUNT = (1 << 63) - 1  # the largest INT64 of a response


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


class ClientValueStore:
    """The one owner of all values."""

    def __init__(
        self,
        most_bytes: int = MOST_BYTES,
        most_bytes_of_a_client: int = MOST_BYTES_OF_A_CLIENT,
        most_aggregates: int = MOST_AGGREGATES,
    ) -> None:
        self._clients: OrderedDict[UUID, ClientValues] = OrderedDict()  # the least recent push first
        self._most_bytes = most_bytes
        self._most_bytes_of_a_client = most_bytes_of_a_client
        self._totals = TotalsByName(most_aggregates)
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
        self._totals.replace(instance_id, values.series)
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
            present.value = in_range(present.value + value) if is_added else value
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
        values = self._clients.pop(instance_id)
        self.size_bytes -= values.size_bytes
        self._totals.remove(instance_id, values.series)

    def aggregates(self) -> list[Aggregate]:
        """A bounded number of aggregates for /metrics, in the order of their names."""
        return self._totals.aggregates()
