"""Checks one case: runs it on the engines and compares each outcome with the oracle's."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import hypothesis

from tests.pipelines.equivalence.definitions import definition_of
from tests.pipelines.equivalence.oracle import Oracle
from tests.pipelines.equivalence.outcomes import described, differences
from tests.pipelines.equivalence.streams import Refused, Run

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.pipelines.equivalence.cases import Case
    from tests.pipelines.equivalence.outcomes import Outcome


class Different(AssertionError):
    """A case whose outcome differs from the oracle's."""


def check_case(spark: SparkSession, case: Case, folder: Path, engines: tuple[str, ...] = ("standard", "batch")) -> None:
    oracle = Oracle(spark, case)
    expected = oracle.outcome()
    for engine in engines:
        own = folder / engine
        own.mkdir()
        try:
            with closing(Run(spark, case, own, engine)) as run:
                problems = run_case(run, case, oracle, expected)
        except Refused as refused:
            hypothesis.event(f"refused: {refused}")
            hypothesis.reject()
        except Exception as error:  # reported with the case
            problems = [str(error)]
        if problems:
            raise Different(described(case, definition_of(case, engine), [f"{engine}: {each}" for each in problems]))


def run_case(run: Run, case: Case, oracle: Oracle, expected: Outcome) -> list[str]:
    run.feed()
    written = run.outcome()
    finals = {sink.name: oracle.final_rows(sink) for sink in case.sinks}
    late = [
        f"{name}: not written in time {count} × {row}"
        for name, rows in finals.items()
        for row, count in (rows - written.rows[name]).items()
    ]
    run.finish()
    return differences(expected, run.outcome()) + late
