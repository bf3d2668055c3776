"""Answers queries without Spark: a database those of its own tables, in its own SQL, DuckDB those of small topics.

A query of a database runs as it is, read only. One of topics is in Spark's SQL: DuckDB runs it where it gives the same
rows, columns and types as Spark.
"""

from __future__ import annotations

import math
import re
from base64 import b64encode
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from odradek.pipelines.definition.json_values import Uncertain
from odradek.pipelines.definition.model import TopicOrigin
from odradek.pipelines.definition.nearest import suggestion
from odradek.pipelines.spark.query_tables import StoredTable, TopicTable
from odradek.pipelines.spark.reading.record_files import folder_of
from odradek.pipelines.spark.sessions.failures import PipelineError
from odradek.pipelines.spark.writing.databases import parsed_url, reading
from odradek.pipelines.sql.in_duckdb import MACROS, NotInDuckdb, duckdb_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    import pyarrow as pa

    from odradek.pipelines.spark.query_tables import Catalog, QueryTable

DIALECTS = {"sqlite": "sqlite", "postgresql": "postgres"}  # sqlglot's
READ_ONLY = {"sqlite": "PRAGMA query_only = ON", "postgresql": "SET TRANSACTION READ ONLY"}
MISSING_COLUMN = re.compile(r'(?:Referenced c|C)olumn "([^"]+)" (?:not found|referenced that exists in the SELECT)')
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


@dataclass(frozen=True, slots=True)
class Answer:
    """A query's result: column names, and rows of JSON values."""

    names: list[str]
    rows: Iterator[dict[str, Any]]

    @classmethod
    def of(cls, names: Iterable[str], rows: Iterable[Iterable[Any]]) -> Answer:
        distinct = distinct_names(list(names))
        return cls(distinct, (dict(zip(distinct, row, strict=True)) for row in rows))


def answer_without_spark(catalog: Catalog, text: str) -> Answer:
    """The answer of the database that has all tables of a query, otherwise DuckDB's; `NeedsSpark` if neither can."""
    try:
        return answer_by_database(text, database_of(catalog, text))
    except NeedsSpark:
        tables = catalog.tables(text)
        if any(isinstance(each, StoredTable) for each in tables.values()):
            raise
    try:
        return answer_by_duckdb(text, catalog, tables)
    except (Uncertain, NotInDuckdb) as why:
        raise NeedsSpark(str(why)) from None


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
    duckdb_text(text, frozenset())  # refuses most of what is Spark's before a record is read
    rows = {name: arrow_rows(catalog, table) for name, table in tables.items()}
    query = duckdb_text(text, frozenset("DATE" for each in rows.values() if "date32" in str(each.schema)))
    with duckdb.connect() as connection:
        for statement in (*CLOSED, *MACROS):
            connection.execute(statement)
        for name, each in rows.items():
            connection.register(name, each)
        try:
            found = connection.execute(query)
            names, values = [each[0] for each in found.description], found.fetchall()
        except duckdb.Error as error:
            missing = MISSING_COLUMN.search(str(error))
            if missing is not None:
                known = [name for each in rows.values() for name in each.column_names]
                hint = suggestion(missing[1], known, what="there are")
                raise PipelineError(f"there is no column '{missing[1]}'; {hint}") from None
            raise NeedsSpark(f"DuckDB says: {str(error).splitlines()[0]}") from None
    return Answer.of(names, [[spark_value(value) for value in row] for row in values])


def arrow_rows(catalog: Catalog, table: QueryTable) -> pa.Table:
    """The rows of a topic, or of a source that is one."""
    from odradek.pipelines.spark.reading.small_topics import read_records  # noqa: PLC0415 - imports pyarrow

    if isinstance(table, TopicTable):
        partitions = {table.name: catalog.cluster.partitions_of(table.name)}
        records = read_records(catalog.pipeline, TopicOrigin((table.name,)), partitions)
        if table.is_inferred:
            table = table.having(records.inferred(table.name))
        return records.raw() if table.schema is None else records.decoded(table.source)
    source = next((each for each in catalog.pipeline.sources if each.name == table.name), None)
    if source is None or not isinstance(source.origin, TopicOrigin) or source.columns:
        raise NeedsSpark(f"{table.name} is not the records of a topic as they are")
    if folder_of(source.origin.bootstrap_servers or catalog.pipeline.bootstrap_servers) is not None:
        raise NeedsSpark(f"{table.name} is a folder")
    names = catalog.cluster.topics_of(source.origin)
    partitions = {name: catalog.cluster.partitions_of(name, source.origin) for name in names}
    return read_records(catalog.pipeline, source.origin, partitions).decoded(source)


def spark_value(value: Any) -> Any:
    """A value of DuckDB as the JSON that Spark would write."""
    if isinstance(value, timedelta) or (type(value) is int and not -(1 << 63) <= value < 1 << 63):
        raise NeedsSpark(f"{value} is an interval or has more than 64 bits")
    return float(value) if isinstance(value, Decimal) else json_value(value)


def distinct_names(names: list[str]) -> list[str]:
    """Appends a number to duplicate column names."""
    taken: dict[str, int] = {}
    found = []
    for name in names:
        taken[name.lower()] = taken.get(name.lower(), 0) + 1
        found.append(name if taken[name.lower()] == 1 else f"{name}_{taken[name.lower()]}")
    return found


def json_value(value: Any) -> Any:
    """A value as JSON: numbers as numbers, timestamps in UTC with milliseconds, special numbers and others as text."""
    if isinstance(value, datetime):
        zoned = value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
        return zoned.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    convert = next((made for kind, made in CONVERSIONS if isinstance(value, kind)), str)
    return convert(value)


def plain(value: Any) -> Any:
    return value


def number(value: Decimal) -> Any:
    return int(value) if value == value.to_integral_value() else float(value)


def base64_text(value: bytes | memoryview) -> str:
    return b64encode(bytes(value)).decode()


CONVERSIONS: tuple[tuple[Any, Callable[[Any], Any]], ...] = (
    ((str, int, float, type(None)), plain),
    (Decimal, number),
    ((bytes, memoryview), base64_text),
    (list, lambda values: [json_value(each) for each in values]),
    (dict, lambda values: {name: json_value(each) for name, each in values.items()}),
)
