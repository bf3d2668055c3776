"""Checks one case: runs it on the engines and compares each outcome with the oracle's."""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

from odradek.pipelines.definition.loading import Way
from odradek.pipelines.spark.engines.running import LATE_WORKER
from odradek.pipelines.spark.sessions.failures import PipelineError
from tests.pipelines.equivalence.cases import Aggregate, Deduplicate, StreamJoin
from tests.pipelines.equivalence.definitions import definition_of
from tests.pipelines.equivalence.oracle import Oracle
from tests.pipelines.equivalence.outcomes import described, differences, excess
from tests.pipelines.equivalence.streams import Run

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.pipelines.equivalence.cases import Case, Sink
    from tests.pipelines.equivalence.outcomes import Outcome

ENGINES = ("standard", "batch")


class Overloaded(Exception):
    """Spark gave up a Python process that did not connect in time, because the machine was busy."""


class Different(AssertionError):
    """A case whose outcome differs from the oracle's."""


def check_case(
    spark: SparkSession, case: Case, folder: Path, engines: tuple[str, ...] = ENGINES, way: Way = Way.OLD
) -> None:
    """Raises `Different`, `Refused` if `validate` refuses the definition, or `Overloaded`."""
    streamed = Oracle(spark, case)
    streamed.compute()
    for engine in engines:
        own = folder / engine
        own.mkdir()
        oracle = streamed
        if engine == "batch" and streamed.outcome.late.total():
            oracle = Oracle(spark, case, is_stream=False)
            oracle.compute()
        with closing(Run(spark, case, own, engine, way)) as run:
            try:
                problems = compare(spark, run, case, oracle, engine)
            except Exception as error:  # reported with the case
                if LATE_WORKER in str(error):
                    raise Overloaded(str(error)) from error
                problems = [f"{type(error).__name__}: {error}"]
        if problems:
            raise Different(described(case, definition_of(case, engine), [f"{engine}: {each}" for each in problems]))


def compare(spark: SparkSession, run: Run, case: Case, oracle: Oracle, engine: str) -> list[str]:
    if oracle.failed:
        return check_stopped(spark, run, case, oracle, engine)
    run.feed()
    unwritten = []
    if engine != "batch" and waits_for_time(case):
        written = run.outcome()
        finals = {sink.name: oracle.final_rows(sink) for sink in case.sinks}
        unwritten = [
            f"{name}: not written in time {count} × {row}"
            for name, rows in finals.items()
            for row, count in (rows - written.rows[name]).items()
        ]
        run.finish()
    found = run.outcome()
    late = Counter({flow: late_rows_of(run, flow, oracle.outcome.late) for flow in found.late})
    return differences(replace(oracle.outcome, late=late), found) + unwritten + miscounted(case, run, found)


def miscounted(case: Case, run: Run, found: Outcome) -> list[str]:
    """Sinks whose reported rows are not those that they have; of sinks that replace rows the number is not known."""
    counts = {each.name: found.rows[each.name].total() for each in case.sinks if is_appended(each)}
    return [
        f"{name}: reported {run.written[name]} rows, has {count}"
        for name, count in counts.items()
        if name in run.written and run.written[name] != count
    ]


def is_appended(sink: Sink) -> bool:
    return sink.mode == "append" and sink.form in {"", "deletes"}


def waits_for_time(case: Case) -> bool:
    """Whether rows are written only when the watermark has passed them."""
    operations = [each.operation for each in case.steps]
    return any(
        (isinstance(each, Aggregate) and each.is_windowed) or (isinstance(each, StreamJoin) and each.how != "inner")
        for each in operations
    )


def late_rows_of(run: Run, flow: str, late: Counter[str]) -> int:
    """The late rows of a flow: those of all steps with state that it computes."""
    dropping = (Aggregate, Deduplicate, StreamJoin)
    return sum(late[each.name] for each in run.before(flow) if isinstance(each.operation, dropping))


def check_stopped(spark: SparkSession, run: Run, case: Case, oracle: Oracle, engine: str) -> list[str]:
    """An expectation stops the pipeline, and no sink has a row of its batch or of a later one."""
    batch, rule = min(oracle.failed)
    try:
        run.feed()
    except PipelineError as error:
        if rule not in str(error):
            return [f"stopped without naming {rule}: {error}"]
    else:
        return [f"not stopped by {rule} in batch {batch}"]
    before = replace(case, batches=case.batches[: 0 if engine == "batch" else batch])
    prefix, found = Oracle(spark, before), run.outcome()
    prefix.compute()
    stopping = {each.name for each in case.stopping}
    stateless = [
        each.name
        for each in case.sinks
        if stopping.intersection(step.name for step in case.upstream(each.input))
        and not each.form
        and each.mode == "append"
        and not any(isinstance(step.operation, Aggregate) for step in case.upstream(each.input))
    ]
    return [line for name in stateless for line in excess(name, prefix.outcome.rows[name], found.rows[name])]
