"""Runs SQL over the tables and views of a warehouse, the sources and steps of a definition, and topics.

A name is looked up in this order. All names are resolved before Spark is started, and Spark is started only if no
database has all tables of the query.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from odradek.pipelines.definition.ddl import parse_ddl
from odradek.pipelines.definition.graph import build_graph
from odradek.pipelines.definition.model import (
    Pipeline,
    RecordFormat,
    RecordSchema,
    Source,
    Start,
    TableTarget,
    TopicOrigin,
)
from odradek.pipelines.definition.nearest import suggestion
from odradek.pipelines.definition.sql_text import parse_query, tables_read
from odradek.pipelines.definition.vocabulary import Encoding
from odradek.pipelines.spark.compiling import Tables
from odradek.pipelines.spark.functions import register_functions
from odradek.pipelines.spark.hidden_columns import quoted, without_hidden
from odradek.pipelines.spark.reading.sources import read_once
from odradek.pipelines.spark.sessions.failures import SPARK_ERRORS, PipelineError, plain_message
from odradek.pipelines.spark.sessions.session import start_session
from odradek.pipelines.spark.sinks.topics import JSON_OPTIONS
from odradek.pipelines.spark.small_reads import NeedsSpark, answer_by_database, tables_of
from odradek.pipelines.spark.warehouse_tables import exists, read_table, table_names
from odradek.pipelines.spark.writing.databases import database_url
from odradek.pipelines.spark.writing.topics import Cluster

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pyspark.sql import DataFrame, SparkSession

INFERRED_FROM = 1000  # records


class NoSuchTable(PipelineError):
    """The name is neither a table, a source, a step nor a topic."""


@dataclass(frozen=True, slots=True)
class QueryContext:
    """The definition, database and topics in which the tables of a query are looked up."""

    pipeline: Pipeline  # the definition's; without sources if there is none
    warehouse: str | None = None  # overrides the pipeline's
    schemas: Mapping[str, str] = field(default_factory=dict)  # columns of JSON values in DDL, by topic
    inferred: frozenset[str] = frozenset()  # topics of JSON values whose columns are inferred


class Catalog:
    """Resolves the table names of a query."""

    def __init__(self, context: QueryContext) -> None:
        self._context = context
        self._pipeline = from_earliest(context.pipeline)
        self._graph = build_graph(self._pipeline)
        self._cluster: Cluster | None = None
        targets = [each.target for each in self._pipeline.sinks]
        tables = {each.table: each.url for each in targets if isinstance(each, TableTarget)}
        declared = {**tables, **{view.name: view.url for view in self._pipeline.views}}
        self._unwritten = {name.lower() for name in declared}
        own = {} if context.warehouse is not None else declared
        self._elsewhere = {name.lower(): (url, name) for name, url in own.items() if url is not None}
        self._warehouse, self._stored = context.warehouse or "", list[str]()
        if context.warehouse is not None:
            self._stored = table_names(context.warehouse)
        elif context.pipeline.sources:
            self._warehouse = database_url(context.pipeline, None)
            self._stored = table_names(self._warehouse) if exists(self._warehouse) else []

    @property
    def reads_topics(self) -> bool:
        """Whether any table resolved so far reads a topic."""
        return self._cluster is not None

    def readers(self, text: str) -> dict[str, Callable[[SparkSession], DataFrame]]:
        """A reader for each table of a query."""
        names = dict.fromkeys(each.name for each in tables_read(parse_query(text)))
        return {name: self._reader(name, text) for name in names}

    def database_of(self, text: str) -> str:
        """The database that has all tables of a query; raises `NeedsSpark` if there is none."""
        urls = [self._warehouse] if self._stored else []
        urls += [database_url(self._context.pipeline, written) for written, _ in self._elsewhere.values()]
        reason = NeedsSpark("there is no table of a database")
        for url in dict.fromkeys(urls):
            try:
                names = tables_of(text, url)
            except NeedsSpark as other:
                reason = other
                continue
            strange = [name for name in names if (self._stored_table(name) or ("",))[0] != url]
            if names and not strange:
                return url
            reason = NeedsSpark(f"{strange[0]} is not in the database" if strange else "it reads no table")
        raise reason

    def _stored_table(self, name: str) -> tuple[str, str] | None:
        """The database and the name of a stored table. Tables and views with a `url` are looked up there only."""
        if name.lower() in self._elsewhere:
            written, table = self._elsewhere[name.lower()]
            url = database_url(self._context.pipeline, written)
            found = {each.lower(): each for each in table_names(url)} if exists(url) else {}
            return (url, found[table.lower()]) if table.lower() in found else None
        stored = {each.lower(): each for each in self._stored}
        return (self._warehouse, stored[name.lower()]) if name.lower() in stored else None

    def _reader(self, name: str, text: str) -> Callable[[SparkSession], DataFrame]:
        stored = self._stored_table(name)
        if stored is not None:
            url, table = stored
            return lambda session: read_table(session, url, table)
        declared = {each.lower(): each for each in self._graph.order}
        if name.lower() in declared:
            whole = self._graph.upstream(declared[name.lower()])
            if any(isinstance(each.origin, TopicOrigin) for each in self._pipeline.sources if each.name in whole):
                self._topics()
            return lambda session: self._declared_rows(session, declared[name.lower()])
        if name.lower() in self._unwritten:
            place = self._context.pipeline.place.file
            raise NoSuchTable(
                f"'{name}' is declared, but its database does not have it; run the pipeline first: "
                f"odradek pipeline run {place}"
            )
        if "." in name and f"`{name}`" not in text:
            raise NoSuchTable(f"put names with dots in backticks: `{name}`")
        if name not in self._topics().partitions:
            known = [*self._stored, *self._graph.order, *self._topics().partitions]
            hint = suggestion(name, known, what="there are") or "there is nothing else"
            raise NoSuchTable(f"there is no table, source, step or topic '{name}'; {hint}")
        return lambda session: self._topic_rows(session, name)

    def _topics(self) -> Cluster:
        if self._cluster is None:
            self._cluster = Cluster(self._pipeline.bootstrap_servers, self._pipeline.kafka)
        return self._cluster

    def _declared_rows(self, session: SparkSession, name: str) -> DataFrame:
        def load(source: Source) -> DataFrame:
            return read_once(
                session, source, self._pipeline, lambda topic, origin: self._topics().partitions_of(topic, origin)
            )

        register_functions(session, self._pipeline)
        return without_hidden(Tables(session, self._pipeline, self._graph, load).rows(name))

    def _topic_rows(self, session: SparkSession, topic: str) -> DataFrame:
        """The rows of a topic: key and value as text, or with a schema the columns of the value."""
        source = Source(topic, TopicOrigin((topic,)), RecordFormat(Encoding.BYTES))
        raw = read_once(session, source, self._pipeline, self._topics().partitions_of)
        ddl = self._context.schemas.get(topic)
        if ddl is None and topic in self._context.inferred:
            ddl = inferred_ddl(raw, topic)
        if ddl is None:
            headers = F.expr("map_from_entries(transform(headers, each -> struct(each.key, string(each.value))))")
            return raw.select(
                F.col("key").cast("string"), F.col("value").cast("string"), "timestamp", "partition", "offset",
                headers.alias("headers"),
            )  # fmt: skip
        schema = RecordSchema(parse_ddl(ddl))
        source = replace(source, format=RecordFormat(Encoding.JSON, schema))
        only = replace(self._pipeline, sources=(source,), steps=(), sinks=(), views=())
        return without_hidden(Tables(session, only, build_graph(only), lambda _source: raw).rows(topic))


def inferred_ddl(raw: DataFrame, topic: str) -> str:
    """Infers columns from the first records that are JSON objects."""
    text = F.col("value").cast("string")
    objects = F.when(F.try_parse_json(text).isNotNull() & text.startswith("{"), text)
    merged = F.concat(F.lit("["), F.concat_ws(",", F.collect_list("text")), F.lit("]"))
    array = raw.limit(INFERRED_FROM).select(objects.alias("text")).agg(merged).collect()[0][0]
    found = raw.sparkSession.range(1).select(F.schema_of_json(F.lit(array))).collect()[0][0]
    if not str(found).startswith("ARRAY<STRUCT<"):
        raise NoSuchTable(f"topic '{topic}' has no records that are JSON objects; omit --infer to see its values")
    return str(found).removeprefix("ARRAY<STRUCT<").removesuffix(">>")


def from_earliest(pipeline: Pipeline) -> Pipeline:
    """The source, read from its earliest record: a query covers all records, wherever the pipeline starts."""
    sources = tuple(
        replace(each, origin=replace(each.origin, start=Start())) if isinstance(each.origin, TopicOrigin) else each
        for each in pipeline.sources
    )
    return replace(pipeline, sources=sources)


@dataclass(frozen=True, slots=True)
class Answer:
    """A query's result: column names, and rows of JSON values."""

    names: list[str]
    rows: Iterator[dict[str, Any]]


