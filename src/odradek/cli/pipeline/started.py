"""`odradek pipeline start`, `status`, `stop`, `forget`, `logs` and `watch`: pipelines as background processes."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING

import click

from odradek.cli.framework.commands import OptionalArgument, command
from odradek.cli.framework.interrupt import stop_on_interrupt
from odradek.cli.framework.options import flag, format_option, option, yes_option
from odradek.cli.framework.output import note, print_columns, print_json, print_result, say
from odradek.cli.framework.parameter_types import POSITIVE, TEXT, NumberType
from odradek.cli.pipeline import options
from odradek.conventions.failures import Failure, without_prefix
from odradek.conventions.figures import brief_duration_text, size_text
from odradek.local.child_process import odradek_command
from odradek.pipelines.operating import small_files
from odradek.pipelines.operating.figures import clock_text, figures_line, rate_text
from odradek.pipelines.operating.status import ENDED, FlowStatus, PipelineStatus, State

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

STOP_TIMEOUT_S = 60.0
POLL_S = 0.1


@command(
    ("in the background, restarted when it fails", "odradek pipeline start pipeline.yml"),
    ("several at once", "odradek pipeline start rigs.yml billing.yml"),
    ("with metrics for Prometheus", "odradek pipeline start pipeline.yml --metrics-port 9464"),
)
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path())
@options.engine_option
@options.pipeline_options
@options.from_option
@yes_option
@options.metrics_options
@format_option
def start(
    files: tuple[str, ...], engine: str | None, from_positions: tuple[str, ...], yes: bool, as_json: bool
) -> None:
    """Start pipelines in the background, each in its own process.

    Returns when they run, or reports why one does not. One that fails later is restarted, with increasing pauses.
    """
    options.require_spark()
    metrics = options.chosen_metrics()
    if len(files) > 1 and metrics.port:
        raise click.UsageError("pipelines cannot share a port for metrics; start them one by one, or use port 0")
    found = {file: options.chosen_pipeline(file, engine) for file in dict.fromkeys(files)}
    names = [each.name for each in found.values()]
    twice = next((each for each in names if names.count(each) > 1), None)
    if twice is not None:
        raise Failure(f"two of these pipelines are named {twice}; names must differ")
    for file, each in found.items():
        if each.engine == "batch":
            raise Failure(f"{each.name} is a batch, which ends by itself; run it with `odradek pipeline run {file}`")
        running = small_files.read_status(each.name)
        if running is not None and running.state not in ENDED:
            advice = f"`odradek pipeline stop {each.name}`"
            raise Failure(f"{each.name} {running.state} already (pid {running.pid}); {advice}")
    if from_positions:
        from odradek.cli.pipeline.reset import check_reset, forget_and_begin

        for each in found.values():
            check_reset(each, from_positions)
        for each in found.values():
            forget_and_begin(each, from_positions, yes)
    processes = {
        each.name: launch(file, each.name, [*options.child_arguments(engine, each.name), *metrics.arguments])
        for file, each in found.items()
    }
    failures = [each for each in (wait_until_running(name, processes[name], as_json) for name in names) if each]
    if failures:
        raise Failure("; ".join(failures))


def launch(file: str, name: str, arguments: Sequence[str]) -> subprocess.Popen[bytes]:
    folder = small_files.folder_of(name)
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / small_files.LOG).open("ab") as log:
        return subprocess.Popen(
            odradek_command("pipeline", "run", file, "--restart", f"--state-folder={folder}", *arguments),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def wait_until_running(name: str, process: subprocess.Popen[bytes], as_json: bool) -> str | None:
    """Wait until the pipeline runs; returns the reason if it does not. Its notes are printed."""
    printed = ""
    while True:
        status = small_files.read_status(name)
        mine = status if status is not None and status.pid == process.pid else None
        if mine is not None and mine.note and mine.note != printed:
            printed = mine.note
            note(f"{name}: {printed}")
        if mine is not None and mine.state is State.RUNNING:
            hint = f"see `odradek pipeline status`, `odradek pipeline watch {name}`"
            print_result(mine.as_object(), f"{name} runs (pid {process.pid}); {hint}", as_json=as_json)
            return None
        if process.poll() is not None:
            status = small_files.read_status(name)
            error = status.last_error if status is not None and status.pid == process.pid else None
            return f"{name} does not run: {error or last_line(name)}"
        time.sleep(POLL_S)


def last_line(name: str) -> str:
    """Last line of the log, for a process that ended before it had a status."""
    lines = (small_files.folder_of(name) / small_files.LOG).read_text(encoding="utf-8", errors="replace").splitlines()
    return without_prefix(lines[-1]) if lines else "it ended without output"


def statuses(names: Iterable[str]) -> list[PipelineStatus]:
    """Statuses of the named pipelines, or of all; Failure for one that was never started."""
    chosen = list(dict.fromkeys(names))
    known = small_files.started_names()
    for name in chosen:
        if name not in known:
            more = f"; started: {', '.join(known)}" if known else ""
            raise Failure(f"no pipeline {name} was started on this machine{more}")
    return [status for name in chosen or known if (status := small_files.read_status(name)) is not None]


@command(
    ("all started pipelines", "odradek pipeline status"),
    ("watermark, late rows, state and rows of each sink of one", "odradek pipeline status rigs"),
    ("all figures of one", "odradek pipeline status rigs --format json | jq ."),
)
@click.argument("names", metavar="NAME...", nargs=-1, cls=OptionalArgument, type=TEXT)
@format_option
def status(names: tuple[str, ...], as_json: bool) -> None:
    """Show state, rates and lag of the started pipelines; of named ones also of each flow and sink.

    Rates are records per second: written to the topics, and processed. LAG is that of the flow that is furthest behind.
    LATE counts rows that were dropped because their event time was before the watermark. `odradek pipeline forget`
    removes the entry of a pipeline that has ended.
    """
    found = statuses(names)
    if as_json:
        for each in found:
            print_json(each.as_object())
        return
    if not found:
        note("no pipeline was started on this machine; `odradek pipeline start FILE` starts one")
        return
    now_s = time.time()
    titles = ["NAME", "STATE", "PID", "FOR", "RESTARTS", "INPUT/S", "DONE/S", "BATCH", "LAG", "LATE", "NOT MET"]
    print_columns(titles, [status_row(each, now_s) for each in found])
    for each in found:
        if each.last_error is not None and each.state is not State.STOPPED:
            ago = "" if each.last_error_s is None else f" {clock_text(now_s - each.last_error_s)} ago"
            say(f"{each.name} failed{ago}: {each.last_error}")
    for each in found if names else ():
        print_details(each)


def print_details(each: PipelineStatus) -> None:
    """The flows of a pipeline: batches, lag, watermark, late rows and state; and the rows of each sink and view."""
    if each.flows:
        say(f"\n{each.name}: flows since it was started")
        titles = ["FLOW", "BATCHES", "LAG", "WATERMARK", "LATE", "STATE ROWS", "STATE SIZE"]
        print_columns(titles, [flow_row(flow) for flow in each.flows])
    written = [(end, flow.name, rows) for flow in each.flows for end, rows in flow.written.items()]
    if written:
        say(f"\n{each.name}: rows written since it was started")
        print_columns(["SINK", "FLOW", "ROWS"], written)


def flow_row(flow: FlowStatus) -> tuple[object, ...]:
    lag = sum(flow.lag.values()) if flow.lag else None
    size = size_text(flow.state_bytes) if flow.state_bytes else None
    return flow.name, flow.batches, lag, flow.watermark, flow.late_rows, flow.state_rows or None, size


def status_row(each: PipelineStatus, now_s: float) -> tuple[object, ...]:
    if each.state in ENDED:
        return each.name, each.state, None, None, each.restarts, None, None, None, None, None, None
    since_s = each.running_since_s if each.state is State.RUNNING else each.started_s
    age = "" if since_s is None else clock_text(now_s - since_s)
    rates = (rate_text(each.input_per_s), rate_text(each.processed_per_s), brief_duration_text(each.batch_ms))
    return each.name, each.state, each.pid, age, each.restarts, *rates, each.lag, each.late_rows, each.violations


@command(
    ("one", "odradek pipeline stop rigs"),
    ("all running pipelines", "odradek pipeline stop --all"),
    ("one that does not stop by itself", "odradek pipeline stop rigs --kill"),
)
@click.argument("names", metavar="NAME...", nargs=-1, cls=OptionalArgument, type=TEXT)
@flag("--all is_all", "All running pipelines.")
@option("--timeout", "S", POSITIVE, "Seconds to wait.", default=STOP_TIMEOUT_S)
@flag("--kill is_killed", "Kill those that take longer.")
@format_option
def stop(names: tuple[str, ...], is_all: bool, timeout: float, is_killed: bool, as_json: bool) -> None:
    """Stop started pipelines, and wait until they have stopped.

    A batch that is not finished is repeated after the next start.
    """
    if bool(names) == is_all:
        raise click.UsageError("give the names of pipelines, or --all")
    alive = [each for each in statuses(names) if each.state not in ENDED]
    for name in names:
        if name not in {each.name for each in alive}:
            note(f"{name} is not running")
    for each in alive:
        if each.state is not State.STOPPING:  # a second signal would interrupt it
            small_files.mark_in(each).send(signal.SIGINT)
        note(f"stopping {each.name} (pid {each.pid})")
    began_s = time.monotonic()
    waiting = {each.name: each for each in alive}
    while waiting and time.monotonic() - began_s < timeout:
        for name, each in list(waiting.items()):
            if not small_files.mark_in(each).is_alive:
                report_stopped(name, began_s, as_json)
                del waiting[name]
        time.sleep(POLL_S)
    for name, each in waiting.items():
        if is_killed and kill_with_attempt(each):
            note(f"{name} was killed")
            report_stopped(name, began_s, as_json)
    if waiting and not is_killed:
        raise Failure(f"{', '.join(waiting)} did not stop within {timeout:g} s; wait, or kill it with --kill")


def kill_with_attempt(found: PipelineStatus) -> bool:
    """Kill the supervisor first, because it would start another attempt; then the processes of the attempt."""
    is_ended = small_files.mark_in(found).send(signal.SIGKILL)
    last = small_files.read_status(found.name) or found
    attempt = small_files.attempt_in(last)
    if attempt is not None:
        attempt.send_group(signal.SIGKILL)
    return is_ended


def report_stopped(name: str, began_s: float, as_json: bool) -> None:
    seconds = time.monotonic() - began_s
    result = {"pipeline": name, "stopped": True, "seconds": round(seconds, 3)}
    print_result(result, f"{name} stopped after {brief_duration_text(seconds * 1000)}", as_json=as_json)


@command(
    ("one that has ended", "odradek pipeline forget rigs"),
    ("all that have ended", "odradek pipeline forget --ended"),
)
@click.argument("names", metavar="NAME...", nargs=-1, cls=OptionalArgument, type=TEXT)
@flag("--ended is_all", "All pipelines that have ended.")
@format_option
def forget(names: tuple[str, ...], is_all: bool, as_json: bool) -> None:
    """Remove pipelines that have ended from `odradek pipeline status`.

    Their logs and checkpoints are kept.
    """
    if bool(names) == is_all:
        raise click.UsageError("give the names of pipelines, or --ended")
    statuses(names)
    found = [(name, small_files.read_status(name)) for name in dict.fromkeys(names or small_files.started_names())]
    running = [name for name, status in found if status is not None and status.state not in ENDED]
    if running and names:
        raise Failure(f"{running[0]} is running; stop it first: `odradek pipeline stop {running[0]}`")
    ended = [name for name, _status in found if name not in running]
    for name in ended:
        small_files.remove_status(name)
        print_result({"pipeline": name, "forgotten": True}, f"{name} is removed from the status", as_json=as_json)
    if not ended:
        note("no pipeline has ended")


@command(
    ("the last lines", "odradek pipeline logs rigs"),
    ("and new lines as they are written", "odradek pipeline logs rigs -f"),
)
@click.argument("name", metavar="NAME", type=TEXT)
@flag("--follow -f", "Print new lines until Ctrl-C.")
@option("--lines -n", "N", NumberType(0, 10**9), "Number of lines.", default=20)
@format_option
def logs(name: str, follow: bool, lines: int, as_json: bool) -> None:
    """Show the log of a started pipeline."""
    from odradek.pipelines.operating.log_files import follow_lines, last_lines

    statuses([name])
    path = small_files.folder_of(name) / small_files.LOG
    is_stopped = threading.Event()

    def show(line: str) -> None:
        print_result({"pipeline": name, "line": line}, line, as_json=as_json)

    with stop_on_interrupt(is_stopped):
        position = last_lines(path, lines, show)
        if follow:
            follow_lines(path, position, show, lambda: is_stopped.wait(POLL_S))


@command(("until Ctrl-C", "odradek pipeline watch rigs"), ("", "odradek pipeline watch rigs --seconds 60"))
@click.argument("name", metavar="NAME", type=TEXT)
@option("--seconds", "N", POSITIVE, "Stop after N seconds.")
@format_option
def watch(name: str, seconds: float | None, as_json: bool) -> None:
    """Show a line with the rates, batch time, lag, state and unmet expectations of a started pipeline, every second.

    On a terminal the line is written again; `pipeline status NAME` has the figures of each flow.
    """
    from odradek.pipelines.operating.screens import LiveLine

    found = next(iter(statuses([name])), None)
    if found is None:
        place = small_files.folder_of(name) / small_files.STATUS
        raise Failure(f"the status of {name} cannot be read ({place}); `odradek pipeline logs {name}`")
    ends_at_s = None if seconds is None else time.monotonic() + seconds
    is_live = sys.stdout.isatty() and not as_json
    screen = LiveLine(is_at_once=True)
    is_stopped = threading.Event()
    try:
        with stop_on_interrupt(is_stopped):
            while not is_stopped.is_set() and (ends_at_s is None or time.monotonic() < ends_at_s):
                found = small_files.read_status(name) or found
                if is_live:
                    screen.show(found)
                else:
                    print_result(found.as_object(), f"{name} {found.state}: {figures_line(found)}", as_json=as_json)
                if found.state in ENDED:
                    break
                is_stopped.wait(0.5 if is_live else 1.0)
    finally:
        screen.end()
    if found.state in {State.FAILED, State.DIED}:
        raise Failure(f"{name} {found.state}: {found.last_error or 'its process is gone'}")
