"""`odradek pipeline init`: a new project that runs at once."""

from __future__ import annotations

from pathlib import Path

import click

from odradek.cli.framework.commands import command
from odradek.cli.framework.options import format_option
from odradek.cli.framework.output import print_json, say
from odradek.cli.framework.parameter_types import TEXT
from odradek.conventions.failures import Failure
from odradek.local.executable import command_name
from odradek.pipelines.definition.parsing_values import PIPELINE_NAME, TOPIC_NAME
from odradek.pipelines.examples.folders import copy_example, find_example

STARTER = "starter"  # the example that is copied, and the word in its files that becomes the name of the project
LONGEST_NAME = 100


@command(
    "init",
    examples=[
        ("a project in ./shop", "odradek pipeline init shop"),
        ("see it run", "odradek up ./shop"),
    ],
)
@click.argument("name", metavar="NAME", type=TEXT)
@format_option
def init(name: str, as_json: bool) -> None:
    """Write a project that runs at once, in a new folder.

    A definition with its tests, sample records, a simulator and a live view, and a README with the commands to run.
    NAME is the folder, the pipeline and the first word of its topics.
    """
    if not (PIPELINE_NAME.match(name) and TOPIC_NAME.match(name)) or len(name) > LONGEST_NAME:
        raise Failure(f"'{name}' cannot name a pipeline; use letters, digits, dashes and underscores")
    folder = Path(name)
    if folder.exists():
        raise Failure(f"{folder} exists; choose another name, or run it elsewhere")
    files = copy_example(find_example(STARTER), folder, {STARTER: name})
    if as_json:
        print_json({"name": name, "folder": str(folder), "files": files})
        return
    odradek = command_name()
    say(f"wrote {name}/: {', '.join(files)}")
    say(f"check and test it:  cd {name} && {odradek} pipeline validate pipeline.yml && {odradek} pipeline test")
    say(f"see it run:         {odradek} up ./{name}")
    say(f"more in {name}/README.md")
