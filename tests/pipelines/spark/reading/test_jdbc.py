"""Tables of SQLite have the values that they store: numbers of 64 bits, and times with their microseconds."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from odradek.pipelines.definition.model import JdbcOrigin
from odradek.pipelines.spark.reading.jdbc import read_jdbc
from odradek.pipelines.spark.sessions.jars import SQLITE, JarsMissing, driver_jar

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark
COLUMNS = "id INTEGER, big BIGINT, at DATETIME, ts TIMESTAMP, day DATE"
ROWS = [
    (2**40, 2**62, "1969-12-31 23:59:59.999999", "2026-01-01 12:00:00", "1960-02-29"),
    (None, None, None, 1_767_225_600_500, None),
]


@pytest.fixture(autouse=True)
def _driver() -> None:
    try:
        driver_jar(SQLITE)
    except JarsMissing as error:
        pytest.skip(str(error))


def read(spark: SparkSession, file: Path, **options: str) -> DataFrame:
    url = f"jdbc:sqlite:{file}"
    return read_jdbc(spark, JdbcOrigin(url, query="select * from t", options=options), url)


def test_columns_of_sqlite_have_the_values_that_are_stored(spark: SparkSession, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "t.db")) as connection, connection:
        connection.execute(f"create table t ({COLUMNS})")
        connection.executemany("insert into t values (?, ?, ?, ?, ?)", ROWS)
    found = read(spark, tmp_path / "t.db")
    types = [each.dataType.simpleString() for each in found.schema]
    assert types == ["bigint", "bigint", "timestamp", "timestamp", "date"]
    as_text = found.select(*(found[name].cast("string") for name in found.columns))
    assert [tuple(row) for row in as_text.collect()] == [
        (str(2**40), str(2**62), "1969-12-31 23:59:59.999999", "2026-01-01 12:00:00", "1960-02-29"),
        (None, None, None, "2026-01-01 00:00:00.5", None),
    ]


@pytest.mark.more
@pytest.mark.parametrize("option", ["customSchema", "customschema"])
def test_types_that_the_user_chose_leave_the_other_columns_of_sqlite_as_declared(
    spark: SparkSession, tmp_path: Path, option: str
) -> None:
    with closing(sqlite3.connect(tmp_path / "t.db")) as connection, connection:
        connection.execute("create table t (Id INTEGER, qty INTEGER, created DATETIME, big BIGINT)")
        connection.execute("insert into t values (?, 1, '2026-01-01 23:30:00', null)", (2**40,))
    found = read(spark, tmp_path / "t.db", **{option: "id STRING"})
    assert [each.dataType.simpleString() for each in found.schema] == ["string", "bigint", "timestamp", "bigint"]
    as_text = found.select(*(found[name].cast("string") for name in found.columns))
    assert [tuple(row) for row in as_text.collect()] == [(str(2**40), "1", "2026-01-01 23:30:00", None)]
