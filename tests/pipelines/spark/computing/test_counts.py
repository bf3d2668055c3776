"""Counts that a query observes become the report of its batch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from odradek.pipelines.definition.vocabulary import Otherwise
from odradek.pipelines.planning.plan import Check
from odradek.pipelines.spark.computing.counts import (
    BatchReport,
    Count,
    Kind,
    Violations,
    observing,
    total,
    violations,
    written,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SMALL = Check("small", "n < 10", Otherwise.DROP, "not small")
COUNTS = (
    Count(Kind.READ, "readings", "count(1)"),
    Count(Kind.REFUSED, "readings", "count(if(n is null, 1, null))"),
    Count(Kind.CHECKED, "step__p", "count(n)"),
    Count(Kind.UNMET, "step__p", "count(if(n < 10, null, 1))", SMALL),
    Count(Kind.CHECKED, "step", "count(n)"),
    Count(Kind.UNMET, "step", "count(if(n < 10, null, 1))", SMALL),
    Count(Kind.WRITTEN, "out", "count(1)"),
)
OBSERVED = {each.name: number for number, each in enumerate(COUNTS)}


def test_names_of_counts_differ() -> None:
    assert len(OBSERVED) == len(COUNTS)


def test_counts_of_hidden_tables_are_those_of_their_step() -> None:
    assert violations(COUNTS, OBSERVED, {"step__p": "step"}) == (Violations("step", "small", Otherwise.DROP, 8, 6),)
    assert violations((), OBSERVED, {}) == ()


def test_a_check_that_nobody_wrote_is_reported_if_a_row_does_not_meet_it() -> None:
    check = Check("cannot be stored", "n < 10", Otherwise.QUARANTINE, "cannot be stored: n", is_implicit=True)
    counts = [Count(Kind.UNMET, "out", "count(if(n < 10, null, 1))", check, is_of_end=True)]
    assert violations(counts, {counts[0].name: 0}, {}) == ()
    assert violations(counts, {counts[0].name: 2}, {}) == (
        Violations("out", "cannot be stored", Otherwise.QUARANTINE, 2),
    )


def test_what_is_not_counted_is_none() -> None:
    assert total(Kind.READ, COUNTS, OBSERVED) == 0
    assert total(Kind.READ, COUNTS[1:], OBSERVED) is None
    assert total(Kind.REFUSED, COUNTS, {"refused readings": None}) == 0
    assert written(COUNTS, OBSERVED) == {"out": 6}


def test_report_says_what_was_refused() -> None:
    unmet = (Violations("step", "small", Otherwise.DROP, 2, 9), Violations("step", "odd", Otherwise.WARN, 0, 9))
    report = BatchReport("flow", 3, 9, 1, unmet, 0.25)
    assert str(report) == "flow batch 3: 9 rows, 1 not parsed, 2 × small (drop), 250 ms"
    assert str(BatchReport("flow", 3, 1, 0, (), 0.0)) == "flow batch 3: 1 row, 0 ms"


@pytest.mark.spark
def test_counts_are_observed_by_their_names(spark: SparkSession) -> None:
    frame = spark.sql("select * from values (5), (50), (null) as t(n)")
    assert observing(frame, ()) is frame
    observed = observing(frame, COUNTS, "counts of a test")
    observed.collect()
    plan = observed._jdf.queryExecution()
    found = plan.observedMetrics().apply("counts of a test")
    names = [each.name for each in COUNTS]
    assert dict(zip(names, [found.getLong(index) for index in range(len(names))], strict=True)) == {
        "read readings": 3,
        "refused readings": 1,
        "checked step__p": 2,
        "unmet step__p: small": 2,
        "checked step": 2,
        "unmet step: small": 2,
        "written out": 3,
    }
