"""What Spark's optimizer leaves in place: filters above a watermark, and the event time of a deduplication.

Also what Spark takes for event time and for final groups in a query.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from odradek.pipelines.definition.model import Watermark
from odradek.pipelines.definition.operations import Deduplication
from odradek.pipelines.definition.sql_text import parse_query
from odradek.pipelines.definition.vocabulary import Duration, SinkMode
from odradek.pipelines.planning.null_columns import Column, Rows
from odradek.pipelines.planning.null_queries import NullQueries
from odradek.pipelines.spark.deduplication import deduplicate
from odradek.pipelines.spark.event_time import WATERMARK_DELAY, event_time_of
from odradek.pipelines.spark.sorted_batches import check_operators
from odradek.pipelines.spark.steps import watermarked
from tests.pipelines.planning.test_event_times import ENDS, FINAL, SELECTED, UNFINISHED, WINDOWS

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


COLUMNS = {
    "a": ("id", "at", "other", "x", "nested"),
    "bare": ("id", "at"),
}


@pytest.fixture
def streams(rows: DataFrame) -> None:
    """The streams of the tests of planning."""
    values = {
        "id": F.col("value"),
        "at": F.col("timestamp"),
        "other": F.col("timestamp"),
        "x": F.col("value").cast("double"),
        "nested": F.struct(F.col("timestamp").alias("at")),
    }
    for table, names in COLUMNS.items():
        frame = rows.select(*(values[name].alias(name) for name in names))
        marked = watermarked(frame, Watermark("at", Duration(60_000)) if table == "a" else None)
        marked.createOrReplaceTempView(table)


def tables() -> dict[str, Rows]:
    return {
        table: Rows(tuple(Column(name, time="at" if (table, name) == ("a", "at") else None) for name in names))
        for table, names in COLUMNS.items()
    }


@pytest.mark.usefixtures("streams")
@pytest.mark.parametrize("sql", [*SELECTED, ENDS, WINDOWS, *FINAL, *UNFINISHED])
def test_the_event_time_of_a_query_is_that_of_spark(spark: SparkSession, sql: str) -> None:
    frame = spark.sql(sql)
    marked = {field.name for field in frame.schema.fields if WATERMARK_DELAY in field.metadata}
    assert {each.name for each in NullQueries(tables()).of_query(parse_query(sql)).columns if each.mark} == marked


@pytest.mark.usefixtures("streams")
@pytest.mark.parametrize(("sql", "is_final"), [*((sql, True) for sql in FINAL), *((sql, False) for sql in UNFINISHED)])
def test_spark_accepts_groups_that_become_final(spark: SparkSession, sql: str, is_final: bool) -> None:
    try:
        check_operators(spark.sql(sql), SinkMode.APPEND)
    except AnalysisException:
        assert not is_final
    else:
        # Of several aggregations Spark checks the outer one; the others fail in the first batch.
        assert is_final or "union all" in sql or "from y" in sql


def test_a_watermark_may_be_on_a_column_with_a_dot(rows: DataFrame) -> None:
    named = rows.withColumnRenamed("timestamp", "event.time")
    assert event_time_of(watermarked(named, Watermark("event.time", Duration(60_000)))) == "event.time"
