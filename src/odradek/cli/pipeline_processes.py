"""`odradek pipeline start | stop | status | logs | watch`: pipelines as processes of their own. None imports Spark."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

import click

from odradek.cli.commands import OptionalArgument, command
from odradek.cli.failure import Failure
from odradek.cli.interrupt import stop_on_interrupt
from odradek.cli.options import format_option
from odradek.cli.output import note, print_columns, print_json, say
from odradek.cli.parameter_types import POSITIVE, TEXT, NumberType
from odradek.cli.pipeline import choose, load
from odradek.cli.pipeline_options import (
    from_option,
    metrics_options,
    overridden,
    override_arguments,
    override_options,
    yes_option,
)
from odradek.pipelines.operating.figures import clock_text, duration_text, rate_text
from odradek.pipelines.operating.state_folders import LOG, STATUS, folder_of, started_names
from odradek.pipelines.operating.status import ENDED, PipelineStatus, State
from odradek.pipelines.operating.status_files import attempt_in, mark_in, read_status

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from odradek.cli.pipeline_options import Metrics

POLL_S = 0.1
STOP_TIMEOUT_S = 60.0
TAIL_LINES = 20


@command(
    examples=[
        ("in the background, restarted when it fails", "odradek pipeline start pipeline.yml"),
        ("several at once", "odradek pipeline start rigs.yml billing.yml"),
        ("with metrics for Prometheus", "odradek pipeline start pipeline.yml --metrics-port 9464"),
    ]
)
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path())
@override_options
@from_option
@yes_option
@metrics_options
@format_option
def start(
    files: tuple[str, ...], engine: str | None, name: str | None, overrides: dict[str, Any],
    from_places: tuple[str, ...], is_sure: bool, metrics: Metrics, as_json: bool,
) -> None:  # fmt: skip
    """Start pipelines in the background, each as a process of its own.

    Returns when they run, or says why one does not. One that fails later is started again, with pauses that grow.
    """
    from odradek.cli.pipeline_run import require_spark  # noqa: PLC0415 - the other commands do without

    require_spark()
    if len(files) > 1 and metrics.port:
        raise click.UsageError("pipelines cannot share a port for metrics; start them one by one, or use 0")
    found = {file: overridden(choose(file, load(file, engine), name), overrides) for file in dict.fromkeys(files)}
    names = [each.name for each in found.values()]
    twice = next((each for each in names if names.count(each) > 1), None)
    if twice is not None:
        raise Failure(f"two of these are named {twice}; a name stands for one pipeline")
    for file, each in found.items():
        if each.engine == "batch":
            raise Failure(f"{each.name} is a batch, which ends by itself; `odradek pipeline run {file}`")
        running = read_status(each.name)
        if running is not None and running.state not in ENDED:
            raise Failure(
                f"{each.name} {running.state} already (pid {running.pid}); `odradek pipeline stop {each.name}`"
            )
    if from_places:
        from odradek.cli.pipeline_reset import check_reset, forget_and_begin  # noqa: PLC0415 - most go on

        for each in found.values():
            check_reset(each, from_places)
        for each in found.values():
            forget_and_begin(each, from_places, is_sure)
    processes = {
        each.name: launch(file, each.name, [*override_arguments(engine, each.name, overrides), *metrics.arguments])
        for file, each in found.items()
    }
    failures = [each for each in (wait_until_running(name, processes[name], as_json) for name in names) if each]
    if failures:
        raise Failure("; ".join(failures))


def launch(file: str, name: str, arguments: Sequence[str]) -> subprocess.Popen[bytes]:
    folder = folder_of(name)
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / LOG).open("ab") as log:
        return subprocess.Popen(
            [
                sys.executable,
                "-m",
                "odradek",
                "pipeline",
                "run",
                file,
                "--restart",
                f"--state-folder={folder}",
                *arguments,
            ],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def wait_until_running(name: str, process: subprocess.Popen[bytes], as_json: bool) -> str | None:
    """Why it does not run, or None. What it says meanwhile is passed on."""
    told = ""
    while True:
        status = read_status(name)
        mine = status if status is not None and status.pid == process.pid else None
        if mine is not None and mine.note and mine.note != told:
            told = mine.note
            note(f"{name}: {told}")
        if mine is not None and mine.state is State.RUNNING:
            if as_json:
                print_json(mine.as_object())
            else:
                say(f"{name} runs (pid {process.pid}); see `odradek pipeline status`, `odradek pipeline watch {name}`")
            return None
        if process.poll() is not None:
            status = read_status(name)
            error = status.last_error if status is not None and status.pid == process.pid else None
            return f"{name} does not run: {error or last_line(name)}"
        time.sleep(POLL_S)


def last_line(name: str) -> str:
    """For a process that ended before it had a status."""
    lines = (folder_of(name) / LOG).read_text(encoding="utf-8", errors="replace").splitlines()
    return lines[-1].removeprefix("error: ") if lines else "it ended without a word"


@command(
    examples=[
        ("one", "odradek pipeline stop rigs"),
        ("all that run", "odradek pipeline stop --all"),
        ("one that does not listen", "odradek pipeline stop rigs --kill"),
    ]
)
@click.argument("names", metavar="NAME...", nargs=-1, cls=OptionalArgument, type=TEXT)
@click.option("--all", "is_all", is_flag=True, help="All that run.")
@click.option(
    "--timeout", type=POSITIVE, default=STOP_TIMEOUT_S, show_default=True, metavar="S", help="Seconds to wait."
)
@click.option("--kill", "is_killed", is_flag=True, help="End by force those that take longer.")
@format_option
def stop(names: tuple[str, ...], is_all: bool, timeout: float, is_killed: bool, as_json: bool) -> None:
    """Stop started pipelines, and wait until they have.

    What a batch has not finished comes again with the next start.
    """
    if bool(names) == is_all:
        raise click.UsageError("give the names of pipelines, or --all")
    alive = [each for each in statuses(names) if each.state not in ENDED]
    for name in names:
        if name not in {each.name for each in alive}:
            note(f"{name} does not run")
    for each in alive:
        if each.state is not State.STOPPING:  # a second one would cut it off
            mark_in(each).send(signal.SIGINT)
        note(f"stopping {each.name} (pid {each.pid})")
    began_s = time.monotonic()
    waiting = {each.name: each for each in alive}
    while waiting and time.monotonic() - began_s < timeout:
        for name, each in list(waiting.items()):
            if not mark_in(each).is_alive:
                tell_stopped(name, began_s, as_json)
                del waiting[name]
        time.sleep(POLL_S)
    for name, each in waiting.items():
        if is_killed and kill_with_attempt(each):
            note(f"{name} was killed")
            tell_stopped(name, began_s, as_json)
    if waiting and not is_killed:
        raise Failure(f"{', '.join(waiting)} did not stop within {timeout:g} s; wait, or end it with --kill")


def kill_with_attempt(found: PipelineStatus) -> bool:
    """The supervisor first, which would start another; then Spark and all that its attempt has started."""
    is_ended = mark_in(found).send(signal.SIGKILL)
    last = read_status(found.name) or found
    attempt = attempt_in(last)
    if attempt is not None:
        attempt.send_group(signal.SIGKILL)
    return is_ended


def tell_stopped(name: str, began_s: float, as_json: bool) -> None:
    seconds = time.monotonic() - began_s
    if as_json:
        print_json({"pipeline": name, "stopped": True, "seconds": round(seconds, 3)})
    else:
        say(f"{name} stopped after {duration_text(seconds * 1000)}")


def statuses(names: Iterable[str]) -> list[PipelineStatus]:
    """Of the pipelines that are named, or of all; Failure for one that was never started."""
    chosen = list(dict.fromkeys(names))
    known = started_names()
    for name in chosen:
        if name not in known:
            more = f"; there are {', '.join(known)}" if known else ""
            raise Failure(f"no pipeline {name} was started here{more}")
    return [status for name in chosen or known if (status := read_status(name)) is not None]


@command(
    examples=[
        ("all that were started", "odradek pipeline status"),
        ("everything about one", "odradek pipeline status rigs --format json | jq ."),
    ]
)
@click.argument("names", metavar="NAME...", nargs=-1, cls=OptionalArgument, type=TEXT)
@format_option
def status(names: tuple[str, ...], as_json: bool) -> None:
    """Show how the started pipelines do.

    Rates are records a second: what comes into the topics, and what is read of them. LAG is of the flow that is
    furthest behind.
    """
    found = statuses(names)
    if as_json:
        for each in found:
            print_json(each.as_object())
        return
    if not found:
        note("no pipeline was started here; `odradek pipeline start FILE`")
        return
    now_s = time.time()
    titles = ["NAME", "STATE", "PID", "FOR", "RESTARTS", "INPUT/S", "DONE/S", "BATCH", "LAG", "NOT MET"]
    print_columns(titles, [status_row(each, now_s) for each in found])
    for each in found:
        if each.last_error is not None and each.state is not State.STOPPED:
            say(f"{each.name}: {each.last_error}")


def status_row(each: PipelineStatus, now_s: float) -> tuple[object, ...]:
    if each.state in ENDED:
        return each.name, each.state, None, None, each.restarts, None, None, None, None, None
    since_s = each.running_since_s if each.state is State.RUNNING else each.started_s
    age = "" if since_s is None else clock_text(now_s - since_s)
    rates = (rate_text(each.input_per_s), rate_text(each.processed_per_s), duration_text(each.batch_ms))
    return each.name, each.state, each.pid, age, each.restarts, *rates, each.lag, each.violations


@command(
    examples=[
        ("the last lines", "odradek pipeline logs rigs"),
        ("and the new ones as they come", "odradek pipeline logs rigs -f"),
    ]
)
@click.argument("name", metavar="NAME", type=TEXT)
@click.option("--follow", "-f", is_flag=True, help="Go on until Ctrl-C.")
@click.option(
    "--lines", "-n", type=NumberType(0, 10**9), default=TAIL_LINES, show_default=True, metavar="N", help="How many."
)
@format_option
def logs(name: str, follow: bool, lines: int, as_json: bool) -> None:
    """Show what a started pipeline has to say."""
    from odradek.pipelines.operating.log_reading import follow_lines, last_lines  # noqa: PLC0415

    statuses([name])
    path = folder_of(name) / LOG
    is_stopped = threading.Event()

    def show(line: str) -> None:
        print_json({"pipeline": name, "line": line}) if as_json else say(line)

    with stop_on_interrupt(is_stopped):
        position = last_lines(path, lines, show)
        if follow:
            follow_lines(path, position, show, lambda: is_stopped.wait(POLL_S))


@command(examples=[("until Ctrl-C", "odradek pipeline watch rigs"), ("", "odradek pipeline watch rigs --seconds 60")])
@click.argument("name", metavar="NAME", type=TEXT)
@click.option("--seconds", type=POSITIVE, metavar="N", help="Stop after N seconds.")
@format_option
def watch(name: str, seconds: float | None, as_json: bool) -> None:
    """Show a started pipeline live: rates, batch time, lag, state and expectations of each flow.

    Without a terminal, a line a second.
    """
    from odradek.pipelines.operating.screens import LiveView  # noqa: PLC0415 - rich is only for those who watch

    found = next(iter(statuses([name])), None)
    if found is None:
        raise Failure(
            f"the status of {name} cannot be read ({folder_of(name) / STATUS}); `odradek pipeline logs {name}`"
        )
    ends_at_s = None if seconds is None else time.monotonic() + seconds
    is_live = sys.stdout.isatty() and not as_json
    screen = LiveView(is_at_once=True)
    is_stopped = threading.Event()
    try:
        with stop_on_interrupt(is_stopped):
            while not is_stopped.is_set() and (ends_at_s is None or time.monotonic() < ends_at_s):
                found = read_status(name) or found
                if is_live:
                    screen.show(found)
                else:
                    print_json(found.as_object()) if as_json else say(plain_line(found))
                if found.state in ENDED:
                    break
                is_stopped.wait(0.5 if is_live else 1.0)
    finally:
        screen.end()
    if found.state in {State.FAILED, State.DIED}:
        raise Failure(f"{name} {found.state}: {found.last_error or 'its process is gone'}")


def plain_line(found: PipelineStatus) -> str:
    from odradek.pipelines.operating.figures import figures_line  # noqa: PLC0415

    return f"{found.name} {found.state}: {figures_line(found)}"
