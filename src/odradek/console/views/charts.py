"""The charts of the overview. A chart shows one value of the samples; the browser draws it. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odradek.console.models.history import Sample


class Chart(NamedTuple):
    """`unit` is the format in which the browser shows a value: `count`, `bytes`, `ms`."""

    name: str
    title: str
    note: str
    unit: str


CHARTS = (
    Chart("records", "Records in", "per second, by the growth of offsets", "count"),
    Chart("bytes", "Bytes in", "per second, by the growth of logs on all replicas", "bytes"),
)
# Of brokers that report metrics.
MEASURED_CHARTS = (
    Chart("records", "Records in", "per second", "count"),
    Chart("records_out", "Records out", "per second", "count"),
    Chart("produce_p99", "Produce latency", "p99", "ms"),
    Chart("bytes", "Bytes in", "per second", "bytes"),
    Chart("bytes_out", "Bytes out", "per second", "bytes"),
    Chart("produce_p50", "Produce latency", "median", "ms"),
)


def columns(samples: Sequence[Sample]) -> dict[str, list[Any]]:
    """Times in seconds, and one list of values for each chart; None where a sample lacks the value."""
    found: dict[str, list[Any]] = {"time": [round(sample.time_s, 1) for sample in samples]}
    for chart in MEASURED_CHARTS:
        values = (sample.values.get(chart.name) for sample in samples)
        found[chart.name] = [None if value is None else round(value, 2) for value in values]
    return found
