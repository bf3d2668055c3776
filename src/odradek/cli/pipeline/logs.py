"""`odradek pipeline logs`: the log of a started pipeline."""

from __future__ import annotations

import threading

import click

from odradek.cli.framework.commands import command
from odradek.cli.framework.interrupt import stop_on_interrupt
from odradek.cli.framework.options import format_option
from odradek.cli.framework.output import print_json, say
from odradek.cli.framework.parameter_types import TEXT, NumberType
from odradek.cli.pipeline.started import statuses
from odradek.pipelines.operating.state_folders import LOG, folder_of

POLL_S = 0.1


TAIL_LINES = 20


@command(
    examples=[
        ("the last lines", "odradek pipeline logs rigs"),
        ("and new lines as they are written", "odradek pipeline logs rigs -f"),
    ]
)
@click.argument("name", metavar="NAME", type=TEXT)
@click.option("--follow", "-f", is_flag=True, help="Print new lines until Ctrl-C.")
@click.option(
    "--lines",
    "-n",
    type=NumberType(0, 10**9),
    default=TAIL_LINES,
    show_default=True,
    metavar="N",
    help="Number of lines.",
)
@format_option
def logs(name: str, follow: bool, lines: int, as_json: bool) -> None:
    """Show the log of a started pipeline."""
    from odradek.pipelines.operating.log_reading import follow_lines, last_lines

    statuses([name])
    path = folder_of(name) / LOG
    is_stopped = threading.Event()

    def show(line: str) -> None:
        print_json({"pipeline": name, "line": line}) if as_json else say(line)

    with stop_on_interrupt(is_stopped):
        position = last_lines(path, lines, show)
        if follow:
            follow_lines(path, position, show, lambda: is_stopped.wait(POLL_S))
