"""An expectation with `otherwise: fail` stops a stream if, and only if, a row of the batch over all records fails."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from odradek.pipelines.spark.failures import PipelineError
from tests.pipelines.equivalence.cases import Case, Expectation, Select, Sink, Source, Step
from tests.pipelines.equivalence.checking import check_case
from tests.pipelines.equivalence.oracle import Oracle
from tests.pipelines.equivalence.saved import batches, row
from tests.pipelines.equivalence.streams import Run

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def case_with(number: int) -> Case:
    source = Source("a", 5)
    step = Step("s0", Select("a", None), (Expectation("rule0", "n > 0", "fail"),))
    sinks = (Sink("out0", "s0", "topic"), Sink("out1", "s0", "files"))
    return Case((source,), (step,), sinks, (), batches(source, [row(1)], [row(2, number=number)]))


def test_a_row_that_fails_stops_the_stream(quick_spark: SparkSession, tmp_path: Path) -> None:
    case = case_with(-1)
    assert Oracle(quick_spark, case).outcome().violations == {("s0", "rule0"): 1}
    with closing(Run(quick_spark, case, tmp_path)) as run, pytest.raises(PipelineError, match="rule0"):
        run.feed()


def test_rows_that_meet_it_pass(quick_spark: SparkSession, tmp_path: Path) -> None:
    check_case(quick_spark, case_with(2), tmp_path, ("standard",))
