"""The plan of a row program is optimized once, unless it reads the clock."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from odradek.pipelines.spark.computing.row_program import EXCLUDED_RULES, optimized, redundant_rules

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.more, pytest.mark.spark]


def layered(session: SparkSession) -> DataFrame:
    frame = session.range(10).withColumn("twice", F.expr("id * 2"))
    return frame.withColumn("more", F.expr("twice + 1")).where("more > 5").select("more")


def nodes_of(frame: DataFrame) -> int:
    return len(frame._jdf.queryExecution().analyzed().toString().splitlines())


def test_optimized_frame_has_the_same_rows_by_a_smaller_plan(spark: SparkSession) -> None:
    frame = layered(spark)
    better = optimized(frame)
    assert better.collect() == frame.collect()
    assert better.schema == frame.schema
    assert nodes_of(better) < nodes_of(frame)


@pytest.mark.parametrize(
    "clock", ["now()", "current_date()", "localtimestamp()", "unix_timestamp()", "cast('today' as date)"]
)
def test_clock_does_not_stop_when_the_query_starts(spark: SparkSession, clock: str) -> None:
    frame = layered(spark).withColumn("at", F.expr(clock))
    assert optimized(frame) is frame


def test_rules_that_spark_needs_are_not_left_out(spark: SparkSession) -> None:
    mine = "org.apache.spark.sql.catalyst.optimizer.ConstantFolding"
    session = spark.newSession()
    session.conf.set(EXCLUDED_RULES, mine)
    found = redundant_rules(session).split(",")
    assert found[0] == mine
    assert len(found) == len(set(found)) > 50
    assert "org.apache.spark.sql.catalyst.optimizer.CollapseProject" in found
    assert "org.apache.spark.sql.catalyst.optimizer.Optimizer$FinishAnalysis" not in found
