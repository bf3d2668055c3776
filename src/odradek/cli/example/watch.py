"""`odradek example watch`: the live view of an example."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

import click
from confluent_kafka.admin import AdminClient

from odradek.admin.records.record_fetcher import FetchSettings, RecordFetcher
from odradek.cli.client.options import cluster_options
from odradek.cli.example.examples import DEFAULT_EXAMPLE, chosen_example, read_view, warehouse_of
from odradek.cli.framework.commands import OptionalArgument, command
from odradek.cli.framework.interrupt import stop_on_interrupt
from odradek.cli.framework.options import option
from odradek.cli.framework.parameter_types import POSITIVE, TEXT
from odradek.examples.live_view.model import LiveViewModel
from odradek.examples.live_view.screens import chosen_screen
from odradek.examples.live_view.watching import watch
from odradek.local.executable import command_name

if TYPE_CHECKING:
    from odradek.admin.cluster import Cluster
    from odradek.admin.offsets import Key
    from odradek.conventions.failures import Failure

SETTINGS = FetchSettings(32 * 1024 * 1024, max_wait_ms=20, offset_reset="earliest")


@command(
    "watch",
    examples=[
        ("until Ctrl-C", "odradek example watch rigs"),
        ("for a minute, as JSON lines", "odradek example watch rigs --seconds 60 --format json"),
    ],
)
@click.argument("name", metavar="EXAMPLE", type=TEXT, default=DEFAULT_EXAMPLE, cls=OptionalArgument)
@option("--seconds", "N", POSITIVE, "Stop after N seconds.")
@option("--warehouse", "URL", TEXT, "Database of the pipeline's views. Default: that of the definition.")
@cluster_options
def watch_example(name: str, seconds: float | None, warehouse: str | None, cluster: Cluster, as_json: bool) -> None:
    """Show the live view of an example.

    EXAMPLE is the name of an example or a folder; its `view.yml` declares the panels: rates of topics, latency and lag
    of the pipeline, states, tables, rows of views. Without a terminal, one line per second.
    """
    example = chosen_example(name)
    view = read_view(example)
    source = ViewSource(cluster)
    is_stopped = threading.Event()
    screen = chosen_screen(view.title, consume_hint(view.output, cluster.bootstrap_servers), as_json=as_json)
    screen.bootstrap_servers = cluster.bootstrap_servers
    url = warehouse or warehouse_of(example)
    try:
        with stop_on_interrupt(is_stopped):
            screen.open()
            admin = AdminClient(cluster.client_settings({}))
            watch(source, admin, url, LiveViewModel(view, time.time()), screen, is_stopped, seconds)
    finally:
        screen.close()
        source.close()


class ViewSource(RecordFetcher):
    """Goes on without the batches and the partitions that cannot be read."""

    def __init__(self, cluster: Cluster) -> None:
        self.failed: dict[Key, str] = {}
        super().__init__(cluster, SETTINGS, lambda _unreadable: None, self._leave_out)

    def _leave_out(self, key: Key, failure: Failure) -> None:
        self.failed[key] = failure.message


def consume_hint(topic: str, bootstrap_servers: str) -> str:
    """One of the servers is enough for a command that is typed by hand."""
    first = bootstrap_servers.partition(",")[0]
    return f"in another terminal: {command_name()} consume {topic} -b {first}"
