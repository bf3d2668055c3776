"""`odradek rigs simulate`: produces the records of a fleet of simulated pumps."""

from __future__ import annotations

import sys
import threading
import time
from typing import TYPE_CHECKING, Any

import click

from odradek.cli.client.options import cluster_options
from odradek.cli.framework.commands import command
from odradek.cli.framework.failure import Failure
from odradek.cli.framework.interrupt import stop_on_interrupt
from odradek.cli.framework.output import count_text, print_json, say
from odradek.cli.framework.parameter_types import POSITIVE, TOPIC_NAME
from odradek.cli.framework.times import TimeType
from odradek.cli.rigs.fleet_options import FLEET, pumps_option, rate_option, seed_option
from odradek.pipelines.rigs.fleet import Fleet, FleetSettings
from odradek.pipelines.rigs.producer import RigProducer, producer_settings

if TYPE_CHECKING:
    from odradek.cli.client.cluster import Cluster

LINE_EVERY_S = 1.0
PARTITIONS = 3
SHARE = click.FloatRange(0, 1)


@command(
    "simulate",
    examples=[
        ("until Ctrl-C", "odradek rigs simulate"),
        ("more pumps, more records, more broken ones", "odradek rigs simulate --pumps 900 --rate 5000 --broken 0.05"),
        ("the same records in every run", "odradek rigs simulate --seed 3 --start 2015-01-01T00:00Z --seconds 60"),
    ],
)
@click.option(
    "--topic", type=TOPIC_NAME, default="rigs", show_default=True, metavar="NAME", help="Topic of the records."
)
@rate_option
@click.option("--seconds", type=POSITIVE, metavar="N", help="Stop after N seconds.")
@pumps_option
@seed_option
@click.option("--start", type=TimeType(is_written=True), metavar="TIME", help="Time of the first record. Default: now.")
@click.option(
    "--late", type=SHARE, default=FLEET.late_share, show_default=True, metavar="SHARE", help="Share of late records."
)
@click.option(
    "--broken",
    type=SHARE,
    default=FLEET.broken_share,
    show_default=True,
    metavar="SHARE",
    help="Share of broken records.",
)
@cluster_options
def simulate(
    topic: str, rate: float, seconds: float | None, pumps: int, seed: int, start: int | None,
    late: float, broken: float, cluster: Cluster, as_json: bool,
) -> None:  # fmt: skip
    """Produce the records of a fleet of simulated pumps.

    Readings drift, follow the time of day, and have faults: pressure rises, a pump overheats or sends nothing. Some
    records are minutes late, some are broken. The topic is created if it does not exist.
    """
    if late + broken > 1:
        raise click.UsageError("the sum of --late and --broken is more than 1")
    fleet = Fleet(FleetSettings(pumps, seed, late, broken))
    cluster.create_topic(topic, PARTITIONS)
    producer = cluster.producer(producer_settings(rate))
    sender = RigProducer(producer, topic, fleet, rate, started_s=None if start is None else start / 1000)
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


def report(sender: RigProducer, is_stopped: threading.Event, as_json: bool) -> None:
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
            line = progress_line(sender, rate)
            click.echo(f"\r\x1b[K{line}" if is_live else line, nl=not is_live)
    if is_live:
        click.echo("\r\x1b[K", nl=False)


def progress_line(sender: RigProducer, rate: float) -> str:
    counts = sender.counts
    unreachable = "  broker unreachable" if sender.is_broker_unreachable else ""
    return f"{counts.sent:>9,} sent  {rate:>7,.0f}/s  {counts.late:,} late  {counts.broken:,} broken{unreachable}"


def facts(sender: RigProducer) -> dict[str, Any]:
    counts = sender.counts
    return {
        "sent": counts.sent,
        "acknowledged": counts.acknowledged,
        "failed": counts.failed,
        "late": counts.late,
        "broken": dict(counts.flaws),
        "is_broker_unreachable": sender.is_broker_unreachable,
    }


def print_summary(sender: RigProducer, topic: str, seconds: float, as_json: bool) -> None:
    counts = sender.counts
    if as_json:
        print_json({"kind": "summary", "topic": topic, "seconds": round(seconds, 3), **facts(sender)})
    else:
        say(f"{count_text(counts.sent, 'record')} sent to {topic} in {seconds:.1f} s")
        say(f"{counts.acknowledged:,} acknowledged, {counts.late:,} late, {counts.broken:,} broken")
    if counts.acknowledged < counts.sent:
        reason = "" if sender.last_error is None else f": {sender.last_error.str()}"
        raise Failure(f"{count_text(counts.sent - counts.acknowledged, 'record')} were not acknowledged{reason}")
