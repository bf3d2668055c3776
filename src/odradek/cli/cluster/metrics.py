"""`odradek cluster metrics`: the metrics of brokers, over the wire."""

from __future__ import annotations

import sys
import threading
import time
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import click

from odradek.admin.broker_metrics import BrokerMetrics, metrics_of_all
from odradek.admin.broker_requests import BrokerRequests
from odradek.cli.client.options import cluster_options
from odradek.cli.cluster.metrics_view import metrics_lines, metrics_object
from odradek.cli.framework.commands import command
from odradek.cli.framework.interrupt import stop_on_interrupt
from odradek.cli.framework.live_lines import LiveLines
from odradek.cli.framework.output import faint, print_json, say
from odradek.cli.framework.parameter_types import POSITIVE
from odradek.conventions.failures import Failure

if TYPE_CHECKING:
    from odradek.admin.cluster import Cluster


@command(
    examples=[
        ("the metrics of all brokers", "odradek cluster metrics"),
        ("requests and their errors, of broker 1", "odradek cluster metrics odradek_request --broker 1"),
        ("rates, every two seconds, until Ctrl-C", "odradek cluster metrics odradek_topic --watch --interval 2"),
        ("for a script", "odradek cluster metrics --format json | jq '.brokers[0].points'"),
    ]
)
@click.argument("prefixes", metavar="[NAME]…", nargs=-1)
@click.option(
    "--broker", "broker_ids", type=int, multiple=True, metavar="ID", help="Only this broker; may be repeated."
)
@click.option("--buckets", "shows_buckets", is_flag=True, help="Show the buckets of histograms, too.")
@click.option("--watch", is_flag=True, help="Refresh the metrics, with counters as rates, until Ctrl-C.")
@click.option(
    "--interval", type=POSITIVE, metavar="SECONDS", default=1.0, show_default=True, help="Time between two answers."
)
@cluster_options
def metrics(
    prefixes: tuple[str, ...],
    broker_ids: tuple[int, ...],
    shows_buckets: bool,
    watch: bool,
    interval: float,
    cluster: Cluster,
    as_json: bool,
) -> None:
    """Show the metrics of brokers of Odradek; NAME is the beginning of a metric's name.

    docs/metrics.md lists the metrics. The same are served over HTTP, at the address of metrics.listener.
    """
    requests = BrokerRequests(cluster)
    if watch:
        _follow(requests, prefixes, broker_ids, interval, shows_buckets=shows_buckets, as_json=as_json)
        return
    found, missing = _read(requests, prefixes, broker_ids)
    if as_json:
        print_json(metrics_object(found, missing, shows_buckets=shows_buckets))
    else:
        say("\n".join(metrics_lines(found, missing, shows_buckets=shows_buckets)))
    if not found:
        raise Failure("no broker returned its metrics: see above" if missing else "there is no such broker")


def _read(
    requests: BrokerRequests, prefixes: tuple[str, ...], broker_ids: tuple[int, ...]
) -> tuple[list[BrokerMetrics], dict[int, str]]:
    found, missing = metrics_of_all(requests, prefixes)
    if not broker_ids:
        return found, missing
    return (
        [each for each in found if each.broker_id in broker_ids],
        {broker_id: reason for broker_id, reason in missing.items() if broker_id in broker_ids},
    )


def _follow(
    requests: BrokerRequests,
    prefixes: tuple[str, ...],
    broker_ids: tuple[int, ...],
    interval_s: float,
    *,
    shows_buckets: bool,
    as_json: bool,
) -> None:
    """Until Ctrl-C. The last metrics stay on the screen while no broker answers."""
    is_stopped = threading.Event()
    screen = LiveLines() if sys.stdout.isatty() and not as_json else None
    before: dict[int, BrokerMetrics] = {}
    lines: list[str] = []
    with stop_on_interrupt(is_stopped), screen or nullcontext():
        while not is_stopped.is_set():
            began_at = time.monotonic()
            shown: dict[str, Any] = {}
            trouble = ""
            try:
                found, missing = _read(requests, prefixes, broker_ids)
            except Failure as failure:
                shown, trouble = {"error": failure.message}, failure.message
            else:
                shown = metrics_object(found, missing, shows_buckets=shows_buckets)
                lines = metrics_lines(found, missing, before, shows_buckets=shows_buckets)
                before = {each.broker_id: each for each in found}
            if as_json:
                print_json(shown)
            elif screen is not None:
                note = f"{time.strftime('%H:%M:%S')}, every {interval_s:g} s; Ctrl-C stops"
                screen.draw([*lines, "", click.style(trouble, fg="red") if trouble else faint(note)])
            else:
                say("\n".join([trouble] if trouble else [*lines, ""]))
            is_stopped.wait(max(interval_s - (time.monotonic() - began_at), 0))
