"""Asks Spark's analyzer whether it accepts a query; no job is run."""

from __future__ import annotations

import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


@contextmanager
def plain_session() -> Iterator[SparkSession]:
    """A session with Spark's own defaults."""
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(name).setLevel(logging.CRITICAL)
    builder = SparkSession.builder.master("local[1]").appName("analysis")
    session = (
        builder.config("spark.ui.enabled", "false")
        .config("spark.log.level", "OFF")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .getOrCreate()
    )
    try:
        yield session
    finally:
        session.stop()


def create_tables(session: SparkSession, tables: Mapping[str, str]) -> None:
    """Empty tables with the columns given in DDL."""
    for name, ddl in tables.items():
        session.createDataFrame([], ddl).createOrReplaceTempView(name)


def refusal(session: SparkSession, query: str) -> str | None:
    """The condition of Spark's error, or None if the query is accepted."""
    try:
        session.sql(query)
    except PySparkException as error:
        return str(error.getCondition() or type(error).__name__)
    return None
