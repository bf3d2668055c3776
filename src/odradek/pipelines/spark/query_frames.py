"""Spark's answers to queries: frames of the tables that a query names, and their rows as JSON values."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from odradek.pipelines.definition.ddl import parse_ddl
from odradek.pipelines.planning.rules import plan_again
from odradek.pipelines.spark.computing.frames import quoted, without_internal
from odradek.pipelines.spark.computing.tables import Tables
from odradek.pipelines.spark.functions import register_functions
from odradek.pipelines.spark.query_tables import NO_OBJECTS, NoSuchTable, StoredTable, TopicTable
from odradek.pipelines.spark.reading.sources import read_once
from odradek.pipelines.spark.small_reads import Answer, distinct_names
from odradek.pipelines.spark.writing.databases import reading
from odradek.pipelines.spark.writing.stored_values import JSON_OPTIONS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession

    from odradek.pipelines.definition.model import Source
    from odradek.pipelines.spark.query_tables import Catalog, QueryTable

INFERRED_FROM = 1000  # records


def ask(session: SparkSession, text: str, catalog: Catalog, tables: Mapping[str, QueryTable]) -> Answer:
    for name, table in tables.items():
        frame_of(session, catalog, table).createOrReplaceTempView(quoted(name))
    return answer_of(session.sql(text))


def answer_of(frame: DataFrame) -> Answer:
    """The rows of a frame, as JSON values."""
    names = distinct_names(frame.columns)
    row = F.to_json(F.struct(*(F.col(quoted(name)) for name in names)), JSON_OPTIONS)
    found = frame.toDF(*names).select(row).toLocalIterator() if names else iter(())
    return Answer(names, (json.loads(each[0]) for each in found))


def frame_of(session: SparkSession, catalog: Catalog, table: QueryTable) -> DataFrame:
    if isinstance(table, StoredTable):
        return read_table(session, table.url, table.name)
    if isinstance(table, TopicTable):
        return topic_rows(session, catalog, table)

    def load(source: Source) -> DataFrame:
        return read_once(session, source, catalog.pipeline, catalog.partitions_of)

    register_functions(session, catalog.pipeline)
    return without_internal(Tables(session, catalog.plan, load).rows(table.name))


def topic_rows(session: SparkSession, catalog: Catalog, table: TopicTable) -> DataFrame:
    raw = read_once(session, table.source, catalog.pipeline, catalog.partitions_of)
    if table.is_inferred:
        table = table.having(parse_ddl(inferred_ddl(raw, table.name)))
    if table.schema is None:
        headers = F.expr("map_from_entries(transform(headers, each -> struct(each.key, string(each.value))))")
        return raw.select(
            F.col("key").cast("string"), F.col("value").cast("string"), "timestamp", "partition", "offset",
            headers.alias("headers"),
        )  # fmt: skip
    only = replace(catalog.pipeline, sources=(table.source,), steps=(), sinks=(), views=())
    return without_internal(Tables(session, plan_again(only), lambda _source: raw).rows(table.name))


def inferred_ddl(raw: DataFrame, topic: str) -> str:
    """Infers columns from the first records that are JSON objects."""
    text = F.col("value").cast("string")
    objects = F.when(F.try_parse_json(text).isNotNull() & text.startswith("{"), text)
    merged = F.concat(F.lit("["), F.concat_ws(",", F.collect_list("text")), F.lit("]"))
    array = raw.limit(INFERRED_FROM).select(objects.alias("text")).agg(merged).collect()[0][0]
    found = raw.sparkSession.range(1).select(F.schema_of_json(F.lit(array))).collect()[0][0]
    if not str(found).startswith("ARRAY<STRUCT<"):
        raise NoSuchTable(NO_OBJECTS.format(topic))
    return str(found).removeprefix("ARRAY<STRUCT<").removesuffix(">>")


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
