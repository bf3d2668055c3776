"""Answers queries of `odradek sql`: a database those of its own tables, DuckDB those of small topics, Spark all others.

A query of a database runs as it is, read only. Others are in Spark's SQL, which sqlglot translates for DuckDB.
"""

from __future__ import annotations

import math
import re
from base64 import b64encode
from contextlib import contextmanager
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import sqlalchemy as sa
from pyspark.errors import PySparkException

from odradek.pipelines.definition.model import TopicOrigin
from odradek.pipelines.spark.query_tables import NO_OBJECTS, Answer, Catalog, StoredTable, TopicTable
from odradek.pipelines.spark.reading.record_files import folder_of
from odradek.pipelines.spark.sessions.failures import SPARK_ERRORS, PipelineError, plain_message
from odradek.pipelines.spark.writing.databases import parsed_url, reading

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from odradek.pipelines.definition.model import Source
    from odradek.pipelines.spark.query_tables import QueryContext, QueryTable

DIALECTS = {"sqlite": "sqlite", "postgresql": "postgres"}  # sqlglot's
READ_ONLY = {"sqlite": "PRAGMA query_only = ON", "postgresql": "SET TRANSACTION READ ONLY"}
MISSING_COLUMN = re.compile(r"olumn .* not found")
CLOSED = (  # a query reads neither files nor the network, and sums in the order of the records
    "SET autoinstall_known_extensions = false",
    "SET autoload_known_extensions = false",
    "SET TimeZone = 'UTC'",
    "SET threads = 1",
    "SET enable_external_access = false",
    "SET lock_configuration = true",
)


class NeedsSpark(Exception):
    """Why a query cannot be answered without Spark."""


@contextmanager
def answer(
    text: str, context: QueryContext, settings: Mapping[str, str], master: str | None, say: Callable[[str], None]
) -> Iterator[Answer]:
    """Runs a query. All names are resolved before Spark is started."""
    catalog = Catalog(context)
    reason, found = "--master is given", None
    if master is None:
        try:
            found = answer_without_spark(catalog, text, say)
        except NeedsSpark as why:
            reason = str(why)
    if found is not None:
        yield found
        return
    with answer_by_spark(text, catalog, {**settings, **context.pipeline.spark}, master, reason, say) as answered:
        yield answered


@contextmanager
def answer_by_spark(
    text: str, catalog: Catalog, settings: Mapping[str, str], master: str | None, reason: str,
    say: Callable[[str], None],
) -> Iterator[Answer]:  # fmt: skip
    from odradek.pipelines.spark.previewing import ask  # noqa: PLC0415 - takes a second, for queries by Spark only
    from odradek.pipelines.spark.sessions.session import start_session  # noqa: PLC0415 - the same

    tables = catalog.tables(text)
    stored = [name for name, each in tables.items() if isinstance(each, StoredTable)]
    if stored:
        raise PipelineError(
            f"this query needs Spark ({reason}), which does not read the table '{stored[0]}' of a database; remove the "
            "reason, or declare the table as a jdbc source of a definition"
        )
    say(f"Spark runs this query: {reason}")
    has_connector = any(map(catalog.reads_topics, tables.values()))
    try:
        session = start_session("odradek sql", settings, master, say, has_connector=has_connector)
    except PySparkException as error:
        raise PipelineError(f"Spark did not start: {plain_message(error)}; it needs Java 17") from error
    try:
        yield ask(session, text, catalog, tables)
    except SPARK_ERRORS as error:
        raise PipelineError(plain_message(error)) from error
    finally:
        session.stop()


def answer_without_spark(catalog: Catalog, text: str, say: Callable[[str], None]) -> Answer:
    """The answer of the database that has all tables of a query, otherwise DuckDB's; `NeedsSpark` if neither can."""
    try:
        return answer_by_database(text, database_of(catalog, text))
    except NeedsSpark:
        found = answer_by_duckdb(text, catalog, catalog.tables(text))
        say("DuckDB answers this query; --master 'local[*]' asks Spark")
        return found


