"""Spark's answers to queries: frames of the tables that a query names, and their rows as JSON values."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - its usual name

from odradek.pipelines.definition.ddl import parse_ddl
from odradek.pipelines.planning.rules import plan_again
from odradek.pipelines.spark.computing.tables import Tables
from odradek.pipelines.spark.frames import quoted, without_internal
from odradek.pipelines.spark.query_tables import (
    NO_OBJECTS,
    Answer,
    NoSuchTable,
    StoredTable,
    TopicTable,
    distinct_names,
)
from odradek.pipelines.spark.reading.sources import read_once
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
    assert not isinstance(table, StoredTable)  # refused before Spark is started
    if isinstance(table, TopicTable):
        return topic_rows(session, catalog, table)

    def load(source: Source) -> DataFrame:
        return read_once(session, source, catalog.pipeline, catalog.partitions_of)

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
