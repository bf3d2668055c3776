"""`odradek pipeline watch`: a live view of a started pipeline."""

from __future__ import annotations

import sys
import threading
import time

import click

from odradek.cli.framework.commands import command
from odradek.cli.framework.interrupt import stop_on_interrupt
from odradek.cli.framework.options import format_option
from odradek.cli.framework.output import print_json, say
from odradek.cli.framework.parameter_types import POSITIVE, TEXT
from odradek.cli.pipeline.started import statuses
from odradek.conventions.failures import Failure
from odradek.pipelines.operating.state_folders import STATUS, folder_of
from odradek.pipelines.operating.status import ENDED, PipelineStatus, State
from odradek.pipelines.operating.status_files import read_status


@command(examples=[("until Ctrl-C", "odradek pipeline watch rigs"), ("", "odradek pipeline watch rigs --seconds 60")])
@click.argument("name", metavar="NAME", type=TEXT)
@click.option("--seconds", type=POSITIVE, metavar="N", help="Stop after N seconds.")
@format_option
def watch(name: str, seconds: float | None, as_json: bool) -> None:
    """Show a started pipeline live: rates, batch time, lag, state and expectations of each flow.

    Without a terminal, one line per second.
    """
    from odradek.pipelines.operating.screens import LiveView

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
    from odradek.pipelines.operating.figures import figures_line

    return f"{found.name} {found.state}: {figures_line(found)}"
