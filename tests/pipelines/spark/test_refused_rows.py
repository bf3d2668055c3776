"""Rows without a single origin record: as dead letters in JSON, and on the console from a stateful flow."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from odradek.pipelines.spark.dead_letters import dead_letters
from odradek.pipelines.spark.hidden_columns import RECORD_NAMES, REJECTED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from tests.pipelines.spark.stage import Stage

pytestmark = pytest.mark.spark

PARTITIONS = "spark.sql.shuffle.partitions"


def test_a_refused_row_is_written_with_the_columns_that_a_sink_would_show(spark: SparkSession) -> None:
    record = [F.lit(1).alias(name) for name in sorted(RECORD_NAMES)]
    row = spark.range(1).select(F.lit(5).alias("a.b"), F.lit(6).alias("c`d"), F.lit("no").alias(REJECTED), *record)
    (letter,) = dead_letters(row, "p", "step", "dead").collect()
    assert json.loads(letter.value) == {"a.b": 5, "c`d": 6}


@pytest.fixture
def several_partitions(spark: SparkSession) -> Iterator[None]:
    before = spark.conf.get(PARTITIONS)
    spark.conf.set(PARTITIONS, "3")
    yield
    spark.conf.set(PARTITIONS, str(before))


@pytest.mark.usefixtures("several_partitions")
def test_rows_of_a_flow_with_state_may_go_to_the_console(stage: Stage, capsys: pytest.CaptureFixture[str]) -> None:
    """The console shows some rows, but Spark requires all to be read."""
    stage.create("in")
    stage.produce("in", [{"id": each} for each in range(200)])
    pipeline = stage.pipeline("""
        sources: {rows: {topic: "@in", schema: "id BIGINT"}}
        steps: {counts: {from: rows, by: [id], aggregate: {seen: count(*)}}}
        sinks: {seen: {from: counts, console: true, mode: update}}
    """)
    stage.run(pipeline)
    assert "only showing top 20 rows" in capsys.readouterr().out
