"""`odradek cluster metrics`: the metrics of brokers, over the wire."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from odradek.admin.broker_metrics import BrokerMetrics, MetricPoint, metrics_of_all
from odradek.admin.broker_requests import BrokerRequests
from odradek.cli.client.options import cluster_options
from odradek.cli.framework.commands import command
from odradek.cli.framework.options import flag, option, watch_options
from odradek.cli.framework.output import print_result, strong, watch
from odradek.conventions.failures import Failure

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from odradek.admin.cluster import Cluster

BUCKET = "_bucket"
COUNTER_SUFFIXES = ("_total", BUCKET, "_sum", "_count")


@command(
    examples=[
        ("the metrics of all brokers", "odradek cluster metrics"),
        ("requests and their errors, of broker 1", "odradek cluster metrics odradek_request --broker 1"),
        ("rates, every two seconds, until Ctrl-C", "odradek cluster metrics odradek_topic --watch --interval 2"),
        ("for a script", "odradek cluster metrics --format json | jq '.brokers[0].points'"),
    ]
)
@click.argument("prefixes", metavar="[NAME]…", nargs=-1)
@option("--broker broker_ids", "ID", int, "Only this broker; may be repeated.", multiple=True)
@flag("--buckets shows_buckets", "Show the buckets of histograms, too.")
@watch_options("Refresh the metrics, with counters as rates, until Ctrl-C.", "answers")
@cluster_options
def metrics(
    prefixes: tuple[str, ...], broker_ids: tuple[int, ...], shows_buckets: bool, is_watched: bool, interval: float,
    cluster: Cluster, as_json: bool,
) -> None:  # fmt: skip
    """Show the metrics of brokers of Odradek; NAME is the beginning of a metric's name.

    docs/metrics.md lists the metrics. The same are served over HTTP, at the address of metrics.listener.
    """
    requests = BrokerRequests(cluster)
    before: dict[int, BrokerMetrics] = {}

    def read() -> tuple[Any, list[str]]:
        nonlocal before
        found, missing = metrics_of_all(requests, prefixes)
        if broker_ids:
            found = [each for each in found if each.broker_id in broker_ids]
            missing = {broker_id: reason for broker_id, reason in missing.items() if broker_id in broker_ids}
        lines = metrics_lines(found, missing, before, shows_buckets=shows_buckets)
        before = {each.broker_id: each for each in found}
        return metrics_object(found, missing, shows_buckets=shows_buckets), lines

    if is_watched:
        watch(interval, read, as_json=as_json)
        return
    value, lines = read()
    print_result(value, "\n".join(lines), as_json=as_json)
    if not value["brokers"]:
        raise Failure("no broker returned its metrics: see above" if value["missing"] else "there is no such broker")


def metrics_lines(
    found: Sequence[BrokerMetrics], missing: Mapping[int, str], before: Mapping[int, BrokerMetrics], *,
    shows_buckets: bool,
) -> list[str]:  # fmt: skip
    """One line for each point. With the metrics of an earlier moment, counters are shown as rates per second."""
    lines: list[str] = []
    for metrics in found:
        lines += ["", strong(f"broker {metrics.broker_id}")]
        rows = list(_rows(metrics, before.get(metrics.broker_id), shows_buckets=shows_buckets))
        width = max((len(name) for name, _ in rows), default=0)
        lines += [f"{name:<{width}}  {value}" for name, value in rows]
    lines += [f"broker {broker_id}: {reason}" for broker_id, reason in missing.items()]
    return lines[1:] if lines and not lines[0] else lines


def _points(metrics: BrokerMetrics, shows_buckets: bool) -> list[dict[str, Any]]:
    shown = (each for each in metrics.points if shows_buckets or not each.name.endswith(BUCKET))
    return [{"name": each.name, "labels": dict(each.labels), "value": each.value} for each in shown]


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
    found: Sequence[BrokerMetrics], missing: Mapping[int, str], *, shows_buckets: bool
) -> dict[str, Any]:
    return {
        "brokers": [
            {"broker": metrics.broker_id, "time_ms": metrics.time_ms, "points": _points(metrics, shows_buckets)}
            for metrics in found
        ],
        "missing": [{"broker": broker_id, "reason": reason} for broker_id, reason in missing.items()],
    }
