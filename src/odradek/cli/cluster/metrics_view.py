"""Metrics of brokers as lines of text and as an object. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from odradek.cli.framework.output import strong

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from odradek.admin.broker_metrics import BrokerMetrics, MetricPoint

BUCKET = "_bucket"
COUNTER_SUFFIXES = ("_total", BUCKET, "_sum", "_count")


def metrics_lines(
    found: Sequence[BrokerMetrics],
    missing: Mapping[int, str],
    before: Mapping[int, BrokerMetrics] | None = None,
    *,
    shows_buckets: bool = False,
) -> list[str]:
    """One line for each point. With the metrics of an earlier moment, counters are shown as rates per second."""
    lines: list[str] = []
    for metrics in found:
        earlier = None if before is None else before.get(metrics.broker_id)
        lines += ["", strong(f"broker {metrics.broker_id}")]
        rows = list(_rows(metrics, earlier, shows_buckets=shows_buckets))
        width = max((len(name) for name, _ in rows), default=0)
        lines += [f"{name:<{width}}  {value}" for name, value in rows]
    lines += [f"broker {broker_id}: {reason}" for broker_id, reason in missing.items()]
    return lines[1:] if lines and not lines[0] else lines


def _rows(metrics: BrokerMetrics, earlier: BrokerMetrics | None, *, shows_buckets: bool) -> Iterator[tuple[str, str]]:
    known = {} if earlier is None else {_key(point): point.value for point in earlier.points}
    elapsed_s = 0.0 if earlier is None else (metrics.time_ms - earlier.time_ms) / 1000
    for point in metrics.points:
        if point.name.endswith(BUCKET) and not shows_buckets:
            continue
        value = number_text(point.value)
        if is_counter(point.name, metrics) and _key(point) in known and elapsed_s > 0:
            value += f"  {number_text(max(point.value - known[_key(point)], 0) / elapsed_s)}/s"
        yield _series_text(point), value


def is_counter(name: str, metrics: BrokerMetrics) -> bool:
    """Whether a point only grows: of a counter or a histogram."""
    return metrics.kinds.get(name, "histogram" if name.endswith(COUNTER_SUFFIXES) else "gauge") != "gauge"


def _key(point: MetricPoint) -> tuple[str, tuple[tuple[str, str], ...]]:
    return point.name, tuple(sorted(point.labels.items()))


def _series_text(point: MetricPoint) -> str:
    labels = ", ".join(f"{name}={value}" for name, value in point.labels.items())
    return f"{point.name}  {labels}" if labels else point.name


def number_text(value: float) -> str:
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.6g}"


def metrics_object(
    found: Sequence[BrokerMetrics], missing: Mapping[int, str], *, shows_buckets: bool = False
) -> dict[str, Any]:
    return {
        "brokers": [
            {
                "broker": metrics.broker_id,
                "time_ms": metrics.time_ms,
                "points": [
                    {"name": point.name, "labels": dict(point.labels), "value": point.value}
                    for point in metrics.points
                    if shows_buckets or not point.name.endswith(BUCKET)
                ],
            }
            for metrics in found
        ],
        "missing": [{"broker": broker_id, "reason": reason} for broker_id, reason in missing.items()],
    }
