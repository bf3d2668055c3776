"""`odradek rigs watch`: the live dashboard of the rigs pipeline."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

import click

from odradek.cli.client.options import cluster_options
from odradek.cli.framework.commands import command
from odradek.cli.framework.interrupt import stop_on_interrupt
from odradek.cli.framework.parameter_types import POSITIVE, TOPIC_NAME
from odradek.pipelines.rigs.dashboard import chosen_screen, watch
from odradek.pipelines.rigs.dashboard_model import DashboardModel, Topics

if TYPE_CHECKING:
    from odradek.cli.client.cluster import Cluster

DEFAULTS = Topics()


@command(
    "watch",
    examples=[
        ("until Ctrl-C", "odradek rigs watch"),
        ("for a minute, as JSON lines", "odradek rigs watch --seconds 60 --format json"),
    ],
)
@click.option("--seconds", type=POSITIVE, metavar="N", help="Stop after N seconds.")
@click.option(
    "--source",
    type=TOPIC_NAME,
    default=DEFAULTS.source,
    show_default=True,
    metavar="NAME",
    help="Topic of the rigs' records.",
)
@click.option(
    "--dead-letters",
    type=TOPIC_NAME,
    default=DEFAULTS.dead_letters,
    show_default=True,
    metavar="NAME",
    help="Topic of the records that the pipeline could not process.",
)
@cluster_options
def watch_rigs(seconds: float | None, source: str, dead_letters: str, cluster: Cluster, as_json: bool) -> None:
    """Show the dashboard of the rigs pipeline.

    Rates of its topics, the latest warnings with the time from event to alert, the pumps by state, dead letters with
    their reasons, and the lag of the pipeline. Without a terminal, one line per second.
    """
    model = DashboardModel(Topics(source=source, dead_letters=dead_letters), time.time())
    consumer = cluster.consumer({"fetch.wait.max.ms": 20, "auto.offset.reset": "earliest"})
    is_stopped = threading.Event()
    screen = chosen_screen(cluster.bootstrap_servers, as_json=as_json)
    try:
        with stop_on_interrupt(is_stopped):
            watch(consumer, cluster.admin(), model, screen, is_stopped, seconds)
    finally:
        consumer.close()
