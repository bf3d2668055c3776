"""Reads tables and views of a warehouse as Spark rows, for queries."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from odradek.pipelines.spark.hidden_columns import quoted
from odradek.pipelines.spark.writing.change_data import is_internal
from odradek.pipelines.spark.writing.databases import WarehouseRefused, parsed_url, reading
from odradek.pipelines.spark.writing.warehouse import BATCH_TABLE, RUN_TABLE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

OWN_TABLES = {BATCH_TABLE, RUN_TABLE}


def exists(url: str) -> bool:
    """Whether the database exists; connecting to SQLite would create a missing file."""
    parsed = parsed_url(url)
    return parsed.get_backend_name() != "sqlite" or Path(parsed.database or "").exists()


def table_names(url: str) -> list[str]:
    if not exists(url):
        raise WarehouseRefused(f"{url}: the file does not exist")
    with reading(url) as connection:
        inspector = sa.inspect(connection)
        names = (*inspector.get_table_names(), *inspector.get_view_names())
        return [name for name in names if name not in OWN_TABLES and not is_internal(name)]


def read_table(session: SparkSession, url: str, name: str) -> DataFrame:
    """All rows of a table, in one snapshot."""
    with reading(url) as connection:
        table = sa.Table(name, sa.MetaData(), autoload_with=connection)
        rows = [tuple(map(spark_value, row)) for row in connection.execute(sa.select(table))]
    ddl = ", ".join(f"{quoted(column.name)} {spark_type(column.type)}" for column in table.columns)
    return session.createDataFrame(rows, ddl)


def spark_type(kind: Any) -> str:
    """The Spark type of a SQL type; STRING if there is no equivalent."""
    if isinstance(kind, sa.Numeric) and not isinstance(kind, sa.Float):
        precision = kind.precision or 38
        return f"DECIMAL({min(precision, 38)}, {kind.scale if kind.scale is not None else 18})"
    if isinstance(kind, sa.DateTime):
        return "TIMESTAMP"
    simple: tuple[tuple[Any, str], ...] = (
        (sa.Boolean, "BOOLEAN"),
        (sa.Integer, "BIGINT"),
        (sa.Float, "DOUBLE"),
        (sa.Date, "DATE"),
        (sa.LargeBinary, "BINARY"),
    )
    return next((name for known, name in simple if isinstance(kind, known)), "STRING")


def spark_value(value: Any) -> Any:
    """Converts a value for Spark; timestamps without a zone are UTC."""
    if isinstance(value, datetime):
        return value if value.tzinfo is not None else value.replace(tzinfo=UTC)
    return value if value is None or isinstance(value, bool | int | float | str | bytes) else plain(value)


def plain(value: Any) -> Any:
    return bytes(value) if isinstance(value, memoryview | bytearray) else value
