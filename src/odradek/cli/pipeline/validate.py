"""`odradek pipeline validate`: all errors of a definition, without starting anything."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import click

from odradek.cli.framework.commands import command
from odradek.cli.framework.options import format_option
from odradek.cli.framework.output import print_json, say, strong
from odradek.cli.pipeline.definition_options import definition_options
from odradek.cli.pipeline.loading import load
from odradek.cli.pipeline.options import ENGINES
from odradek.conventions.failures import Failure
from odradek.conventions.figures import count_text

if TYPE_CHECKING:
    from odradek.pipelines.definition.checked import Definition
    from odradek.pipelines.definition.model import Pipeline
    from odradek.pipelines.definition.places import Problem


engine_option = click.option(
    "--engine", type=click.Choice(ENGINES), help="Check for this engine. Default: that of the definition."
)


@command(
    examples=[
        ("one definition, or several", "odradek pipeline validate pipeline.yml"),
        ("check for the realtime engine", "odradek pipeline validate pipeline.yml --engine realtime"),
        ("the pipelines of a Python file", "odradek pipeline validate rigs.py"),
        ("lines with errors", "odradek pipeline validate p.yml --format json | jq '.problems[].line'"),
    ]
)
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path())
@engine_option
@definition_options
@format_option
def validate(files: tuple[str, ...], engine: str | None, as_json: bool) -> None:
    """Check definitions and report every error with its line.

    Checks names, cycles, schemas, SQL, columns, watermarks, import paths, and what the engine supports. The exit code
    is 1 if there is an error; warnings do not count.
    """
    wrong: Counter[str] = Counter()
    for file in dict.fromkeys(files):
        for definition in load(file, engine):
            wrong[file] += sum(each.severity == "error" for each in definition.problems)
            if as_json:
                print_json(as_object(file, definition))
            else:
                print_definition(file, definition)
    if wrong.total():
        raise Failure(f"{count_text(wrong.total(), 'error')} in {', '.join(+wrong)}")


def as_object(file: str, definition: Definition) -> dict[str, Any]:
    return {
        "file": file,
        "pipeline": definition.pipeline.name if definition.pipeline is not None else None,
        "valid": definition.is_sound,
        "problems": [
            {
                "file": each.place.file,
                "line": each.place.line,
                "column": each.place.column,
                "severity": str(each.severity),
                "message": each.message,
                "hint": each.hint,
            }
            for each in definition.problems
        ],
    }


def print_definition(file: str, definition: Definition) -> None:
    for each in definition.problems:
        say(problem_line(each))
    if definition.is_sound and definition.pipeline is not None:
        say(f"{file}: {strong(definition.pipeline.name)} is valid: {', '.join(contents(definition.pipeline))}")


def problem_line(problem: Problem) -> str:
    colour = "red" if problem.severity == "error" else "yellow"
    return f"{problem.place}: {click.style(f'{problem.severity}:', fg=colour, bold=True)} {problem.text}"


def contents(found: Pipeline) -> list[str]:
    counts = ((found.sources, "source"), (found.steps, "step"), (found.sinks, "sink"), (found.views, "view"))
    return [count_text(len(things), noun) for things, noun in counts if things]
