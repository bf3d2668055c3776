"""Inner joins of streams in Python functions are judged as those of SQL."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from odradek.pipelines.spark.event_time import with_filter_barrier
from odradek.pipelines.spark.function_steps import stand_in
from odradek.pipelines.spark.join_plans import early_removal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

BOUND = "b.seen between a.at and a.at + interval 1 hour"


def stream(spark: SparkSession, time: str, other: str) -> DataFrame:
    rows = spark.readStream.format("rate").load()
    timed = rows.selectExpr("value as id", f"timestamp as {time}", f"timestamp as {other}", "'x' as `a name`")
    return stand_in(timed.withWatermark(time, "1 minute"))


@pytest.mark.parametrize(
    ("condition", "found"),
    [
        ("a.id = b.id", None),
        ("a.id = b.id and a.at = b.seen", None),
        (f"a.id = b.id and {BOUND}", None),
        (f"a.id = b.id and a.due > b.ref and {BOUND}", None),
        (f"a.id = b.id and b.seen <= a.due and {BOUND}", None),
        ("a.id = b.id and a.due + interval 0 seconds = b.ref", None),
        ("a.id = b.id and a.at = b.ref", ("at", "ref")),
        (f"a.id = b.id and b.ref = a.at and {BOUND}", ("at", "ref")),
        ("a.id = b.id and b.seen <= a.due", ("seen", "due")),
        ("a.id = b.id and b.seen - interval 1 day < a.due", ("seen", "due")),
        ("a.id = b.id and b.seen between a.at and a.due + interval 90 minutes", ("seen", "due")),
        ("a.id = b.id and a.at = b.ref and a.`a name` = 'it''s'", None),  # not read
    ],
)
def test_a_join_that_compares_event_time_with_another_column_is_found(
    spark: SparkSession, condition: str, found: tuple[str, str] | None
) -> None:
    a, b = stream(spark, "at", "due").alias("a"), stream(spark, "seen", "ref").alias("b")
    joined = a.join(b, F.expr(condition)).select("a.id", "a.at", "b.ref")
    assert early_removal(joined.where("id > 0")) == found


@pytest.mark.parametrize(
    ("condition", "filters", "found"),
    [
        ("a.id = b.id", ["a.at = b.ref"], ("at", "ref")),
        ("a.id = b.id", ["b.seen <= a.due"], ("seen", "due")),
        ("a.id = b.id", ["a.due is not null", "b.seen <= a.due", "a.id > 0"], ("seen", "due")),
        ("a.id = b.id", ["b.seen <= a.due", BOUND], None),
        ("a.id = b.id and b.seen <= a.due", [BOUND], None),
        ("a.id = b.id and b.seen <= a.due", ["b.seen <= a.at + interval 30 days"], None),
        ("a.id = b.id and a.at = b.ref", [BOUND], ("at", "ref")),
        ("a.id = b.id", ["a.at + interval 0 seconds = b.ref"], None),
        ("a.id = b.id", ["a.at = b.ref or a.id > 0"], None),
        ("a.id = b.id", ["a.at = b.ref", "a.`a name` = 'it''s'"], ("at", "ref")),
        ("a.id = b.id", ["b.seen <= a.due", "a.`a name` = 'it''s'"], ("seen", "due")),
        ("a.id = b.id and b.seen <= a.due", [f"a.`a name` = 'it''s' and {BOUND}"], None),  # not read
    ],
)
def test_filters_above_a_join_are_a_part_of_its_condition(
    spark: SparkSession, condition: str, filters: list[str], found: tuple[str, str] | None
) -> None:
    a, b = stream(spark, "at", "due").alias("a"), stream(spark, "seen", "ref").alias("b")
    joined = a.join(b, F.expr(condition))
    for each in filters:
        joined = joined.where(each)
    assert early_removal(joined) == found


def test_filters_are_found_behind_the_columns_and_joins_that_spark_moves_them_below(spark: SparkSession) -> None:
    a, b = stream(spark, "at", "due").alias("a"), stream(spark, "seen", "ref").alias("b")
    table = spark.sql("select 1 as id, 'x' as kind")
    using = a.join(b, "id")
    assert early_removal(using.where(F.col("a.at") == F.col("b.ref"))) == ("at", "ref")
    renamed = using.select("id", F.col("a.at").alias("t"), "b.ref")
    assert early_removal(renamed.alias("s").where("s.t = s.ref")) == ("at", "ref")
    assert early_removal(renamed.join(table, "id").where("t = ref")) == ("at", "ref")
    assert early_removal(a.crossJoin(b).where("a.id = b.id and a.at = b.ref")) == ("at", "ref")
    computed = using.select("id", (F.col("a.at") + F.expr("interval 0 seconds")).alias("t"), "b.ref")
    assert early_removal(computed.where("t = ref")) is None
    assert early_removal(with_filter_barrier(using).where("a.at = b.ref")) is None


def test_a_join_with_a_static_table_is_not_judged(spark: SparkSession) -> None:
    a = stream(spark, "at", "due").alias("a")
    table = spark.sql("select 1 as id, timestamp '2026-01-01' as ref").alias("b")
    assert early_removal(a.join(table, F.expr("a.id = b.id and a.at = b.ref"))) is None
