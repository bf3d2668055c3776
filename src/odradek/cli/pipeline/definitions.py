"""`odradek pipeline init`, `validate`, `schema`, `graph` and `jars`: definitions, without starting anything, and the
files that Spark needs, for machines that reach no registry."""

from __future__ import annotations

import contextlib
import dataclasses
import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from odradek.cli.framework.commands import command
from odradek.cli.framework.options import flag, format_option, option
from odradek.cli.framework.output import fields_of, note, print_json, print_result, say, strong
from odradek.cli.framework.parameter_types import TEXT
from odradek.cli.pipeline import options
from odradek.conventions.failures import Failure
from odradek.conventions.figures import count_text
from odradek.examples.folders import copy_example, find_example
from odradek.local.child_process import command_name
from odradek.pipelines.definition.vocabulary import PIPELINE_NAME, TOPIC_NAME

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from odradek.pipelines.definition.model import Pipeline
    from odradek.pipelines.definition.places import Problem
    from odradek.pipelines.planning.lineage import LineageNode
    from odradek.pipelines.planning.loading import Definition

STARTER = "starter"  # the example that is copied, and the word in its files that becomes the name of the project
LONGEST_NAME = 100


@command(("a project in ./shop", "odradek pipeline init shop"), ("see it run", "odradek up ./shop"), name="init")
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
    odradek = command_name()
    lines = (
        f"wrote {name}/: {', '.join(files)}",
        f"check and test it:  cd {name} && {odradek} pipeline validate pipeline.yml && {odradek} pipeline test",
        f"see it run:         {odradek} up ./{name}",
        f"more in {name}/README.md",
    )
    print_result({"name": name, "folder": str(folder), "files": files}, "\n".join(lines), as_json=as_json)


@command(
    ("one definition, or several", "odradek pipeline validate pipeline.yml"),
    ("check for the realtime engine", "odradek pipeline validate pipeline.yml --engine realtime"),
    ("the pipelines of a Python file", "odradek pipeline validate rigs.py"),
    ("with what Spark says of its SQL and types", "odradek pipeline validate pipeline.yml --spark"),
    ("lines with errors", "odradek pipeline validate p.yml --format json | jq '.problems[].line'"),
)
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path())
@option("--engine", None, click.Choice(options.ENGINES), "Check for this engine. Default: that of the definition.")
@flag("--spark", "Start Spark, and let it analyse the definition over empty sources: SQL, types, Python steps.")
@options.definition_options
@format_option
def validate(files: tuple[str, ...], engine: str | None, spark: bool, as_json: bool) -> None:
    """Check definitions and report every error with its line.

    Checks names, cycles, schemas, SQL, columns, watermarks, import paths, and what the engine supports. The exit code
    is 1 if there is an error; warnings do not count.
    """
    wrong: Counter[str] = Counter()
    with spark_analysis() if spark else contextlib.nullcontext(lambda definition: definition) as analysed:
        for file in dict.fromkeys(files):
            for definition in map(analysed, options.load(file, engine)):
                wrong[file] += sum(each.severity == "error" for each in definition.problems)
                if as_json:
                    print_json(definition_object(file, definition))
                else:
                    print_definition(file, definition)
    if wrong.total():
        raise Failure(f"{count_text(wrong.total(), 'error')} in {', '.join(+wrong)}")


@contextlib.contextmanager
def spark_analysis() -> Iterator[Callable[[Definition], Definition]]:
    """A function that adds to a sound definition what Spark says of it."""
    options.require_packages()
    options.require_spark()
    from odradek.pipelines.spark.analysing.analysis import analyser

    with options.pipeline_errors(), analyser(note) as analyse:

        def analysed(definition: Definition) -> Definition:
            if not definition.is_sound:
                return definition
            assert definition.plan is not None
            found = analyse(definition.plan)
            problems = (*definition.problems, *found)
            return dataclasses.replace(definition, problems=problems, is_sound=not found.errors)

        yield analysed


def definition_object(file: str, definition: Definition) -> dict[str, Any]:
    return {
        "file": file,
        "pipeline": definition.pipeline.name if definition.pipeline is not None else None,
        "valid": definition.is_sound,
        "problems": [problem_object(each) for each in definition.problems],
    }


