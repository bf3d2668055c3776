"""`odradek pipeline run`, `backfill` and `rebuild`.

A pipeline runs in the foreground, or supervised (`--restart`, and what `start` leaves running); a backfill processes a
range of the log as a batch; a rebuild computes views from the log.
"""

from __future__ import annotations

import contextlib
import dataclasses
import queue
import signal
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from odradek.cli.framework.commands import OptionalArgument, command
from odradek.cli.framework.interrupt import stop_on_interrupt
from odradek.cli.framework.options import flag, format_option, option, repeatable, yes_option
from odradek.cli.framework.output import note, print_result
from odradek.cli.framework.parameter_types import POSITIVE, TEXT
from odradek.cli.pipeline import options
from odradek.cli.pipeline.reset import parse_range
from odradek.conventions.failures import Failure
from odradek.conventions.figures import count_text
from odradek.host.lifetime_pipe import call_when_parent_ends
from odradek.local.child_process import odradek_command
from odradek.pipelines.operating.backoff import Backoff
from odradek.pipelines.operating.events import Event, EventPipe, failed
from odradek.pipelines.operating.events import note as note_event
from odradek.pipelines.operating.locks import Taken, held
from odradek.pipelines.operating.log_files import RotatingLog
from odradek.pipelines.operating.processes import own_mark
from odradek.pipelines.operating.publishing import Publisher, publishing
from odradek.pipelines.operating.screens import BatchLines, LiveLine, LogLines, chosen_screen
from odradek.pipelines.operating.small_files import LOCK, LOG, remove_failed_status
from odradek.pipelines.operating.status import PipelineStatus, State
from odradek.pipelines.operating.status_model import StatusModel
from odradek.pipelines.operating.supervising import Supervisor

if TYPE_CHECKING:
    from collections.abc import Iterator

    from odradek.pipelines.definition.model import Pipeline, Sink, View
    from odradek.pipelines.spark.computing.counts import BatchReport
    from odradek.pipelines.spark.launching import RunCallbacks, RunOptions


@command(
    ("until Ctrl-C", "odradek pipeline run pipeline.yml"),
    ("everything up to now, then stop", "odradek pipeline run pipeline.yml --until-caught-up"),
    ("once, as a batch", "odradek pipeline run pipeline.yml --engine batch"),
    ("on a Spark cluster", "odradek pipeline run pipeline.yml --master spark://host:7077"),
    ("start again an hour ago", "odradek pipeline run pipeline.yml --from -1h"),
    ("restarted on failure, with metrics", "odradek pipeline run pipeline.yml --restart --metrics-port 9464"),
    name="run",
)
@click.argument("file", metavar="FILE", type=click.Path())
@options.engine_option
@options.pipeline_options
@options.from_option
@yes_option
@option("--seconds", "N", POSITIVE, "Stop after N seconds.")
@flag("--until-caught-up", "Stop when all present records are processed.")
@flag("--restart", "Restart it after a failure, with increasing pauses.")
@options.metrics_options
@click.option("--stop-with", type=int, hidden=True, help="Descriptor; stop when its other end is closed.")
@click.option("--events", type=int, hidden=True, help="Descriptor to which events are written.")
@click.option("--state-folder", type=click.Path(), hidden=True, help="Folder of log and status of a started pipeline.")
@format_option
def run(
    file: str, engine: str | None, from_positions: tuple[str, ...], yes: bool, seconds: float | None,
    until_caught_up: bool, restart: bool, stop_with: int | None, events: int | None, state_folder: str | None,
    as_json: bool,
) -> None:  # fmt: skip
    """Run a pipeline until Ctrl-C.

    It continues at its checkpoints, or starts at --from. On a terminal it shows rates, lag, state and expectations;
    otherwise one line for each batch with rows.
    """
    found = options.chosen_pipeline(file, engine)
    if until_caught_up and found.engine == "realtime":
        raise Failure(
            "--until-caught-up cannot be used with the realtime engine, which does not end by itself; "
            "use --seconds N, or --engine standard"
        )
    options.require_spark()
    if from_positions:
        if found.engine == "batch":
            raise Failure(
                "a batch has no checkpoints to discard; for a part of the log: "
                f"`odradek pipeline backfill {file} --from {' --from '.join(from_positions)}`"
            )
        from odradek.cli.pipeline.reset import forget_and_begin

        forget_and_begin(found, from_positions, yes)
    if events is None and not restart:
        check_brokers(found)
    is_stopped = threading.Event()
    with stop_on_interrupt(is_stopped, signal.SIGTERM):
        if stop_with is not None:
            call_when_parent_ends(stop_with, is_stopped.set)
        if restart:
            command = odradek_command("pipeline", "run", file, *options.child_arguments(engine, found.name))
            command += [*([f"--seconds={seconds}"] if seconds else []), *(["--until-caught-up"] * until_caught_up)]
            run_supervised(found, command, state_folder, is_stopped, as_json=as_json)
            return
        from odradek.pipelines.spark.launching import RunOptions

        wanted = RunOptions(seconds, until_caught_up)
        if events is not None:
            run_for_owner(found, wanted, is_stopped, EventPipe(events))
        else:
            run_here(found, wanted, is_stopped, as_json=as_json)


