"""`odradek example list`, `copy`, `simulate` and `watch`: examples with a pipeline, a simulator of its records and a
live view; and the files of an example, and the options that override its simulator, for `odradek up`."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from odradek.admin.records.record_fetcher import FetchSettings, RecordFetcher
from odradek.cli.client.options import cluster_options
from odradek.cli.framework.commands import OptionalArgument, group
from odradek.cli.framework.interrupt import stop_on_interrupt
from odradek.cli.framework.options import format_option, option
from odradek.cli.framework.output import fields_of, print_columns, print_json, say
from odradek.cli.framework.parameter_types import POSITIVE, TEXT, TOPIC_NAME, WRITTEN_TIME_MS, NumberType
from odradek.conventions.failures import Failure
from odradek.conventions.figures import INT64_MAX, count_text
from odradek.examples.folders import Example, copy_example, find_example, packaged_examples
from odradek.examples.live_view.loading import load_view
from odradek.examples.live_view.model import LiveViewModel
from odradek.examples.live_view.reading import TopicFollower
from odradek.examples.live_view.screens import chosen_screen
from odradek.examples.live_view.watching import watch
from odradek.examples.simulator.loading import load_simulation
from odradek.examples.simulator.population import Population
from odradek.examples.simulator.producer import RecordProducer, producer_settings
from odradek.local.child_process import command_name
from odradek.pipelines.definition.places import ProblemList

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    from odradek.admin.cluster import Cluster
    from odradek.admin.offsets import Key
    from odradek.examples.live_view.definition import ViewDefinition
    from odradek.examples.simulator.model import Simulation


@group(
    ("everything at once", "odradek up rigs"),
    ("a copy to change and run", "odradek example copy rigs"),
    ("the parts alone: the records, and the live view", "odradek example simulate rigs"),
    ("", "odradek example watch rigs"),
)
def example() -> None:
    """Examples: a pipeline, a simulator of its records and a live view.

    An example is a folder with `pipeline.yml`, `simulator.yml` and `view.yml`. Where a command takes an example, it
    takes the name of one of the package or a folder. `odradek up` runs one.
    """


_Dataclass = TypeVar("_Dataclass", bound="DataclassInstance")
DEFAULT_EXAMPLE = "rigs"

rate_option = option("--rate", "N", POSITIVE, "Records per second. Default: that of the simulator.")
entities_option = option("--entities", "N", NumberType(1, 100_000), "Number of entities, such as pumps.")
seed_option = option(
    "--seed", "N", NumberType(-INT64_MAX, INT64_MAX), "The same seed and start time give the same records."
)
SQLITE = "sqlite:///"
LINE_EVERY_S = 1.0
SHARE = click.FloatRange(0, 1)
SETTINGS = FetchSettings(32 * 1024 * 1024, max_wait_ms=20, offset_reset="earliest")


@example.command(
    ("names and summaries", "odradek example list"),
    ("where the files are", "odradek example list --format json"),
    name="list",
)
@format_option
def list_examples(as_json: bool) -> None:
    """List the examples of the package."""
    found = packaged_examples()
    if as_json:
        for each in found:
            print_json({"name": each.name, "summary": each.summary, "folder": str(each.folder)})
    else:
        print_columns(["NAME", "SUMMARY"], [[each.name, each.summary] for each in found])


@example.command(
    ("into ./rigs", "odradek example copy rigs"),
    ("into another folder, and run it", "odradek example copy rigs wells"),
    ("", "odradek up ./wells"),
    name="copy",
)
@click.argument("name", metavar="NAME", type=TEXT)
@click.argument("target", metavar="DIR", type=click.Path(file_okay=False), required=False, cls=OptionalArgument)
@format_option
def copy(name: str, target: str | None, as_json: bool) -> None:
    """Copy an example into a folder.

    The default folder has the name of the example. A folder that has files is refused.
    """
    example = find_example(name)
    folder = Path(target or example.name)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise Failure(f"{folder} exists and is not empty; name another folder")
    files = copy_example(example, folder)
    if as_json:
        print_json({"name": example.name, "folder": str(folder), "files": files})
        return
    say(f"copied {example.name} to {folder}: {', '.join(files)}")
    say(f"run it: {command_name()} up {folder if folder.is_absolute() else f'./{folder}'}")


def read_simulation(example: Example) -> Simulation:
    with _problems_as_failure():
        return load_simulation(example.simulator, os.environ)


def read_view(example: Example) -> ViewDefinition:
    with _problems_as_failure():
        return load_view(example.view, os.environ)


@contextlib.contextmanager
def _problems_as_failure() -> Iterator[None]:
    """All problems, one per line."""
    try:
        yield
    except ProblemList as error:
        raise Failure("\n".join(f"{each.place}: {each.text}" for each in error)) from None


def overridden(
    simulation: Simulation, rate: float | None, entities: int | None, seed: int | None, late: float | None = None,
    malformed: float | None = None,
) -> Simulation:  # fmt: skip
    """The simulation with the values of the command line."""
    flaws = replaced(simulation.flaws, late_share=late, malformed_share=malformed)
    if flaws.late_share and flaws.late_by is None:
        raise Failure("--late needs flaws: {late: {by: …}} in simulator.yml, which says how late")
    if flaws.malformed_share and not flaws.kinds:
        raise Failure("--malformed needs flaws: {malformed: {kinds: …}} in simulator.yml")
    if flaws.late_share + flaws.duplicate_share + flaws.malformed_share > 1:
        raise click.UsageError("the shares of late, duplicate and malformed records are more than 1 in all")
    return replaced(simulation, rate=rate, count=entities, seed=seed, flaws=flaws)


def replaced(value: _Dataclass, **changes: Any) -> _Dataclass:
    """The value with those of the changes that are not None."""
    return dataclasses.replace(value, **{name: each for name, each in changes.items() if each is not None})


def warehouse_of(example: Example) -> str | None:
    """The URL of the definition, with the path of a SQLite file resolved from its folder; None without one."""
    from odradek.pipelines.planning.loading import load_file

    pipeline = load_file(example.definition, os.environ)[0].pipeline
    url = None if pipeline is None else pipeline.warehouse or f"{SQLITE}{pipeline.name}.db"
    if url is None or not url.startswith(SQLITE):
        return url
    file = Path(example.folder).absolute() / url.removeprefix(SQLITE)
    return f"{SQLITE}{file}" if file.exists() else None


@example.command(
    ("until Ctrl-C", "odradek example simulate rigs"),
    (
        "more pumps, more records, more malformed ones",
        "odradek example simulate rigs --entities 900 --rate 5000 --malformed 0.05",
    ),
    ("the same records each run", "odradek example simulate rigs --seed 3 --start 2015-01-01T00:00Z --seconds 60"),
    name="simulate",
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
    declared = read_simulation(find_example(name))
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
    counted = fields_of(counts, "sent acknowledged failed late duplicates")
    return {**counted, "malformed": dict(counts.flaws), **fields_of(sender, "is_broker_unreachable")}


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


@example.command(
    ("until Ctrl-C", "odradek example watch rigs"),
    ("for a minute, as JSON lines", "odradek example watch rigs --seconds 60 --format json"),
    name="watch",
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
    example = find_example(name)
    view = read_view(example)
    is_stopped = threading.Event()
    screen = chosen_screen(view.title, consume_hint(view.output, cluster.bootstrap_servers), as_json=as_json)
    screen.bootstrap_servers = cluster.bootstrap_servers
    url = warehouse or warehouse_of(example)
    try:
        with stop_on_interrupt(is_stopped), following(cluster, model := LiveViewModel(view, time.time())) as follower:
            screen.open()
            watch(follower, url, model, screen, is_stopped, seconds)
    finally:
        screen.close()


@contextlib.contextmanager
def following(cluster: Cluster, model: LiveViewModel) -> Iterator[TopicFollower]:
    """Follows the topics of a live view from their present ends on."""
    source = ViewSource(cluster)
    try:
        follower = TopicFollower(source, AdminClient(cluster.client_settings({})), model)
        follower.poll(0)
        yield follower
    except KafkaException as error:
        raise Failure(error.args[0].str()) from None
    finally:
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
