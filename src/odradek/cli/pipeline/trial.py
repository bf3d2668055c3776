"""`odradek pipeline test` and `preview`: what a definition does, on Spark, without running it."""

from __future__ import annotations

import json
import os
from itertools import islice
from typing import TYPE_CHECKING, Any

import click

from odradek.cli.framework.commands import command
from odradek.cli.framework.options import format_option, option
from odradek.cli.framework.output import faint, fields_of, note, print_json, say, strong
from odradek.cli.framework.parameter_types import RECORD_COUNT, TEXT
from odradek.cli.pipeline import options
from odradek.cli.pipeline.run import check_brokers
from odradek.conventions.failures import Failure
from odradek.conventions.figures import count_text

if TYPE_CHECKING:
    from odradek.pipelines.definition.places import Problem
    from odradek.pipelines.trial.comparing import Difference
    from odradek.pipelines.trial.model import CaseFile
    from odradek.pipelines.trial.running import Result


INDENT = " " * 6
DEFAULT_RECORDS = 100
SHOWN_ROWS = 20


@command(
    ("all tests in and below the current directory", "odradek pipeline test"),
    ("the tests of a definition, in pipeline.test.yml", "odradek pipeline test pipeline.yml"),
    ("one case", "odradek pipeline test pipeline.yml --case 'high pressure warns'"),
    ("messages of the failed cases", "odradek pipeline test --format json | jq '.differences[].message'"),
    name="test",
)
@click.argument("files", metavar="[FILE...]", nargs=-1, type=click.Path())
@option("--case only", "NAME", TEXT, "Only the case with this name.")
@options.definition_options
@format_option
def test(files: tuple[str, ...], only: str | None, as_json: bool) -> None:
    """Test pipelines: given rows, expected rows, no broker.

    FILE is a file of tests (`….test.yml`), a definition with a test file beside it, or a folder.
    The exit code is 1 if a case fails.
    """
    options.require_packages()
    options.require_spark()
    from odradek.pipelines.definition.places import ProblemList

    try:
        found = read_files(files or (".",), only)
    except ProblemList as error:
        errors = [each for each in error if each.severity == "error"]  # `validate` shows the warnings
        for each in errors:
            click.echo(f"{each.place}: {each.text}", err=True)
        raise Failure(f"{count_text(len(errors), 'error')}, nothing was run") from None
    results = run_all(found, only, as_json)
    failed = sum(not each.is_passed for each in results)
    if failed:
        raise Failure(f"{failed} of {count_text(len(results), 'case')} failed")
    if not as_json:
        say(strong(f"{count_text(len(results), 'case')} passed"))


def read_files(named: tuple[str, ...], only: str | None) -> list[CaseFile]:
    """Read all files before Spark is started."""
    from odradek.pipelines.definition.nearest import suggestion
    from odradek.pipelines.definition.places import ProblemList
    from odradek.pipelines.trial.parsing import find_files, read_case_file

    problems: list[Problem] = []
    found: list[CaseFile] = []
    for file in find_files(named):
        try:
            found.append(read_case_file(file, os.environ, options.chosen()))
        except ProblemList as error:
            problems += error.problems
    if problems:
        raise ProblemList(problems)
    names = [case.name for each in found for case in each.cases]
    if only is not None and only not in names:
        raise Failure(f"there is no case '{only}'; {suggestion(only, names, what='there are')}")
    return found


def run_all(found: list[CaseFile], only: str | None, as_json: bool) -> list[Result]:
    from odradek.pipelines.spark.sessions.session import start_session
    from odradek.pipelines.trial.running import MASTER, SETTINGS, run_file

    session = start_session(
        "odradek pipeline test", SETTINGS, MASTER, lambda line: click.echo(line, err=True), has_connector=False
    )
    results = []
    try:
        for cases in found:
            for result in run_file(session, cases, only):
                results.append(result)
                if as_json:
                    print_json(as_object(result))
                else:
                    print_result(result)
    finally:
        session.stop()
    return results


def print_result(result: Result) -> None:
    place = result.case.place
    verdict = click.style("ok  ", fg="green") if result.is_passed else click.style("FAIL", fg="red", bold=True)
    say(f"{verdict}  {result.case.name}  {faint(f'{place.file}:{place.line}, {result.seconds:.1f} s')}")
    for each in result.differences:
        say(f"{INDENT}line {each.place.line}: {each.where}: {each.message}")
        for line in detail(each):
            say(f"{INDENT}    {line}")


def detail(difference: Difference) -> list[str]:
    if difference.kind == "missing":
        return [f"expected  {spelled(difference.expected)}"]
    if difference.kind == "unexpected":
        return [f"found     {spelled(difference.found)}"]
    if difference.kind != "different":
        return []
    width = max(len(each.path) for each in difference.fields)
    return [
        f"{each.path.ljust(width)}  expected {spelled(each.expected)}, "
        f"found {'no such column' if each.is_absent else spelled(each.found)}"
        for each in difference.fields
    ]


def spelled(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def as_object(result: Result) -> dict[str, Any]:
    return {
        "file": result.file,
        "line": result.case.place.line,
        "case": result.case.name,
        "passed": result.is_passed,
        "seconds": round(result.seconds, 3),
        "differences": [difference_object(each) for each in result.differences],
    }


def difference_object(difference: Difference) -> dict[str, Any]:
    kind = {**fields_of(difference, "where kind"), "line": difference.place.line}
    fields = [{"column": each.path, **fields_of(each, "expected found")} for each in difference.fields]
    return {**kind, **fields_of(difference, "message expected found"), "fields": fields}


@command(
    ("rows of a step", "odradek pipeline preview pipeline.yml readings"),
    ("from the last ten records of each partition", "odradek pipeline preview pipeline.yml readings --records 10"),
    ("all rows as JSON", "odradek pipeline preview pipeline.yml readings --limit 1000 --format json"),
)
@click.argument("file", metavar="FILE", type=click.Path())
@click.argument("step", metavar="STEP", type=TEXT)
@option("--records", "N", RECORD_COUNT, "Read the last N records of each partition.", default=DEFAULT_RECORDS)
@option("--limit", "N", RECORD_COUNT, "At most N rows.", default=SHOWN_ROWS)
@options.pipeline_options
@format_option
def preview(file: str, step: str, records: int, limit: int, as_json: bool) -> None:
    """Show rows of a source or step, computed once from the last records of its topics.

    Nothing is written, and checkpoints do not change. A group or a join includes only the records that were read.
    """
    found = options.chosen_pipeline(file)
    options.require_spark()
    check_brokers(found)
    from odradek.cli.pipeline.sql import SETTINGS, print_table
    from odradek.pipelines.spark import previewing

    with options.pipeline_errors(), previewing.preview(found, step, records, SETTINGS, note) as answer:
        if as_json:
            for row in islice(answer.rows, limit):
                print_json(row)
        else:
            print_table(answer, limit)