def check_brokers(found: Pipeline) -> None:
    """Failure with the reason if the brokers cannot be reached with the pipeline's settings: the Kafka clients of a run
    retry, and report none."""
    from odradek.admin.errors import RefusedConnection
    from odradek.cli.pipeline.status_topic import cluster_of

    cluster = cluster_of(found)
    if cluster is None:
        return
    try:
        cluster.check_reachable()
    except RefusedConnection as refused:
        advice = "a pipeline has such properties from --command-config, --profile or `kafka` in its definition"
        reason = found.without_secrets(refused.message).replace("-X ", "")
        raise Failure(f"{reason}; {advice}") from None


def batch_event(report: BatchReport) -> Event:
    return {"kind": "batch", "text": str(report), **dataclasses.asdict(report)}


def run_for_owner(found: Pipeline, wanted: RunOptions, is_stopped: threading.Event, pipe: EventPipe) -> None:
    """Run as the child of a supervisor, which gets all events, failures included."""
    from odradek.pipelines.spark.launching import RunCallbacks
    from odradek.pipelines.spark.sessions.failures import retry_of
    from odradek.pipelines.spark.writing.topics import BrokersUnavailable

    callbacks = RunCallbacks(
        lambda line: pipe.send(note_event(line)), lambda report: pipe.send(batch_event(report)), pipe.send
    )
    try:
        try:
            check_brokers(found)
        except Failure as failure:
            raise failure from BrokersUnavailable(failure.message)  # another attempt may succeed
        launch(found, wanted, is_stopped, callbacks)
    except Exception as error:
        text = str(error) if isinstance(error, Failure) else f"{type(error).__name__}: {error}"
        pipe.send(failed(found.without_secrets(text), str(retry_of(error))))
        sys.exit(1)


def run_here(found: Pipeline, wanted: RunOptions, is_stopped: threading.Event, *, as_json: bool) -> None:
    """Run in this process. Batches are reported on Spark's threads, and shown on the main thread."""
    from odradek.pipelines.spark.launching import RunCallbacks

    events: queue.SimpleQueue[Event] = queue.SimpleQueue()
    screen, metrics = chosen_screen(as_json=as_json), options.chosen_metrics()
    with published(found, screen, None) as publisher:

        def say(line: str) -> None:
            events.put(note_event(line))
            drain(events, publisher)

        def turn() -> None:
            drain(events, publisher)
            publisher.turn()

        try:
            is_watched = metrics.port is not None or metrics.has_status_topic or isinstance(screen, LiveLine)
            send = events.put if is_watched else None
            callbacks = RunCallbacks(say, lambda report: events.put(batch_event(report)), send, turn)
            launch(found, wanted, is_stopped, callbacks)
            remove_failed_status(found.name)
        finally:
            turn()


