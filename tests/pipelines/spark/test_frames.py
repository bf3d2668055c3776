"""Internal columns, marks of event time, and the barrier that Spark moves no filter below."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from odradek.pipelines.spark.frames import (
    RECORD_NAMES,
    event_times_of,
    origin_struct,
    shows_records,
    visible_names,
    with_filter_barrier,
    with_one_event_time,
    with_records_shown,
    without_internal,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MINUTE_MS = 60_000


def test_columns_of_the_record_are_visible_if_they_are_named() -> None:
    names = ["a", *sorted(RECORD_NAMES), "__origin", "__rejected"]
    assert visible_names(names, shows_records=False) == ["a"]
    assert visible_names(names, shows_records=True) == ["a", *sorted(RECORD_NAMES)]
    assert visible_names(["a", "_offset"], shows_records=False) == ["a", "_offset"]


@pytest.fixture(scope="module")
def rows(spark: SparkSession) -> DataFrame:
    return spark.readStream.format("rate").load().selectExpr("timestamp as at", "value as id", "value % 7 as k")


@pytest.fixture(scope="module")
def marked(rows: DataFrame) -> DataFrame:
    return rows.withWatermark("at", "1 minute")


@pytest.mark.spark
def test_internal_columns_are_left_out(spark: SparkSession) -> None:
    record = spark.sql("select 't' as topic, 1 as partition, 2L as offset, x'' as key, x'' as value, null as headers")
    frame = record.select(origin_struct(), F.lit(1).alias("a"))
    assert without_internal(frame).columns == ["a"]


@pytest.mark.spark
def test_the_columns_of_the_record_stay_shown(spark: SparkSession) -> None:
    frame = spark.range(1).select(*(F.lit(1).alias(name) for name in sorted(RECORD_NAMES)))
    assert not shows_records(frame)
    assert shows_records(with_records_shown(frame).where("_offset > 0"))
    assert not shows_records(with_records_shown(frame).drop("_key"))


@pytest.mark.spark
def test_one_column_is_event_time(marked: DataFrame) -> None:
    copied = marked.selectExpr("at", "at as `At 2`", "id")
    assert event_times_of(copied) == {"at": MINUTE_MS, "At 2": MINUTE_MS}
    assert event_times_of(with_one_event_time(copied, "AT")) == {"at": MINUTE_MS}
    assert event_times_of(with_one_event_time(copied, "at 2")) == {"At 2": MINUTE_MS}
    assert event_times_of(with_one_event_time(copied, None)) == {}
    assert with_one_event_time(marked, "at") is marked
    assert with_one_event_time(copied, "at").columns == copied.columns


@pytest.mark.spark
def test_the_end_of_a_window_is_marked_like_its_input(marked: DataFrame) -> None:
    counts = marked.groupBy(F.window("at", "1 minute"), "k").count().selectExpr("window.end as until", "k", "count")
    made = with_one_event_time(counts, "until", [marked])
    assert event_times_of(made) == {"until": MINUTE_MS}
    assert event_times_of(with_one_event_time(made, "until", [marked])) == {"until": MINUTE_MS}


@pytest.mark.spark
def test_without_a_watermark_nothing_is_marked(rows: DataFrame) -> None:
    assert with_one_event_time(rows, "at") is rows
    assert with_one_event_time(rows, None) is rows


def optimized(frame: DataFrame) -> list[str]:
    """The operators, those that are executed last first."""
    optimizer = frame.sparkSession._jsparkSession.sessionState().optimizer()
    plan = optimizer.execute(frame._jdf.queryExecution().analyzed())
    return [line.strip(" +-:~") for line in plan.toString().splitlines()]


@pytest.mark.spark
def test_the_optimizer_does_not_bring_a_mark_back(marked: DataFrame) -> None:
    frame = with_one_event_time(marked.selectExpr("at", "at as copy", "id"), "at")
    found = [each for each in optimized(frame.dropDuplicates(["id", "at"])) if each.startswith("Project")]
    assert not any("copy#" in each and "-T60000ms" in each.split("copy#")[1].split(",")[0] for each in found)


@pytest.mark.spark
@pytest.mark.parametrize("operator", ["EventTimeWatermark", "Aggregate", "DeduplicateWithinWatermark"])
def test_filters_stay_above_the_barrier(marked: DataFrame, operator: str) -> None:
    below = {
        "EventTimeWatermark": marked,
        "Aggregate": marked.groupBy(F.window("at", "1 minute"), "k").count(),
        "DeduplicateWithinWatermark": marked.dropDuplicatesWithinWatermark(["k"]),
    }[operator]
    plan = optimized(with_filter_barrier(below).where("k > 3").select("k"))
    filters = [number for number, each in enumerate(plan) if each.startswith("Filter") and "> 3" in each]
    barrier = next(number for number, each in enumerate(plan) if "SPARK_PARTITION_ID" in each)
    place = next(number for number, each in enumerate(plan) if each.startswith(operator))
    assert filters == [number for number in filters if number < barrier < place]
    assert filters


@pytest.mark.spark
def test_the_barrier_keeps_the_event_time_of_the_operator_below(marked: DataFrame) -> None:
    plan = optimized(with_filter_barrier(marked.dropDuplicatesWithinWatermark(["id"]), "at").select("k"))
    barrier = next(number for number, each in enumerate(plan) if "SPARK_PARTITION_ID" in each)
    assert "hash(at#" in plan[barrier]
    assert not any(each.startswith("Project") and "at#" not in each for each in plan[barrier:])
