"""`odradek pipeline forget`: removes the entries of pipelines that have ended."""

from __future__ import annotations

import click

from odradek.cli.framework.commands import OptionalArgument, command
from odradek.cli.framework.options import format_option
from odradek.cli.framework.output import note, print_json, say
from odradek.cli.framework.parameter_types import TEXT
from odradek.cli.pipeline.started import statuses
from odradek.conventions.failures import Failure
from odradek.pipelines.operating.state_folders import started_names
from odradek.pipelines.operating.status import ENDED
from odradek.pipelines.operating.status_files import read_status, remove_status


@command(
    examples=[
        ("one that has ended", "odradek pipeline forget rigs"),
        ("all that have ended", "odradek pipeline forget --ended"),
    ]
)
@click.argument("names", metavar="NAME...", nargs=-1, cls=OptionalArgument, type=TEXT)
@click.option("--ended", "is_all", is_flag=True, help="All pipelines that have ended.")
@format_option
def forget(names: tuple[str, ...], is_all: bool, as_json: bool) -> None:
    """Remove pipelines that have ended from `odradek pipeline status`.

    Their logs and checkpoints are kept.
    """
    if bool(names) == is_all:
        raise click.UsageError("give the names of pipelines, or --ended")
    statuses(names)
    found = [(name, read_status(name)) for name in dict.fromkeys(names or started_names())]
    running = [name for name, status in found if status is not None and status.state not in ENDED]
    if running and names:
        raise Failure(f"{running[0]} is running; stop it first: `odradek pipeline stop {running[0]}`")
    ended = [name for name, _status in found if name not in running]
    for name in ended:
        remove_status(name)
        print_json({"pipeline": name, "forgotten": True}) if as_json else say(f"{name} is removed from the status")
    if not ended:
        note("no pipeline has ended")
