"""`odradek example simulate`: produces the simulated records of an example."""

from __future__ import annotations

import sys
import threading
import time
from typing import TYPE_CHECKING, Any

import click

from odradek.cli.client.options import cluster_options
from odradek.cli.example.examples import (
    DEFAULT_EXAMPLE,
    chosen_example,
    entities_option,
    overridden,
    rate_option,
    read_simulation,
    seed_option,
)
from odradek.cli.framework.commands import OptionalArgument, command
from odradek.cli.framework.interrupt import stop_on_interrupt
from odradek.cli.framework.options import option
from odradek.cli.framework.output import print_json, say
from odradek.cli.framework.parameter_types import POSITIVE, TEXT, TOPIC_NAME, WRITTEN_TIME_MS
from odradek.conventions.failures import Failure
from odradek.conventions.figures import count_text
from odradek.examples.simulator.population import Population
from odradek.examples.simulator.producer import RecordProducer, producer_settings

if TYPE_CHECKING:
    from odradek.admin.cluster import Cluster

LINE_EVERY_S = 1.0
SHARE = click.FloatRange(0, 1)


@command(
    "simulate",
    examples=[
        ("until Ctrl-C", "odradek example simulate rigs"),
        (
            "more pumps, more records, more malformed ones",
            "odradek example simulate rigs --entities 900 --rate 5000 --malformed 0.05",
        ),
        (
            "the same records in every run",
            "odradek example simulate rigs --seed 3 --start 2015-01-01T00:00Z --seconds 60",
        ),
    ],
)
@click.argument("name", metavar="EXAMPLE", type=TEXT, default=DEFAULT_EXAMPLE, cls=OptionalArgument)
@option("--topic", "NAME", TOPIC_NAME, "Topic of the records. Default: that of the simulator.")
@rate_option
@option("--seconds", "N", POSITIVE, "Stop after N seconds.")
@entities_option
@seed_option
@option("--start", "TIME", WRITTEN_TIME_MS, "Time of the first record. Default: now.")
@option("--late", "SHARE", SHARE, "Share of late records.")
@option("--malformed", "SHARE", SHARE, "Share of malformed records.")
@cluster_options
def simulate(
    name: str, topic: str | None, rate: float | None, seconds: float | None, entities: int | None, seed: int | None,
    start: int | None, late: float | None, malformed: float | None, cluster: Cluster, as_json: bool,
) -> None:  # fmt: skip
    """Produce the simulated records of an example.

    EXAMPLE is the name of an example or a folder; its `simulator.yml` declares entities, signals, faults and flaws.
    The topic is created if it does not exist.
    """
    declared = read_simulation(chosen_example(name))
    simulation = overridden(declared, rate, entities, seed, late, malformed)
    topic = topic or simulation.topic
    cluster.create_topic(topic, simulation.partitions)
    producer = cluster.producer(producer_settings(simulation.rate))
    started_s = None if start is None else start / 1000
    sender = RecordProducer(producer, topic, Population(simulation), simulation.rate, started_s=started_s)
    is_stopped = threading.Event()
    began_at = time.monotonic()
    reporter = threading.Thread(target=report, args=(sender, is_stopped, as_json), daemon=True)
    with stop_on_interrupt(is_stopped):
        reporter.start()
        try:
            sender.run(is_stopped, seconds)
        finally:
            is_stopped.set()
            reporter.join()
    print_summary(sender, topic, time.monotonic() - began_at, as_json)


def report(sender: RecordProducer, is_stopped: threading.Event, as_json: bool) -> None:
    """Print the counts once per second; on a terminal always in the same line."""
    is_live = sys.stdout.isatty() and not as_json
    before, before_at = 0, time.monotonic()
    while not is_stopped.wait(LINE_EVERY_S):
        now, sent = time.monotonic(), sender.counts.sent
        rate = (sent - before) / (now - before_at)
        before, before_at = sent, now
        if as_json:
            print_json({"kind": "progress", "records_per_second": round(rate, 1), **facts(sender)})
        else:
            late, malformed = sender.counts.late, sender.counts.malformed
            unreachable = "  broker unreachable" if sender.is_broker_unreachable else ""
            line = f"{sent:>9,} sent  {rate:>7,.0f}/s  {late:,} late  {malformed:,} malformed{unreachable}"
            click.echo(f"\r\x1b[K{line}" if is_live else line, nl=not is_live)
    if is_live:
        click.echo("\r\x1b[K", nl=False)


def facts(sender: RecordProducer) -> dict[str, Any]:
    counts = sender.counts
    return {
        "sent": counts.sent,
        "acknowledged": counts.acknowledged,
        "failed": counts.failed,
        "late": counts.late,
        "duplicates": counts.duplicates,
        "malformed": dict(counts.flaws),
        "is_broker_unreachable": sender.is_broker_unreachable,
    }


def print_summary(sender: RecordProducer, topic: str, seconds: float, as_json: bool) -> None:
    counts = sender.counts
    if as_json:
        print_json({"kind": "summary", "topic": topic, "seconds": round(seconds, 3), **facts(sender)})
    else:
        say(f"{count_text(counts.sent, 'record')} sent to {topic} in {seconds:.1f} s")
        say(f"{counts.acknowledged:,} acknowledged, {counts.late:,} late, {counts.malformed:,} malformed")
    if counts.acknowledged < counts.sent:
        reason = "" if sender.last_error is None else f": {sender.last_error.str()}"
        raise Failure(f"{count_text(counts.sent - counts.acknowledged, 'record')} were not acknowledged{reason}")
