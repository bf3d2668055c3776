"""Runs one query in two ways: compiled to the columns of one pass, and as plain Spark SQL."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from odradek.pipelines.spark.one_pass.row_columns import RowColumns, Rows
from odradek.pipelines.spark.one_pass.selecting import select_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame

TABLE = "readings"


def lifted(frame: DataFrame, *queries: str) -> DataFrame:
    """The rows of the last query. The first one reads `readings`, each other the one before, by the name `stepN`."""
    columns = RowColumns(frame)
    known = {TABLE: Rows({name: (name,) for name in frame.columns})}
    for number, query in enumerate(queries):
        known[f"step{number}"] = select_rows(columns, f"step{number}", query, known)
    table = columns.add_table("out", known[f"step{len(queries) - 1}"])
    return table.read(columns.frame)


def plain(frame: DataFrame, *queries: str) -> DataFrame:
    frame.createOrReplaceTempView(TABLE)
    made = frame
    for number, query in enumerate(queries):
        made = frame.sparkSession.sql(query)
        made.createOrReplaceTempView(f"step{number}")
    return made


def results(frame: DataFrame) -> tuple[list[tuple[str, str]], list[str]]:
    """Names, types and rows, in an order of their own."""
    types = [(each.name, each.dataType.simpleString()) for each in frame.schema.fields]
    return types, sorted(repr(comparable(row.asDict(recursive=True))) for row in frame.collect())


def comparable(value: Any) -> Any:
    """NaN equals NaN."""
    if isinstance(value, float) and math.isnan(value):
        return "NaN"
    if isinstance(value, dict):
        return {key: comparable(each) for key, each in value.items()}
    return [comparable(each) for each in value] if isinstance(value, list) else value


def assert_same(frame: DataFrame, *queries: str) -> None:
    assert results(lifted(frame, *queries)) == results(plain(frame, *queries))


def differing(names: Sequence[str], first: Any, second: Any) -> list[str]:
    return [name for name in names if first[name] != second[name]]