def database_of(catalog: Catalog, text: str) -> str:
    """The database that has all tables of a query; raises `NeedsSpark` if there is none."""
    reason = NeedsSpark("there is no table of a database")
    for url in catalog.databases:
        try:
            names = tables_of(text, url)
        except NeedsSpark as other:
            reason = other
            continue
        found = {name: catalog.stored(name) for name in names}
        strange = [name for name, table in found.items() if table is None or table.url != url]
        if names and not strange:
            return url
        reason = NeedsSpark(f"{strange[0]} is not in the database" if strange else "it reads no table")
    raise reason


def tables_of(text: str, url: str) -> list[str]:
    """The tables that a query reads in the SQL of a database; raises `NeedsSpark` if it is not one query there."""
    import sqlglot  # noqa: PLC0415 - the import takes 0.2 s
    from sqlglot import exp  # noqa: PLC0415
    from sqlglot.errors import SqlglotError  # noqa: PLC0415

    kind = parsed_url(url).get_backend_name()
    try:
        (query,) = sqlglot.parse(text, read=DIALECTS[kind])
    except (SqlglotError, ValueError):  # ValueError: several statements
        raise NeedsSpark(f"it is not one query of {kind}") from None
    if not isinstance(query, exp.Query):
        raise NeedsSpark("it is not a query")
    own = {each.alias.lower() for each in query.find_all(exp.CTE)}
    return [each.name for each in query.find_all(exp.Table) if each.name.lower() not in own]


def answer_by_database(text: str, url: str) -> Answer:
    with reading(url) as connection:
        connection.exec_driver_sql(READ_ONLY[connection.dialect.name])
        found = connection.execution_options(no_parameters=True).exec_driver_sql(text)
        return Answer.of(found.keys(), [[json_value(value) for value in row] for row in found])


def answer_by_duckdb(text: str, catalog: Catalog, tables: Mapping[str, QueryTable]) -> Answer:
    try:
        import duckdb  # noqa: PLC0415 - belongs to the extra `sql`
    except ModuleNotFoundError:
        raise NeedsSpark("DuckDB, which answers small queries, is not installed: pip install 'odradek[sql]'") from None
    from odradek.pipelines.spark.reading.small_topics import MACROS, NotSmall  # noqa: PLC0415 - imports pyarrow

    query = in_duckdb(text)
    with duckdb.connect() as connection:
        for statement in (*CLOSED, *MACROS):
            connection.execute(statement)
        try:
            for number, (name, table) in enumerate(tables.items()):
                add_table(connection, catalog, name, table, f"__records_{number}")
            found = connection.execute(query)
            names, rows = [each[0] for each in found.description], found.fetchall()
        except NotSmall as why:
            raise NeedsSpark(str(why)) from None
        except duckdb.Error as error:
            reason = " ".join(str(error).partition("\nLINE ")[0].split())
            if MISSING_COLUMN.search(reason):
                raise PipelineError(reason) from None
            raise NeedsSpark(f"DuckDB says: {reason}") from None
    return Answer.of(names, [[json_value(value) for value in row] for row in rows])


def in_duckdb(text: str) -> str:
    """A query of Spark's SQL in that of DuckDB; raises `NeedsSpark` for what the two compute differently."""
    import sqlglot  # noqa: PLC0415 - the import takes 0.2 s
    from sqlglot import exp  # noqa: PLC0415
    from sqlglot.errors import ErrorLevel, SqlglotError  # noqa: PLC0415

    # Functions that sqlglot does not know have the same name in both, and may mean something else: hash, weekday.
    differing = (
        exp.Anonymous, exp.DayOfWeek, exp.Extract, exp.Quantile, exp.ApproxQuantile, exp.ArrayPosition,
        exp.Interval, exp.TsOrDsAdd, exp.AddMonths, exp.MonthsBetween, exp.RegexpReplace, exp.Floor, exp.Ceil,
    )  # fmt: skip
    try:
        (query,) = sqlglot.parse(text, "spark")
        assert query is not None  # the catalog has found tables in it
        for each in query.find_all(exp.Cast, *differing):
            # DuckDB rounds where Spark cuts off, and has other texts of timestamps and large numbers.
            kinds = exp.DataType.INTEGER_TYPES | exp.DataType.TEXT_TYPES
            if not isinstance(each, exp.Cast) or each.to.this in kinds:
                raise NeedsSpark(f"DuckDB may answer differently: {each.sql('spark')}")
        return str(query.sql("duckdb", identify=True, unsupported_level=ErrorLevel.RAISE))
    except (SqlglotError, ValueError) as error:
        raise NeedsSpark(f"DuckDB has no such query: {error}") from None


