"""What `pipeline dev` does after each change of a file, on one Spark session: it checks the definition, lets Spark
analyse it, computes the rows of a step from the last records, and runs the tests of pipelines without state.

Tests of pipelines with state wait for the batches of streaming queries, which takes longer than a developer does.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from odradek.conventions.dataclass import dataclass
from odradek.pipelines.definition.places import ProblemList, Problems
from odradek.pipelines.spark.analysing.analysis import analysed
from odradek.pipelines.spark.previewing import answer_of, checked_name, rows_of, with_recent_start
from odradek.pipelines.spark.reading.sources import read_once
from odradek.pipelines.spark.sessions.failures import SPARK_ERRORS, PipelineError, plain_message
from odradek.pipelines.spark.writing.topics import check_topics
from odradek.pipelines.trial.running import forget_modules, run_file

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

    from odradek.pipelines.definition.model import TopicOrigin
    from odradek.pipelines.definition.places import Problem
    from odradek.pipelines.planning.loading import Definition
    from odradek.pipelines.planning.plan import Plan
    from odradek.pipelines.spark.query_tables import Answer
    from odradek.pipelines.trial.model import CaseFile
    from odradek.pipelines.trial.running import Result

WATCHED = (".yml", ".yaml", ".py", ".sql", ".json", ".avsc", ".csv")
POLL_S = 0.2


@dataclass(frozen=True, slots=True)
class Round:
    """What was found after a change."""

    problems: tuple[Problem, ...]
    seconds: float
    is_sound: bool = False
    answer: Answer | None = None  # the rows of the step
    failure: str = ""  # why there are no rows
    results: tuple[Result, ...] = ()
    left_out: int = 0  # cases of a pipeline with state


class Workbench:
    """Tries a definition again and again; `define` reads it, and `read_cases` its tests."""

    def __init__(
        self,
        session: SparkSession,
        define: Callable[[], Definition],
        read_cases: Callable[[], Sequence[CaseFile]] = tuple,
        step: str | None = None,
        records: int = 100,
    ) -> None:
        self._session, self._define, self._read_cases = session, define, read_cases
        self._step, self._records = step, records

    def round(self) -> Round:
        began_at = time.perf_counter()
        definition = self._define()
        problems, plan = definition.problems, definition.plan
        if not definition.is_sound or plan is None:
            return Round(problems, time.perf_counter() - began_at)
        try:
            found = self._tried(plan, problems)
        finally:
            forget_modules(plan.pipeline.directory)
        return replace(found, seconds=time.perf_counter() - began_at)

    def _tried(self, plan: Plan, problems: tuple[Problem, ...]) -> Round:
        found = Problems()
        found.secrets |= plan.pipeline.all_secrets
        analysed(self._session, plan, found, lambda source: read_once(self._session, source, plan.pipeline, _nowhere))
        if found.errors:
            return Round((*problems, *found), 0)
        made = Round((*problems, *found), 0, is_sound=True)
        if self._step is not None:
            try:
                made = replace(made, answer=recent_rows(self._session, plan, self._step, self._records))
            except PipelineError as error:
                made = replace(made, failure=plan.pipeline.without_secrets(str(error)))
            except SPARK_ERRORS as error:
                made = replace(made, failure=plan.pipeline.without_secrets(plain_message(error)))
        return self._tested(plan, made)

    def _tested(self, plan: Plan, made: Round) -> Round:
        try:
            files = self._read_cases()
        except ProblemList as error:
            return replace(made, problems=(*made.problems, *error.problems), is_sound=False)
        if any(table.path.state for table in plan.tables.values()):
            return replace(made, left_out=sum(len(each.cases) for each in files))
        results = [result for each in files for result in run_file(self._session, each)]
        return replace(made, results=tuple(results))


def recent_rows(session: SparkSession, plan: Plan, step: str, records: int) -> Answer:
    """The rows of a source or step, computed once from the last records of each partition."""
    name, cluster = checked_name(plan.pipeline, step), check_topics(plan.pipeline)
    answer = answer_of(rows_of(session, with_recent_start(plan, name, cluster, records), name, cluster.partitions_of))
    return replace(answer, rows=iter(list(answer.rows)))


def _nowhere(topic: str, _origin: TopicOrigin) -> int:
    raise PipelineError(f"the topic {topic} is not read to analyse a definition")


def state_of_files(folder: Path) -> dict[str, int]:
    """When the files of a definition were changed: those in its folder, and in the folders in it."""
    files = [each for pattern in ("*", "*/*") for each in folder.glob(pattern) if each.suffix in WATCHED]
    found = {}
    for each in files:
        try:
            found[str(each)] = each.stat().st_mtime_ns
        except FileNotFoundError:
            continue  # an editor has replaced it
    return found


def await_change(folder: Path, before: dict[str, int], wait: Callable[[float], None] = time.sleep) -> dict[str, int]:
    """Waits until a file changes, appears or disappears; returns the next state."""
    while (found := state_of_files(folder)) == before:
        wait(POLL_S)
    return found