def drain(events: queue.SimpleQueue[Event], publisher: Publisher) -> None:
    while not events.empty():
        publisher.take(events.get())


def launch(found: Pipeline, wanted: RunOptions, is_stopped: threading.Event, callbacks: RunCallbacks) -> None:
    from odradek.pipelines.spark.launching import run_pipeline

    hiding = dataclasses.replace(callbacks, say=lambda line: callbacks.say(found.without_secrets(line)))
    with options.pipeline_errors():
        run_pipeline(found, wanted, is_stopped.is_set, hiding)


@contextlib.contextmanager
def published(found: Pipeline, screen: BatchLines, folder: Path | None) -> Iterator[Publisher]:
    """Publish a pipeline's status to screen, file, metrics and, unless that is turned off, the status topic."""
    mark, metrics = own_mark(), options.chosen_metrics()
    status = PipelineStatus(
        name=found.name, state=State.STARTING, file=str(Path(found.place.file).absolute()), engine=str(found.engine),
        pid=mark.pid, began=mark.began, started_s=time.time(),
    )  # fmt: skip
    with contextlib.ExitStack() as stack:
        try:
            publisher = stack.enter_context(publishing(StatusModel(status), screen, folder, metrics.host, metrics.port))
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or error
            raise Failure(f"metrics cannot be served on {metrics.host}:{metrics.port}: {reason}") from None
        if metrics.has_status_topic:
            from odradek.cli.pipeline.status_topic import status_topic

            topic = stack.enter_context(status_topic(found, status, publisher.say))
            publisher.announce = None if topic is None else topic.offer
        yield publisher
        publisher.turn()


def run_supervised(
    found: Pipeline, command: list[str], state_folder: str | None, is_stopped: threading.Event, *, as_json: bool
) -> None:
    """Run attempts of the command, each in its own process; Failure when the supervisor gives up."""
    folder = None if state_folder is None else Path(state_folder)
    screen = chosen_screen(as_json=as_json) if folder is None else LogLines()
    with contextlib.ExitStack() as stack:
        if folder is not None:
            try:
                stack.enter_context(held(folder / LOCK, f"pid {own_mark().pid}"))
            except Taken as taken:
                raise Failure(f"{found.name} is already running ({taken.owner})") from None
        publisher = stack.enter_context(published(found, screen, folder))
        log = None if folder is None else RotatingLog(folder / LOG)
        supervisor = Supervisor(
            command, publisher, is_stopped, Backoff(), must_run_at_once=folder is not None,
            each_turn=None if log is None else log.turn,
        )  # fmt: skip
        given_up = supervisor.run()
        if folder is not None:
            publisher.say("stopped" if given_up is None else f"ended: {given_up}")
    if given_up is not None:
        raise Failure(given_up)
    if folder is None:
        remove_failed_status(found.name)


@command(
    ("a day", "odradek pipeline backfill p.yml --from 2026-01-30T00:00 --to 2026-01-31T00:00"),
    ("the last hour, into one sink", "odradek pipeline backfill pipeline.yml --from -1h --only archive"),
    ("some offsets", "odradek pipeline backfill p.yml --from rigs:0:1000 --to rigs:0:2000"),
)
@click.argument("file", metavar="FILE", type=click.Path())
@option(
    "--from from_positions", "POSITION", TEXT,
    "Start: earliest, a time, or TOPIC:PARTITION:OFFSET (repeatable).", required=True, multiple=True,
)  # fmt: skip
@option(
    "--to to_positions", "POSITION", TEXT,
    "End, exclusive: latest (default), a time, or TOPIC:PARTITION:OFFSET (repeatable).", multiple=True,
)  # fmt: skip
@repeatable("--only", "NAME", TEXT, "Only this sink or view.")
@options.pipeline_options
@format_option
def backfill(
    file: str, from_positions: tuple[str, ...], to_positions: tuple[str, ...], only: tuple[str, ...], as_json: bool
) -> None:  # fmt: skip
    """Process a range of the log again as one batch. The stream may be running.

    The checkpoints of the stream do not change. Views that cannot be computed from a part of the log are skipped: those
    of aggregates, and those of latest rows without an order.
    """
    found = options.chosen_pipeline(file, "batch")
    options.require_spark()
    span = parse_range(from_positions, to_positions, found)
    chosen = narrowed(found, only)
    check_brokers(found)
    from odradek.pipelines.spark.launching import RunCallbacks, RunOptions

    note(f"{found.name} {' '.join(('from', *from_positions, 'to', *(to_positions or ('the end',))))}")
    for line in effects_of(chosen):
        note(f"  {line}")

    def report(done: BatchReport) -> None:
        print_result(dataclasses.asdict(done), str(done), as_json=as_json)

    is_stopped = threading.Event()
    with stop_on_interrupt(is_stopped, signal.SIGTERM):
        launch(chosen, RunOptions(span=span), is_stopped, RunCallbacks(note, report))


