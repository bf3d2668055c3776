"""`odradek up`: the oil rig example: a broker, simulated pumps, the pipeline on Spark, and the dashboard."""

from __future__ import annotations

import contextlib
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click
from confluent_kafka import KafkaException

from odradek.cli.client.cluster import Cluster
from odradek.cli.demo.local_broker import check_port, start_broker
from odradek.cli.framework.commands import command
from odradek.cli.framework.failure import Failure
from odradek.cli.framework.interrupt import stop_on_interrupt
from odradek.cli.framework.options import format_option
from odradek.cli.framework.parameter_types import POSITIVE, TEXT
from odradek.cli.pipeline.process import PipelineProcess
from odradek.cli.rigs.fleet_options import pumps_option, rate_option, seed_option
from odradek.pipelines.rigs.dashboard import chosen_screen, watch
from odradek.pipelines.rigs.dashboard_model import DashboardModel, Topics
from odradek.pipelines.rigs.fleet import Fleet, FleetSettings
from odradek.pipelines.rigs.producer import RigProducer, producer_settings, sending

if TYPE_CHECKING:
    from collections.abc import Iterator

PARTITIONS = 2
DEFINITION = Path("examples", "rigs", "pipeline.yml")


@command(
    "up",
    examples=[
        ("until Ctrl-C", "odradek up"),
        ("half a minute, then a summary", "odradek up --seconds 30"),
        ("on an existing cluster, with more records", "odradek up --bootstrap-server kafka:9092 --rate 3000"),
    ],
)
@click.option("--seconds", type=POSITIVE, metavar="N", help="Stop after N seconds, and print a summary.")
@rate_option
@pumps_option
@seed_option
@click.option(
    "--bootstrap-server", "-b", metavar="HOST:PORT", type=TEXT, help="Use this cluster instead of starting a broker."
)
@click.option(
    "--port",
    type=click.IntRange(min=0, max=65535),
    default=9092,
    show_default=True,
    metavar="PORT",
    help="Port of the broker; 0 for a free one.",
)
@click.option("--master", metavar="URL", type=TEXT, help="Spark's master, such as local[2] or spark://host:7077.")
@click.option(
    "--definition",
    metavar="FILE",
    type=click.Path(dir_okay=False, exists=True),
    default=str(DEFINITION),
    show_default=True,
    help="Definition of the pipeline.",
)
@format_option
def up(
    seconds: float | None, rate: float, pumps: int, seed: int, bootstrap_server: str | None, port: int,
    master: str | None, definition: str, as_json: bool,
) -> None:  # fmt: skip
    """Run the oil rig example: a broker, simulated pumps, a pipeline and a dashboard.

    The pipeline writes topics, warnings, a view and aggregates. Ctrl-C stops everything.
    """
    is_stopped = threading.Event()
    with contextlib.ExitStack() as stack:
        stack.enter_context(stop_on_interrupt(is_stopped))
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="odradek-up-"))
        cluster = Cluster(bootstrap_server or stack.enter_context(own_broker(port)), {})
        is_new = cluster.create_topic(Topics().source, PARTITIONS)
        arguments = [definition, "--bootstrap-server", cluster.bootstrap_servers, "--checkpoints", folder]
        arguments += ["--warehouse", f"sqlite:///{folder}/rigs.db", *(["--master", master] if master else [])]
        arguments += [] if is_new else ["--from", "latest"]  # older records would count as minutes late
        process = stack.enter_context(PipelineProcess(arguments, is_stopped, report))
        process.wait_until_running()
        fleet = Fleet(FleetSettings(pumps, seed))
        sender = RigProducer(cluster.producer(producer_settings(rate)), Topics().source, fleet, rate)
        if not is_stopped.is_set():
            with sending(sender, is_stopped):
                show(cluster, is_stopped, seconds, as_json)
                report("stopping")
    process.raise_failure()
    if sender.failure is not None:
        raise Failure(f"the records could not be produced: {sender.failure.args[0].str()}")


def report(line: str) -> None:
    click.echo(line, err=True)


@contextlib.contextmanager
def own_broker(port: int) -> Iterator[str]:
    check_port(port, "up")
    running = start_broker(port, None)
    report(f"broker ready on {running.bootstrap_servers}")
    try:
        yield running.bootstrap_servers
    finally:
        running.close()


def show(cluster: Cluster, is_stopped: threading.Event, seconds: float | None, as_json: bool) -> None:
    consumer = cluster.consumer({"fetch.wait.max.ms": 20, "auto.offset.reset": "earliest"})
    try:
        model = DashboardModel(Topics(), time.time())
        screen = chosen_screen(cluster.bootstrap_servers, as_json=as_json)
        watch(consumer, cluster.admin(), model, screen, is_stopped, seconds)
    except KafkaException as error:
        raise Failure(error.args[0].str()) from None
    finally:
        consumer.close()
