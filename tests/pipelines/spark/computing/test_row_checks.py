"""Which rows a table keeps behind its checks, which are dead letters, and what is counted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from odradek.pipelines.definition.vocabulary import Otherwise
from odradek.pipelines.planning.plan import Check
from odradek.pipelines.spark.computing.row_checks import judged
from odradek.pipelines.spark.computing.rows import Frame, Rows
from odradek.pipelines.spark.frames import REJECTED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

TIMELY = Check("no event time", "at is not null", Otherwise.QUARANTINE, "no event time: at is null", is_implicit=True)
KNOWN = Check("known", "id <> 41", Otherwise.QUARANTINE, "expectation 'known' not met: id <> 41")
SMALL = Check("small", "n < 42", Otherwise.DROP, "expectation 'small' not met: n < 42")
EVEN = Check("even", "n % 2 = 0", Otherwise.WARN, "expectation 'even' not met: n % 2 = 0")
SURE = Check("sure", "10 / n > 1", Otherwise.WARN, "expectation 'sure' not met: 10 / n > 1")
FATAL = Check("fatal", "n < 100", Otherwise.FAIL, "expectation 'fatal' not met: n < 100")
# id, n, at, and the names of the expectations that the row does not meet
ROWS = [
    (1, 2, 0, []),
    (2, 0, 0, ["sure"]),
    (41, 3, 0, ["known", "even"]),
    (41, 50, 0, ["known", "small", "sure"]),
    (4, None, 0, ["small", "even", "sure"]),
    (5, 51, None, ["small", "even", "sure"]),
]
CASES = {
    "all": [KNOWN, SMALL, EVEN, SURE, TIMELY],
    "without the implicit one": [KNOWN, SMALL, EVEN],
    "one": [SMALL],
    "one that may fail": [SURE],
    "implicit": [TIMELY],
}


def frame_of(spark: SparkSession, *, is_many: bool) -> tuple[Frame, Rows]:
    frame = spark.createDataFrame([row[:3] for row in ROWS], "id BIGINT, n BIGINT, at INT").coalesce(1)
    if not is_many:
        return Frame(frame), Rows({name: (name,) for name in frame.columns})
    packed = frame.agg(F.collect_list(F.struct("*")).alias("packed"))
    return Frame(packed), Rows.several("packed", frame.columns)


def unmet_of(row: tuple[int, int | None, int | None, list[str]], checks: Sequence[Check]) -> list[Check]:
    """The checks that a row does not meet; expectations are not asked about a row without event time."""
    if row[2] is None and TIMELY in checks:
        return [TIMELY]
    return [each for each in checks if each.name in row[3]]


@pytest.mark.more(but="False-all")
@pytest.mark.parametrize("checks", CASES.values(), ids=CASES)
@pytest.mark.parametrize("is_many", [False, True])
def test_rows_are_kept_refused_and_counted(spark: SparkSession, checks: list[Check], is_many: bool) -> None:
    frame, rows = frame_of(spark, is_many=is_many)
    found = judged(frame, "t", checks, rows)
    unmet = [(row, unmet_of(row, checks)) for row in ROWS]
    removing = {Otherwise.DROP, Otherwise.QUARANTINE}
    kept = frame.add_table("kept", found.rows).read(frame.frame)
    expected = [row[:3] for row, each in unmet if removing.isdisjoint(check.otherwise for check in each)]
    assert [tuple(row) for row in kept.collect()] == expected
    refused = [row for each in found.refused for row in frame.add_table("refused", each).read(frame.frame).collect()]
    quarantining = [(row, [each for each in found if each.otherwise is Otherwise.QUARANTINE]) for row, found in unmet]
    expected_letters = [(row[0], each[0].reason) for row, each in quarantining if each]
    assert [(row.id, row[REJECTED]) for row in refused] == expected_letters
    counts = frame.frame.agg(*(F.expr(each.aggregate).alias(each.name) for each in found.counts)).collect()[0]
    assert counts["checked t"] == len(ROWS)
    for check in checks:
        assert counts[f"unmet t: {check.name}"] == sum(check in each for _, each in unmet), check.name


@pytest.mark.more(but="False")
@pytest.mark.parametrize("is_many", [False, True])
def test_a_row_stops_the_pipeline(spark: SparkSession, is_many: bool) -> None:
    frame, rows = frame_of(spark, is_many=is_many)
    found = judged(frame, "hidden", [FATAL, TIMELY], rows, "declared")
    (must_hold,) = found.must_hold
    assert found.rows != rows
    with pytest.raises(PySparkException, match="step 'declared': a row does not meet 'fatal', which stops"):
        frame.frame.where(must_hold).collect()


def test_another_flow_counts_and_writes_the_rows_that_it_owns(spark: SparkSession) -> None:
    frame, rows = frame_of(spark, is_many=False)
    found = judged(frame, "t", [KNOWN, EVEN], rows, is_owned=False)
    assert (found.counts, found.refused) == ((), ())
    assert found.rows != rows
    assert judged(frame, "t", [], rows).rows == rows


def test_a_check_is_evaluated_once(spark: SparkSession) -> None:
    frame, rows = frame_of(spark, is_many=False)
    found = judged(frame, "t", [KNOWN, SMALL, EVEN], rows)
    frame.add_table("kept", found.rows)
    plan = frame.frame._jdf.queryExecution().analyzed().toString()
    assert [plan.count(f"cast({number} as bigint)") for number in (41, 42)] == [1, 1]
