"""What Spark's optimizer leaves in place: filters above a watermark, and the event time of a deduplication."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from odradek.pipelines.definition.model import Watermark
from odradek.pipelines.definition.operations import Deduplication
from odradek.pipelines.definition.vocabulary import Duration
from odradek.pipelines.spark.deduplication import deduplicate
from odradek.pipelines.spark.steps import watermarked

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark


OPERATORS = ("Deduplicate", "EventTimeWatermark")


@pytest.fixture
def rows(spark: SparkSession) -> DataFrame:
    return spark.readStream.format("rate").load().withColumn("k", F.expr("value % 7"))


@pytest.fixture
def marked(rows: DataFrame) -> DataFrame:
    return watermarked(rows, Watermark("timestamp", Duration(60_000)))


def optimized(frame: DataFrame) -> list[str]:
    """The operators, those that are executed last first."""
    optimizer = frame.sparkSession._jsparkSession.sessionState().optimizer()
    plan = optimizer.execute(frame._jdf.queryExecution().analyzed())
    return [line.strip(" +-:~") for line in plan.toString().splitlines()]


def below_watermarks(plan: list[str]) -> list[str]:
    """The operators between each watermark and its source."""
    found: list[str] = []
    is_below = False
    for each in plan:
        is_below = each.startswith("EventTimeWatermark") or (is_below and not each.startswith("StreamingRelation"))
        found += [each] if is_below else []
    return found


def test_a_filter_stays_above_the_watermark(marked: DataFrame) -> None:
    plan = optimized(marked.where("k > 3"))
    assert any(each.startswith("Filter") and "> 3" in each for each in plan)
    assert not any(each.startswith("Filter") for each in below_watermarks(plan))


def test_rows_without_the_key_of_a_join_move_the_watermark(rows: DataFrame, marked: DataFrame) -> None:
    others = watermarked(
        rows.select(F.col("timestamp").alias("at"), F.col("k").alias("other")), Watermark("at", Duration(60_000))
    )
    plan = optimized(marked.join(others, F.expr("k = other and at between timestamp and timestamp"), "left"))
    assert any("isnotnull(other" in each for each in plan)
    assert not any(each.startswith("Filter") for each in below_watermarks(plan))


@pytest.mark.parametrize("time", ["timestamp", "coalesce(timestamp, timestamp '2026-01-01')"])  # which is never null
def test_a_deduplication_keeps_its_event_time(rows: DataFrame, time: str) -> None:
    timed = rows.withColumn("timestamp", F.expr(time))
    marked = watermarked(timed, Watermark("timestamp", Duration(60_000)))
    counts = deduplicate(marked, Deduplication("marked", ("value",), None), None).groupBy("k").count()
    plan = optimized(counts)
    operator, mark = (next(i for i, each in enumerate(plan) if each.startswith(name)) for name in OPERATORS)
    assert not any(each.startswith("Project") for each in plan[operator:mark])  # a projection would drop the column