def add_table(connection: Any, catalog: Catalog, name: str, table: QueryTable, records: str) -> None:
    """Adds the rows of a database, of a topic or of a source that is one; `records` is the name of what is read."""
    if isinstance(table, StoredTable):
        connection.register(name, stored_rows(table))
        return
    from odradek.pipelines.spark.reading import small_topics  # noqa: PLC0415 - imports pyarrow

    source = table.source if isinstance(table, TopicTable) else topic_source(catalog, table)
    origin = source.origin
    assert isinstance(origin, TopicOrigin)
    partitions = {each: catalog.cluster.partitions_of(each, origin) for each in catalog.cluster.topics_of(origin)}
    connection.register(records, small_topics.read_records(catalog.pipeline, origin, partitions))
    if isinstance(table, TopicTable) and table.is_inferred:
        (structure,) = connection.execute(small_topics.structure_query(records)).fetchone()
        if structure is None:
            raise PipelineError(NO_OBJECTS.format(table.name))
        query = small_topics.inferred_query(records, structure)
    elif isinstance(table, TopicTable) and table.schema is None:
        query = small_topics.RAW.format(records)
    else:
        query = small_topics.source_query(records, source)
    connection.execute(f"CREATE TEMP VIEW {small_topics.quoted(name)} AS {query}")


def stored_rows(table: StoredTable) -> pa.Table:
    """All rows of a table, in one snapshot."""
    with reading(table.url) as connection:
        found = connection.execute(sa.select(sa.Table(table.name, sa.MetaData(), autoload_with=connection)))
        names = list(found.keys())
        try:
            rows = found.all()
            return pa.table({name: [row[index] for row in rows] for index, name in enumerate(names)})
        except (TypeError, ValueError, OverflowError) as error:  # SQLite has values of any type in a column
            raise PipelineError(f"the rows of table '{table.name}' cannot be read: {error}") from None


def topic_source(catalog: Catalog, table: QueryTable) -> Source:
    source = next((each for each in catalog.pipeline.sources if each.name == table.name), None)
    if source is None or not isinstance(source.origin, TopicOrigin) or source.columns:
        raise NeedsSpark(f"{table.name} is not the records of a topic as they are")
    if folder_of(source.origin.bootstrap_servers or catalog.pipeline.bootstrap_servers) is not None:
        raise NeedsSpark(f"{table.name} is a folder")
    return source


def json_value(value: Any) -> Any:
    """A value as JSON: numbers as numbers, timestamps in UTC with milliseconds, special numbers and others as text."""
    if isinstance(value, datetime):
        zoned = value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
        return zoned.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    convert = next((made for kind, made in CONVERSIONS if isinstance(value, kind)), str)
    return convert(value)


CONVERSIONS: tuple[tuple[Any, Callable[[Any], Any]], ...] = (
    ((str, int, float, type(None)), lambda value: value),
    (Decimal, lambda value: int(value) if value == value.to_integral_value() else float(value)),
    ((bytes, memoryview), lambda value: b64encode(bytes(value)).decode()),
    (list, lambda values: [json_value(each) for each in values]),
    (dict, lambda values: {name: json_value(each) for name, each in values.items()}),
)
