"""`odradek pipeline stop`."""

from __future__ import annotations

import signal
import time

import click

from odradek.cli.framework.commands import OptionalArgument, command
from odradek.cli.framework.options import format_option
from odradek.cli.framework.output import note, print_json, say
from odradek.cli.framework.parameter_types import POSITIVE, TEXT
from odradek.cli.pipeline.started import statuses
from odradek.conventions.failures import Failure
from odradek.pipelines.operating.figures import duration_text
from odradek.pipelines.operating.status import ENDED, PipelineStatus, State
from odradek.pipelines.operating.status_files import attempt_in, mark_in, read_status

POLL_S = 0.1


STOP_TIMEOUT_S = 60.0


@command(
    examples=[
        ("one", "odradek pipeline stop rigs"),
        ("all running pipelines", "odradek pipeline stop --all"),
        ("one that does not stop by itself", "odradek pipeline stop rigs --kill"),
    ]
)
@click.argument("names", metavar="NAME...", nargs=-1, cls=OptionalArgument, type=TEXT)
@click.option("--all", "is_all", is_flag=True, help="All running pipelines.")
@click.option(
    "--timeout", type=POSITIVE, default=STOP_TIMEOUT_S, show_default=True, metavar="S", help="Seconds to wait."
)
@click.option("--kill", "is_killed", is_flag=True, help="Kill those that take longer.")
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
            mark_in(each).send(signal.SIGINT)
        note(f"stopping {each.name} (pid {each.pid})")
    began_s = time.monotonic()
    waiting = {each.name: each for each in alive}
    while waiting and time.monotonic() - began_s < timeout:
        for name, each in list(waiting.items()):
            if not mark_in(each).is_alive:
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
    is_ended = mark_in(found).send(signal.SIGKILL)
    last = read_status(found.name) or found
    attempt = attempt_in(last)
    if attempt is not None:
        attempt.send_group(signal.SIGKILL)
    return is_ended


def report_stopped(name: str, began_s: float, as_json: bool) -> None:
    seconds = time.monotonic() - began_s
    if as_json:
        print_json({"pipeline": name, "stopped": True, "seconds": round(seconds, 3)})
    else:
        say(f"{name} stopped after {duration_text(seconds * 1000)}")