def problem_object(problem: Problem) -> dict[str, Any]:
    place = fields_of(problem.place, "file line column")
    return {**place, "severity": str(problem.severity), **fields_of(problem, "code message hint")}


def print_definition(file: str, definition: Definition) -> None:
    for each in definition.problems:
        say(problem_line(each))
    if definition.is_sound and definition.pipeline is not None:
        say(f"{file}: {strong(definition.pipeline.name)} is valid: {', '.join(contents(definition.pipeline))}")


def problem_line(problem: Problem) -> str:
    colour = "red" if problem.severity == "error" else "yellow"
    severity = f"{problem.severity} {problem.code}".rstrip()
    return f"{problem.place}: {click.style(f'{severity}:', fg=colour, bold=True)} {problem.text}"


def contents(found: Pipeline) -> list[str]:
    counts = ((found.sources, "source"), (found.steps, "step"), (found.sinks, "sink"), (found.views, "view"))
    return [count_text(len(things), noun) for things, noun in counts if things]


@command(("for an editor that takes a file", "odradek pipeline schema > odradek.schema.json"))
@format_option
def schema(as_json: bool) -> None:
    """Print the JSON Schema of definitions, for editors.

    Editors with a YAML language server complete keys and mark unknown ones. `odradek pipeline validate` checks more.
    With --format json it is one line.
    """
    options.require_packages()
    from odradek.pipelines.definition.editor_schema import definition_schema

    say(json.dumps(definition_schema(), indent=None if as_json else 2, ensure_ascii=False))


@command(
    ("as text", "odradek pipeline graph pipeline.yml"),
    ("the order in which steps run", "odradek pipeline graph p.yml --format json | jq '.nodes[].name'"),
)
@click.argument("file", metavar="FILE", type=click.Path())
@options.name_option
@options.definition_options
@format_option
def graph(file: str, as_json: bool) -> None:
    """Draw the lineage of a pipeline, from its sources to its sinks and views.

    In JSON, every node comes after the nodes that it reads.
    """
    definitions = options.load(file, None)
    found = options.choose(file, definitions, options.kept().get("name"))
    nodes = nodes_of(next(each for each in definitions if each.pipeline is found))
    if as_json:
        shown = [fields_of(node, "id kind name detail inputs level") for node in nodes]
        kinds = {"engine": str(found.engine), "delivery": str(found.delivery)}
        print_json({"pipeline": found.name, **kinds, "nodes": shown})
    else:
        from odradek.pipelines.planning.lineage import draw_text

        say(draw_text(found, nodes))


def nodes_of(definition: Definition) -> list[LineageNode]:
    """The lineage of a sound definition."""
    from odradek.pipelines.planning.lineage import lineage_of

    assert definition.plan is not None
    return lineage_of(definition.plan)


@command(
    ("where a registry is reached", "odradek pipeline jars spark-jars"),
    ("elsewhere, with a copy of it", "ODRADEK_SPARK_JARS=spark-jars odradek pipeline run pipeline.yml"),
)
@click.argument("folder", metavar="DIR", type=TEXT)
@format_option
def jars(folder: str, as_json: bool) -> None:
    """Fetch the jars that Spark needs, for a machine that reaches no registry.

    The Kafka connector for the installed PySpark, the JDBC drivers of PostgreSQL and SQLite and, with PySpark 4.1,
    Delta and Iceberg. Copy DIR to the other machine, and name it in ODRADEK_SPARK_JARS.
    """
    options.require_packages()
    options.require_spark()
    import pyspark

    from odradek.pipelines.spark.sessions.jars import GIVEN_FOLDER, fetch_all

    with options.pipeline_errors():
        files = fetch_all(Path(folder), say)
    text = (
        f"{folder} has {count_text(len(files), 'jar')} for PySpark {pyspark.__version__}: {', '.join(files)}\n"
        f"on the other machine: export {GIVEN_FOLDER}={folder}"
    )
    print_result({"folder": folder, "pyspark": pyspark.__version__, "jars": files}, text, as_json=as_json)
