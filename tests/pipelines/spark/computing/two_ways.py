"""Runs queries in two ways: as columns over single rows, and as plain Spark SQL."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException

from odradek.pipelines.definition.ddl import parse_ddl
from odradek.pipelines.spark.computing.rows import Frame, Rows
from odradek.pipelines.spark.computing.selecting import select_rows
from odradek.pipelines.spark.frames import REJECTED, quoted
from odradek.pipelines.sql.blocks import blocks_of
from odradek.pipelines.sql.columns import Columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

TABLE = "readings"
Results = tuple[list[tuple[str, str]], list[str]]


def as_columns(frame: DataFrame, *queries: str) -> tuple[DataFrame, list[DataFrame]]:
    """The rows of the last query, and those of each input of which a value cannot be computed. The first query reads
    `readings`, each other the one before, by the name `stepN`."""
    columns = Frame(frame)
    known = {TABLE: Rows({name: (name,) for name in frame.columns})}
    refused = []
    for number, query in enumerate(queries):
        (block,) = blocks_of(f"step{number}", query, known.__contains__)
        read = known[TABLE if number == 0 else f"step{number - 1}"]
        selected = select_rows(columns, f"step{number}", block.parts[0], known, types_of(columns.schema_of(read)))
        known[f"step{number}"] = selected.rows
        refused += [columns.add_table("refused", each) for each in selected.refused]
    made = columns.add_table("out", known[f"step{len(queries) - 1}"])
    return made.read(columns.frame), [each.read(columns.frame) for each in refused]


def types_of(schema: StructType) -> Columns:
    columns = parse_ddl(", ".join(f"{quoted(each.name)} {each.dataType.simpleString()}" for each in schema))
    return Columns({each.name: each.type for each in columns})


def plain(frame: DataFrame, *queries: str) -> DataFrame:
    frame.createOrReplaceTempView(TABLE)
    made = frame
    for number, query in enumerate(queries):
        made = frame.sparkSession.sql(query)
        made.createOrReplaceTempView(f"step{number}")
    return made


def results(frame: DataFrame) -> Results:
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
    """Asserts that no row is refused, and that the results are equal."""
    made, refused = as_columns(frame, *queries)
    assert results(made) == results(plain(frame, *queries))
    assert [each.collect() for each in refused] == [[] for _ in refused]


def assert_same_row_by_row(frame: DataFrame, query: str) -> None:
    """Asserts that the rows that stop Spark are refused, and that others have its results."""
    made, refused = as_columns(frame, query)
    types, found = results(made)
    rows, stopping = [], []
    for row in frame.collect():
        alone = frame.sparkSession.createDataFrame([row], frame.schema)
        try:
            rows += results(plain(alone, query))[1]
        except PySparkException:
            stopping.append(row)
    assert types == [(each.name, each.dataType.simpleString()) for each in plain(frame, query).schema.fields]
    assert found == sorted(rows)
    left = [each for part in refused for each in results(part.drop(REJECTED))[1]]
    assert sorted(left) == (results(frame.sparkSession.createDataFrame(stopping, frame.schema))[1] if stopping else [])
