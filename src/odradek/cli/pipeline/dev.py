"""`odradek pipeline dev`: a definition is tried again whenever one of its files changes."""

from __future__ import annotations

import os
from contextlib import suppress
from itertools import islice
from pathlib import Path
from time import strftime
from typing import TYPE_CHECKING, Any

import click

from odradek.cli.framework.commands import command
from odradek.cli.framework.options import flag, format_option, option
from odradek.cli.framework.output import faint, note, print_json, say, strong
from odradek.cli.framework.parameter_types import RECORD_COUNT, TEXT
from odradek.cli.pipeline import options
from odradek.cli.pipeline.definitions import problem_line, problem_object
from odradek.cli.pipeline.sql import SETTINGS, print_table
from odradek.cli.pipeline.trial import DEFAULT_RECORDS, print_result
from odradek.cli.pipeline.trial import as_object as case_object
from odradek.conventions.failures import Failure
from odradek.conventions.figures import count_text

if TYPE_CHECKING:
    from odradek.pipelines.planning.loading import Definition
    from odradek.pipelines.trial.developing import Round
    from odradek.pipelines.trial.model import CaseFile

SHOWN_ROWS = 10
MASTER = "local[2]"


@command(
    ("check and test at each change", "odradek pipeline dev pipeline.yml"),
    ("with rows of a step", "odradek pipeline dev pipeline.yml readings"),
    ("once, for a hook", "odradek pipeline dev pipeline.yml --once"),
)
@click.argument("file", metavar="FILE", type=click.Path(exists=True, dir_okay=False))
@click.argument("step", metavar="[STEP]", required=False, type=TEXT)
@option("--records", "N", RECORD_COUNT, "Read the last N records of each partition.", default=DEFAULT_RECORDS)
@option("--limit", "N", RECORD_COUNT, "At most N rows of the step.", default=SHOWN_ROWS)
@flag("--once", "End after the first time. The exit code is 1 if something is wrong.")
@options.definition_options
@format_option
def dev(file: str, step: str | None, records: int, limit: int, once: bool, as_json: bool) -> None:
    """Try a definition whenever one of its files changes, on one Spark session.

    Reports what `validate --spark` reports, shows rows of a source or step from the last records of its topics, and
    runs the tests beside a definition that keeps no state. Nothing is written. JSON is an object for each time.
    """

    def show(made: Round) -> None:
        if as_json:
            print_json(as_object(made, limit))
        else:
            print_round(file, step, made, limit)

    options.require_spark()
    define(file)
    from odradek.pipelines.spark.sessions.session import start_session
    from odradek.pipelines.trial.developing import Workbench, await_change, state_of_files

    folder = Path(file).resolve().parent
    seen = state_of_files(folder)
    with options.pipeline_errors():
        session = start_session("odradek pipeline dev", SETTINGS, MASTER, note, has_connector=step is not None)
    bench = Workbench(session, lambda: define(file), lambda: cases_beside(file), step, records)
    try:
        made = bench.round()
        show(made)
        with suppress(KeyboardInterrupt):
            while not once:
                note(f"waiting for a change in {folder}; Ctrl-C ends it")
                await_change(folder, seen)
                seen = state_of_files(folder)
                show(bench.round())
    finally:
        session.stop()
    if once and not is_right(made):
        raise Failure(f"{file} has an error, or a test failed")


def define(file: str) -> Definition:
    """The definition of the file."""
    found = options.load(file, None)
    if len(found) > 1:
        raise Failure(f"{file} defines {len(found)} pipelines; put each into a file of its own")
    return found[0]


def cases_beside(file: str) -> list[CaseFile]:
    """The tests of a definition; none if there is no file of tests beside it."""
    from odradek.pipelines.trial.parsing import TEST_ENDINGS, read_case_file

    named = [str(Path(file).with_suffix(ending)) for ending in TEST_ENDINGS]
    return [read_case_file(each, os.environ, options.chosen()) for each in named if Path(each).exists()]


def print_round(file: str, step: str | None, made: Round, limit: int) -> None:
    """Prints what was found: problems, rows, and the cases of tests."""
    colour = "green" if is_right(made) else "red"
    verdict = click.style("ok" if is_right(made) else "wrong", fg=colour, bold=True)
    say(f"\n{faint(strftime('%H:%M:%S'))}  {strong(Path(file).name)}  {verdict}  {faint(f'{made.seconds:.1f} s')}")
    for problem in made.problems:
        say(f"  {problem_line(problem)}")
    if made.answer is not None:
        say(f"  {step}, from the last records:")
        print_table(made.answer, limit)
    if made.failure:
        say(f"  {step} is not shown: {made.failure}")
    for result in made.results:
        print_result(result)
    if made.left_out:
        cases = count_text(made.left_out, "case")
        say(faint(f"  {cases} of a pipeline with state not run; `odradek pipeline test` runs them"))


def as_object(made: Round, limit: int) -> dict[str, Any]:
    """A round for programs."""
    return {
        "valid": made.is_sound,
        "seconds": round(made.seconds, 3),
        "problems": [problem_object(each) for each in made.problems],
        "rows": [] if made.answer is None else list(islice(made.answer.rows, limit)),
        "failure": made.failure,
        "cases": [case_object(each) for each in made.results],
        "cases_not_run": made.left_out,
    }


def is_right(made: Round) -> bool:
    return made.is_sound and not made.failure and all(each.is_passed for each in made.results)
