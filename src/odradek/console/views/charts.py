"""The charts of the overview. A chart shows one value of the samples; the browser draws it. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odradek.console.history import Sample


class Chart(NamedTuple):
    """`unit` tells the browser how to write a value: `count`, `bytes`."""

    name: str
    title: str
    note: str
    unit: str


CHARTS = (
    Chart("records", "Records in", "per second, by the growth of offsets", "count"),
    Chart("bytes", "Bytes in", "per second, by the growth of logs on all replicas", "bytes"),
)


def columns(samples: Sequence[Sample]) -> dict[str, list[Any]]:
    """Times in seconds, and one list of values for each chart; None where a sample lacks the value."""
    found: dict[str, list[Any]] = {"time": [round(sample.time_s, 1) for sample in samples]}
    for chart in CHARTS:
        values = (sample.values.get(chart.name) for sample in samples)
        found[chart.name] = [None if value is None else round(value, 1) for value in values]
    return found
