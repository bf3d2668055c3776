"""Rows that are computed once and not written: of a source or step from the last records of its topics, and Spark's
answers to queries of `odradek sql`."""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from confluent_kafka import KafkaException
from confluent_kafka.admin import OffsetSpec  # type: ignore[attr-defined]  # confluent_kafka.admin does not list it in __all__
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from odradek.pipelines.definition.ddl import parse_ddl
from odradek.pipelines.definition.model import RecordSchema, Start, TopicOrigin
from odradek.pipelines.definition.nearest import suggestion
from odradek.pipelines.definition.vocabulary import StartAt
from odradek.pipelines.planning.rules import plan_again
from odradek.pipelines.spark.computing.tables import Tables
from odradek.pipelines.spark.frames import quoted, without_internal
from odradek.pipelines.spark.query_tables import NO_OBJECTS, Answer, StoredTable, TopicTable, distinct_names
from odradek.pipelines.spark.reading.sources import read_once
from odradek.pipelines.spark.sessions.failures import SPARK_ERRORS, PipelineError, plain_message
from odradek.pipelines.spark.sessions.session import start_session
from odradek.pipelines.spark.sessions.user_code import ship_modules
from odradek.pipelines.spark.writing.stored_values import JSON_OPTIONS
from odradek.pipelines.spark.writing.topics import BrokersUnavailable, check_topics

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pyspark.sql import DataFrame, SparkSession

    from odradek.pipelines.definition.model import Pipeline, Source
    from odradek.pipelines.planning.plan import Plan
    from odradek.pipelines.spark.query_tables import Catalog, QueryTable
    from odradek.pipelines.spark.reading.sources import PartitionCount
    from odradek.pipelines.spark.writing.topics import Cluster

INFERRED_FROM = 1000  # records


@contextmanager
def preview(
    pipeline: Pipeline, name: str, records: int, settings: Mapping[str, str], say: Callable[[str], None]
) -> Iterator[Answer]:
    """The rows of a source or step, from the last records of every partition."""
    chosen = checked_name(pipeline, name)
    cluster = check_topics(pipeline)
    recent = with_recent_start(plan_again(pipeline), chosen, cluster, records)
    session = start_session(f"odradek preview {pipeline.name}", {**settings, **pipeline.spark}, pipeline.master, say)
    try:
        ship_modules(session, pipeline)
        yield answer_of(rows_of(session, recent, chosen, cluster.partitions_of))
    except SPARK_ERRORS as error:
        raise PipelineError(plain_message(error)) from error
    finally:
        session.stop()


def with_recent_start(plan: Plan, name: str, cluster: Cluster, records: int) -> Plan:
    """The plan with sources that start at their last records."""
    pipeline, needed = plan.pipeline, set(plan.upstream(name))

    def recent(source: Source) -> Source:
        origin = source.origin
        if source.name not in needed or not isinstance(origin, TopicOrigin):
            return source
        return replace(source, origin=replace(origin, start=recent_start(origin, cluster, records)))

    return plan_again(replace(pipeline, sources=tuple(map(recent, pipeline.sources))))


def checked_name(pipeline: Pipeline, name: str) -> str:
    names = [each.name for each in pipeline.sources] + [each.name for each in pipeline.steps]
    known = {each.lower(): each for each in names}
    if name.lower() not in known:
        hint = suggestion(name, names, what="it has")
        raise PipelineError(f"{pipeline.name} has no source or step '{name}'; {hint}")
    return known[name.lower()]


def rows_of(session: SparkSession, plan: Plan, name: str, partitions: PartitionCount) -> DataFrame:
    def load(source: Source) -> DataFrame:
        return read_once(session, source, plan.pipeline, partitions)

    return without_internal(Tables(session, plan, load).rows(name))


def recent_start(origin: TopicOrigin, cluster: Cluster, records: int) -> Start:
    home = cluster.at(origin)
    topics = {*home.topics_of(origin)}
    try:
        firsts, ends = (home.offsets(topics, each) for each in (OffsetSpec.earliest(), OffsetSpec.latest()))  # type: ignore[no-untyped-call]  # confluent_kafka has no types here
    except (KafkaException, TimeoutError) as error:
        raise BrokersUnavailable(f"no broker answers at {home.bootstrap_servers}: {error}") from None
    offsets = {
        topic: {each: max(first, ends[topic][each] - records) for each, first in found.items()}
        for topic, found in firsts.items()
    }
    return Start(StartAt.OFFSETS, offsets=offsets)


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
    return rows_of(session, catalog.plan, table.name, catalog.partitions_of)


def topic_rows(session: SparkSession, catalog: Catalog, table: TopicTable) -> DataFrame:
    raw = read_once(session, table.source, catalog.pipeline, catalog.partitions_of)
    if table.is_inferred:
        table = TopicTable(table.name, RecordSchema(parse_ddl(inferred_ddl(raw, table.name))))
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
        raise PipelineError(NO_OBJECTS.format(topic))
    return str(found).removeprefix("ARRAY<STRUCT<").removesuffix(">>")
