"""A table of a database that is cached for a time instead of being read in every batch."""

from __future__ import annotations

import sqlite3
import time
from typing import TYPE_CHECKING

import pytest

from odradek.pipelines.definition.model import JdbcOrigin, Pipeline, Source
from odradek.pipelines.definition.vocabulary import Duration
from odradek.pipelines.spark.jdbc import DRIVERS, DriverMissing, driver_jar
from odradek.pipelines.spark.sources import read_once

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark
PATIENCE_S = 60.0


@pytest.fixture(autouse=True)
def _driver() -> None:
    try:
        driver_jar(DRIVERS["sqlite"])
    except DriverMissing as error:
        pytest.skip(str(error))


def insert(file: Path, name: str) -> None:
    with sqlite3.connect(file) as connection:
        connection.execute("create table if not exists pumps (name text)")
        connection.execute("insert into pumps values (?)", (name,))


def read(session: SparkSession, file: Path, refresh: Duration | None) -> DataFrame:
    source = Source("pumps", JdbcOrigin(f"jdbc:sqlite:{file}", "pumps", refresh=refresh), is_stream=False)
    return read_once(session, source, Pipeline("p"), lambda _topic, _origin: 0)


def names(frame: DataFrame) -> list[str]:
    return sorted(row["name"] for row in frame.collect())


def test_a_table_is_read_again_only_after_its_time(spark: SparkSession, tmp_path: Path) -> None:
    file = tmp_path / "pumps.db"
    insert(file, "a")
    first = read(spark, file, Duration(3_600_000))
    assert names(first) == ["a"]
    insert(file, "b")
    assert names(read(spark, file, None)) == ["a", "b"]
    assert names(first) == ["a"]
    assert names(read(spark.newSession(), file, Duration(3_600_000))) == ["a"]  # sessions of queries share the copy


def test_queries_that_were_planned_before_get_the_new_rows(spark: SparkSession, tmp_path: Path) -> None:
    file = tmp_path / "pumps.db"
    insert(file, "a")
    frame = read(spark, file, Duration(300))
    assert names(frame) == ["a"]
    insert(file, "b")
    give_up_at = time.monotonic() + PATIENCE_S
    while names(frame) != ["a", "b"]:
        assert time.monotonic() < give_up_at


def test_a_stream_joins_the_copy(spark: SparkSession, tmp_path: Path) -> None:
    file = tmp_path / "pumps.db"
    insert(file, "a")
    records = tmp_path / "records"
    records.mkdir()
    stream = spark.readStream.schema("name STRING, n INT").json(str(records))
    joined = stream.join(read(spark, file, Duration(3_600_000)), "name")

    def run_with(name: str) -> list[str]:
        (records / f"{name}.json").write_text(f'{{"name": "{name}", "n": 1}}\n')
        writer = joined.writeStream.format("json").trigger(availableNow=True).outputMode("append")
        query = writer.option("checkpointLocation", str(tmp_path / "c")).start(str(tmp_path / "out"))
        assert query.awaitTermination(int(PATIENCE_S))
        return names(spark.read.json(str(tmp_path / "out"), "name STRING, n INT"))

    assert run_with("a") == ["a"]
    insert(file, "b")
    assert run_with("b") == ["a"]  # the copy does not have it
