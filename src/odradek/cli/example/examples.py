"""`odradek example list` and `copy`; the files of an example, and the options that override its simulator, for the
commands that run one."""

from __future__ import annotations

import contextlib
import dataclasses
import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from odradek.cli.framework.commands import OptionalArgument, command
from odradek.cli.framework.options import format_option, option
from odradek.cli.framework.output import print_columns, print_json, say
from odradek.cli.framework.parameter_types import POSITIVE, TEXT, NumberType
from odradek.conventions.failures import Failure
from odradek.conventions.figures import INT64_MAX
from odradek.examples.folders import Example, NoSuchExample, copy_example, find_example, packaged_examples
from odradek.examples.live_view.loading import load_view
from odradek.examples.simulator.loading import load_simulation
from odradek.local.executable import command_name
from odradek.pipelines.definition.nodes import MappingNode, Scalar
from odradek.pipelines.definition.places import ProblemList, Problems
from odradek.pipelines.definition.substituting import read_yaml
from odradek.pipelines.definition.text_files import read_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from odradek.examples.live_view.definition import ViewDefinition
    from odradek.examples.simulator.model import Simulation

DEFAULT_EXAMPLE = "rigs"

rate_option = option("--rate", "N", POSITIVE, "Records per second. Default: that of the simulator.")
entities_option = option("--entities", "N", NumberType(1, 100_000), "Number of entities, such as pumps.")
seed_option = option(
    "--seed", "N", NumberType(-INT64_MAX, INT64_MAX), "The same seed and start time give the same records."
)
SQLITE = "sqlite:///"


@command(
    "list",
    examples=[
        ("names and summaries", "odradek example list"),
        ("where the files are", "odradek example list --format json"),
    ],
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


def chosen_example(name: str) -> Example:
    try:
        return find_example(name)
    except NoSuchExample as error:
        raise Failure(str(error)) from None


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
    flaws = simulation.flaws
    flaws = dataclasses.replace(
        flaws,
        late_share=flaws.late_share if late is None else late,
        malformed_share=flaws.malformed_share if malformed is None else malformed,
    )
    if flaws.late_share and flaws.late_by is None:
        raise Failure("--late needs flaws: {late: {by: …}} in simulator.yml, which says how late")
    if flaws.malformed_share and not flaws.kinds:
        raise Failure("--malformed needs flaws: {malformed: {kinds: …}} in simulator.yml")
    if flaws.late_share + flaws.duplicate_share + flaws.malformed_share > 1:
        raise click.UsageError("the shares of late, duplicate and malformed records are more than 1 in all")
    return dataclasses.replace(
        simulation,
        rate=simulation.rate if rate is None else rate,
        count=simulation.count if entities is None else entities,
        seed=simulation.seed if seed is None else seed,
        flaws=flaws,
    )


def warehouse_of(example: Example) -> str | None:
    """The URL of the definition, with the path of a SQLite file resolved from its folder; None without one."""
    problems = Problems()
    text = read_text(example.definition, problems)
    root = None if text is None else read_yaml(text, example.definition, os.environ, problems)
    if not isinstance(root, MappingNode):
        return None
    found, name = root.get("warehouse"), root.get("pipeline")
    if isinstance(found, Scalar) and found.text:
        url = found.text
    elif isinstance(name, Scalar):
        url = f"{SQLITE}{name.text}.db"
    else:
        return None
    if not url.startswith(SQLITE):
        return url
    file = Path(example.folder).absolute() / url.removeprefix(SQLITE)
    return f"{SQLITE}{file}" if file.exists() else None