def effects_of(found: Pipeline) -> list[str]:
    """The effects of a backfill."""
    from odradek.pipelines.operating.effects import backfill_effects
    from odradek.pipelines.planning.rules import plan_again

    return backfill_effects(plan_again(found))


def narrowed(found: Pipeline, only: tuple[str, ...]) -> Pipeline:
    """The pipeline with the chosen sinks and views, without views that need the whole log."""
    from odradek.pipelines.operating.effects import needs_whole_log
    from odradek.pipelines.planning.rules import plan_again

    names = {sink.name for sink in found.sinks} | {view.name for view in found.views}
    for each in only:
        if each not in names:
            raise Failure(f"{found.name} has no sink or view {each}; it has {', '.join(sorted(names))}")
    meant = set(only) or names
    plan = plan_again(found)
    whole = {each.name for each in plan.ends if needs_whole_log(plan, each)}
    for view in found.views:
        if view.name in meant & whole:
            why = f"view {view.name} needs the whole log; use `odradek pipeline rebuild`"
            if view.name in only:
                raise Failure(why)
            note(f"{why} (skipped)")
    sinks = tuple(each for each in found.sinks if each.name in meant)
    views = tuple(each for each in found.views if each.name in meant - whole)
    return dataclasses.replace(found, sinks=sinks, views=views)


@command(
    ("all views", "odradek pipeline rebuild pipeline.yml"),
    ("one of them, or a table", "odradek pipeline rebuild pipeline.yml pump_state"),
)
@click.argument("file", metavar="FILE", type=click.Path())
@click.argument("names", metavar="NAME...", nargs=-1, cls=OptionalArgument, type=TEXT)
@options.pipeline_options
@format_option
def rebuild(file: str, names: tuple[str, ...], as_json: bool) -> None:
    """Rebuild views and tables of a stopped pipeline from the log.

    NAME is a view or a sink that writes a table; the default is all views. Each is built in a new table, which
    replaces the old one in one transaction: readers see the old rows or the new ones.
    """
    found = options.chosen_pipeline(file, "standard")
    options.require_spark()
    from odradek.pipelines.spark.rebuilding import rebuild_views, rebuildable

    known = rebuildable(found)
    for each in names:
        if each not in known:
            raise Failure(f"{found.name} has no view or table sink {each}; it has {', '.join(known) or 'none'}")
    chosen = [known[each] for each in dict.fromkeys(names)] or list(found.views)
    if not chosen:
        raise Failure(f"{found.name} has no views" + (f"; name a table: {', '.join(known)}" if known else ""))

    check_brokers(found)

    def done(end: View | Sink, rows: int) -> None:
        kind = "view" if end in found.views else "sink"
        result = {"pipeline": found.name, kind: end.name, "rows": rows}
        print_result(result, f"{end.name}: {count_text(rows, 'row')}", as_json=as_json)

    with options.pipeline_errors():
        rebuild_views(found, chosen, note, done)