def ask(session: SparkSession, text: str, readers: Mapping[str, Callable[[SparkSession], DataFrame]]) -> Answer:
    for name, read in readers.items():
        read(session).createOrReplaceTempView(quoted(name))
    return answer_of(session.sql(text))


def answer_of(frame: DataFrame) -> Answer:
    """The rows of a frame, as JSON values."""
    names = distinct_names(frame.columns)
    row = F.to_json(F.struct(*(F.col(quoted(name)) for name in names)), JSON_OPTIONS)
    found = frame.toDF(*names).select(row).toLocalIterator() if names else iter(())
    return Answer(names, (json.loads(each[0]) for each in found))


@contextmanager
def answer(
    text: str, context: QueryContext, settings: Mapping[str, str], master: str | None, say: Callable[[str], None]
) -> Iterator[Answer]:
    """Runs a query in the database that has its tables, otherwise in a Spark session of its own."""
    catalog = Catalog(context)
    reason = "--master is given"
    if master is None:
        try:
            url = catalog.database_of(text)
        except NeedsSpark as why:
            reason = str(why)
        else:
            found = answer_by_database(text, url)
            names = distinct_names(found.names)
            yield Answer(names, (dict(zip(names, row, strict=True)) for row in found.rows))
            return
    readers = catalog.readers(text)
    say(f"Spark runs this query: {reason}")
    try:
        session = start_session(
            "odradek sql", {**settings, **context.pipeline.spark}, master, say, has_connector=catalog.reads_topics
        )
    except PySparkException as error:
        raise PipelineError(f"Spark did not start: {plain_message(error)}; it needs Java 17") from error
    try:
        yield ask(session, text, readers)
    except SPARK_ERRORS as error:
        raise PipelineError(plain_message(error)) from error
    finally:
        session.stop()


def distinct_names(names: list[str]) -> list[str]:
    """Appends a number to duplicate column names."""
    taken: dict[str, int] = {}
    found = []
    for name in names:
        taken[name.lower()] = taken.get(name.lower(), 0) + 1
        found.append(name if taken[name.lower()] == 1 else f"{name}_{taken[name.lower()]}")
    return found
