"""`odradek pipeline`: check declared pipelines and draw their lineage without starting anything; run them."""

from __future__ import annotations

import importlib.util
import os
from collections import Counter
from typing import TYPE_CHECKING, Any

import click

from odradek.cli.commands import command, group
from odradek.cli.failure import Failure
from odradek.cli.options import format_option
from odradek.cli.output import count_text, print_json, say, strong
from odradek.cli.parameter_types import TEXT
from odradek.cli.pipeline_options import ENGINES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.pipelines.definition.checked import Definition
    from odradek.pipelines.definition.model import Pipeline
    from odradek.pipelines.definition.places import Problem


NEEDED_PACKAGES = {"yaml": "PyYAML", "sqlglot": "sqlglot", "fastavro": "fastavro"}

engine_option = click.option(
    "--engine", type=click.Choice(ENGINES), help="Check for this engine instead of the definition's own."
)


@group(
    lazy={
        "validate": ("odradek.cli.pipeline:validate", "Check definitions and say what is wrong, with the line."),
        "graph": ("odradek.cli.pipeline:graph", "Draw the lineage of a pipeline."),
        "test": ("odradek.cli.pipeline_test:test", "Test pipelines: given rows, expected rows, no broker."),
        "run": ("odradek.cli.pipeline_run:run", "Run a pipeline until Ctrl-C."),
        "start": ("odradek.cli.pipeline_processes:start", "Start pipelines in the background."),
        "stop": ("odradek.cli.pipeline_processes:stop", "Stop started pipelines."),
        "status": ("odradek.cli.pipeline_processes:status", "Show how the started pipelines do."),
        "logs": ("odradek.cli.pipeline_processes:logs", "Show what a started pipeline has to say."),
        "watch": ("odradek.cli.pipeline_processes:watch", "Show a started pipeline live."),
        "checkpoints": ("odradek.cli.pipeline_reset:checkpoints", "Show how far a pipeline is."),
        "reset": ("odradek.cli.pipeline_reset:reset", "Let a pipeline forget how far it is."),
        "backfill": ("odradek.cli.pipeline_backfill:backfill", "Compute a range of offsets or times as a batch."),
        "rebuild": ("odradek.cli.pipeline_backfill:rebuild", "Compute views again from the log."),
    },
    examples=[
        ("is it sound?", "odradek pipeline validate pipeline.yml"),
        ("what reads what", "odradek pipeline graph pipeline.yml"),
        ("run it", "odradek pipeline run pipeline.yml"),
        ("keep it running in the background", "odradek pipeline start pipeline.yml"),
    ],
)
def pipeline() -> None:
    """Declared pipelines: sources → steps → sinks, in YAML or in Python.

    `validate` and `graph` start nothing; `test` starts Spark and needs no brokers.
    """


def require_packages(packages: Mapping[str, str] = NEEDED_PACKAGES) -> None:
    missing = [package for module, package in packages.items() if importlib.util.find_spec(module) is None]
    if missing:
        raise Failure(f"pipelines need {' and '.join(missing)}; install them with: pip install 'odradek[pipelines]'")


def load(file: str, engine: str | None) -> list[Definition]:
    """The definitions of a file, where the packages for reading them are installed."""
    require_packages()
    from odradek.pipelines.definition.loading import load_file  # noqa: PLC0415 - help does not need it
    from odradek.pipelines.definition.vocabulary import Engine  # noqa: PLC0415

    return load_file(file, os.environ, None if engine is None else Engine(engine))


@command(
    examples=[
        ("one definition, or several", "odradek pipeline validate pipeline.yml"),
        ("would it run in real time?", "odradek pipeline validate pipeline.yml --engine realtime"),
        ("the pipelines of a Python file", "odradek pipeline validate rigs.py"),
        ("the lines that are wrong", "odradek pipeline validate p.yml --format json | jq .problems[].line"),
    ]
)
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path())
@engine_option
@format_option
def validate(files: tuple[str, ...], engine: str | None, as_json: bool) -> None:
    """Check definitions and say what is wrong, with the line.

    Names, circles, schemas, SQL, columns, watermarks, import paths, and what the engine cannot run.
    All that is wrong is told at once. The exit code is 1 where something is; warnings do not count.
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
        say(f"{file}: {strong(definition.pipeline.name)} is sound: {', '.join(contents(definition.pipeline))}")


def problem_line(problem: Problem) -> str:
    colour = "red" if problem.severity == "error" else "yellow"
    return f"{problem.place}: {click.style(f'{problem.severity}:', fg=colour, bold=True)} {problem.text}"


def contents(found: Pipeline) -> list[str]:
    counts = ((found.sources, "source"), (found.steps, "step"), (found.sinks, "sink"), (found.views, "view"))
    return [count_text(len(things), noun) for things, noun in counts if things]


@command(
    examples=[
        ("on the terminal", "odradek pipeline graph pipeline.yml"),
        ("as a picture", "odradek pipeline graph pipeline.yml --svg lineage.svg"),
        ("the order in which steps run", "odradek pipeline graph p.yml --format json | jq .nodes[].name"),
    ]
)
@click.argument("file", metavar="FILE", type=click.Path())
@click.option("--svg", metavar="FILE", type=click.Path(dir_okay=False), help="Write the drawing here; - prints it.")
@click.option("--pipeline", "name", metavar="NAME", type=TEXT, help="Which one, of a Python file with several.")
@format_option
def graph(file: str, svg: str | None, name: str | None, as_json: bool) -> None:
    """Draw the lineage of a pipeline, from its sources to its sinks and views.

    In JSON every node comes after those that it reads.
    """
    found = choose(file, load(file, None), name)
    if svg is not None:
        from odradek.pipelines.definition.drawing_svg import draw_svg  # noqa: PLC0415

        with click.open_file(svg, "w", encoding="utf-8") as output:
            output.write(draw_svg(found))
        if svg != "-" and not as_json:
            say(f"drew {found.name} to {svg}")
    if as_json:
        print_json(graph_object(found))
    elif svg is None:
        from odradek.pipelines.definition.drawing import draw_text  # noqa: PLC0415

        say(draw_text(found))


def choose(file: str, definitions: list[Definition], name: str | None) -> Pipeline:
    """The one pipeline that is meant, if it is sound."""
    for definition in definitions:
        errors = [each for each in definition.problems if each.severity == "error"]
        if errors:
            more = f", and {len(errors) - 1} more" if len(errors) > 1 else ""
            raise Failure(f"{errors[0].place}: {errors[0].text}{more} (see `odradek pipeline validate {file}`)")
    by_name = {each.pipeline.name: each.pipeline for each in definitions if each.pipeline is not None}
    if name is None and len(by_name) > 1:
        raise Failure(f"{file} defines {', '.join(by_name)}; say which with --pipeline")
    if name is not None and name not in by_name:
        raise Failure(f"{file} defines no pipeline {name}; it has {', '.join(by_name)}")
    return by_name[name] if name is not None else next(iter(by_name.values()))


def graph_object(found: Pipeline) -> dict[str, Any]:
    from odradek.pipelines.definition.lineage import lineage_of  # noqa: PLC0415

    nodes = lineage_of(found)
    return {
        "pipeline": found.name,
        "engine": str(found.engine),
        "delivery": str(found.delivery),
        "nodes": [
            {
                "id": node.id,
                "kind": str(node.kind),
                "name": node.name,
                "detail": node.detail,
                "inputs": list(node.inputs),
            }
            for node in nodes
        ],
    }
