"""`odradek example copy`: an example as a folder of one's own."""

from __future__ import annotations

from pathlib import Path

import click

from odradek.cli.example.loading import chosen_example
from odradek.cli.framework.commands import OptionalArgument, command
from odradek.cli.framework.options import format_option
from odradek.cli.framework.output import print_json, say
from odradek.cli.framework.parameter_types import TEXT
from odradek.conventions.failures import Failure
from odradek.local.executable import command_name
from odradek.pipelines.examples.folders import copy_example


@command(
    "copy",
    examples=[
        ("into ./rigs", "odradek example copy rigs"),
        ("into another folder, and run it", "odradek example copy rigs wells"),
        ("", "odradek up ./wells"),
    ],
)
@click.argument("name", metavar="NAME", type=TEXT)
@click.argument("target", metavar="DIR", type=click.Path(file_okay=False), required=False, cls=OptionalArgument)
@format_option
def copy(name: str, target: str | None, as_json: bool) -> None:
    """Copy an example into a folder.

    The default folder has the name of the example. A folder that has files is refused.
    """
    example = chosen_example(name)
    folder = Path(target or example.name)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise Failure(f"{folder} exists and is not empty; name another folder")
    files = copy_example(example, folder)
    if as_json:
        print_json({"name": example.name, "folder": str(folder), "files": files})
        return
    say(f"copied {example.name} to {folder}: {', '.join(files)}")
    say(f"run it: {command_name()} up {folder if folder.is_absolute() else f'./{folder}'}")
