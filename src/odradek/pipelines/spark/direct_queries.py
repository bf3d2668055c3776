"""Answers queries of one table of the warehouse in the database itself, without starting Spark.

Only constructs that mean the same in SQLite and PostgreSQL as in Spark: `NotDirect` is raised for every other query,
with the reason.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from odradek.pipelines.definition.sql_written import written_query
from odradek.pipelines.spark.direct_expressions import (
    Columns,
    NotDirect,
    condition,
    kind_of,
    projection,
    sort_key,
)
from odradek.pipelines.spark.sinks.warehouse import reading

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sqlalchemy.engine import Connection
    from sqlglot import exp

ALLOWED = frozenset({"kind", "expressions", "from", "from_", "where", "group", "order", "limit", "distinct"})
DATABASES = frozenset({"sqlite", "postgresql"})
# SQLite stores a value of any type in a column of any type; Spark reads the declared one.
SQLITE_VALUES = {
    "integer": "typeof({0}) = 'integer'",
    "double": "typeof({0}) in ('real', 'integer')",
    "boolean": "typeof({0}) = 'integer' and {0} in (0, 1)",
    "text": "typeof({0}) = 'text'",
    "date": "typeof({0}) = 'text' and {0} glob '????-??-??'",
    "timestamp": "typeof({0}) = 'text' and {0} glob '????-??-?? ??:??:??.??????'",
}


@dataclass(frozen=True, slots=True)
class DirectAnswer:
    """Column names, and rows of JSON values as Spark's `to_json` writes them."""

    names: list[str]
    rows: list[list[Any]]


def answer_directly(text: str, url: str, table: str) -> DirectAnswer:
    """The answer to a query whose only table is this one; raises `NotDirect`."""
    query = written_query(text)
    if query is None or "\\" in text:
        raise NotDirect("its syntax is left to Spark")
    with reading(url) as connection:
        if connection.dialect.name not in DATABASES:
            raise NotDirect(f"its database is {connection.dialect.name}")
        found = sa.Table(table, sa.MetaData(), autoload_with=connection)
        columns = Columns(found, connection.dialect.name)
        statement, names = statement_of(query, columns)
        check_stored_values(connection, columns)
        rows = connection.execute(statement).all()
        return DirectAnswer(names, [[json_value(value) for value in row] for row in rows])


def statement_of(query: exp.Expr, columns: Columns) -> tuple[sa.Select[Any], list[str]]:
    from sqlglot import exp  # noqa: PLC0415 - parsed already, so imported already

    if not isinstance(query, exp.Select):
        raise NotDirect(f"it is a {query.key.upper()}")
    unusual = [key for key, value in query.args.items() if value and key not in ALLOWED]
    if unusual:
        raise NotDirect(f"it has {unusual[0].strip('_').upper()}")
    columns.name_table(query.args.get("from_") or query.args.get("from"))
    distinct = query.args.get("distinct")
    if distinct is not None and distinct.args.get("on"):
        raise NotDirect("it has DISTINCT ON")
    items = [item for each in query.expressions for item in projection(each, columns)]
    group = query.args.get("group")
    has_aggregates = any(item.is_aggregate for item in items)
    keys = grouping_keys(group, columns) if group is not None else []
    if has_aggregates or group is not None:
        loose = [item.name for item in items if not item.is_aggregate and item.column not in keys]
        if loose:
            raise NotDirect(f"'{loose[0]}' is not grouped")
    statement = sa.select(*(item.value.label(f"c{number}") for number, item in enumerate(items)))
    statement = statement.select_from(columns.table)
    where = query.args.get("where")
    if where is not None:
        statement = statement.where(condition(where.this, columns))
    if group is not None:
        statement = statement.group_by(*(columns.comparable(key) for key in keys))
    if distinct is not None:
        if any(item.column is not None and kind_of(columns.column(item.column)) == "double" for item in items):
            raise NotDirect("it has DISTINCT of a DOUBLE")
        statement = statement.distinct()
    statement = ordered(statement, query, columns, is_plain=group is None and not has_aggregates and distinct is None)
    return statement, [item.name for item in items]


def grouping_keys(group: exp.Expr, columns: Columns) -> list[str]:
    from sqlglot import exp  # noqa: PLC0415 - takes long to import

    if any(value for key, value in group.args.items() if key != "expressions"):
        raise NotDirect("it has GROUP BY of another form")
    keys = []
    for each in group.expressions:
        if not isinstance(each, exp.Column):
            raise NotDirect("it groups by an expression")
        name = columns.name_of(each)
        if kind_of(columns.column(name)) == "double":
            raise NotDirect("it groups by a DOUBLE")
        columns.use(name)
        keys.append(name)
    return keys


def ordered(statement: sa.Select[Any], query: exp.Expr, columns: Columns, *, is_plain: bool) -> sa.Select[Any]:
    from sqlglot import exp  # noqa: PLC0415 - takes long to import

    order, limit = query.args.get("order"), query.args.get("limit")
    if order is not None:
        if not is_plain:
            raise NotDirect("it sorts groups")
        aliases = {each.alias.lower() for each in query.expressions if isinstance(each, exp.Alias)}
        statement = statement.order_by(*(sort_key(each, columns, aliases) for each in order.expressions))
    if limit is not None:
        count = limit.expression
        if not isinstance(count, exp.Literal) or count.is_string or not str(count.this).isdigit():
            raise NotDirect("its LIMIT is not a number")
        if int(count.this) >= 2**31:
            raise NotDirect("its LIMIT is too large")
        statement = statement.limit(int(count.this))
    return statement


def check_stored_values(connection: Connection, columns: Columns) -> None:
    """Raises `NotDirect` if SQLite has values of another type than the column declares."""
    if connection.dialect.name != "sqlite":
        return
    prepared = connection.dialect.identifier_preparer
    table = prepared.format_table(columns.table)
    for name in sorted(columns.used):
        column = columns.column(name)
        quoted = prepared.quote(column.name)
        test = SQLITE_VALUES[kind_of(column)].format(quoted)
        query = f"SELECT 1 FROM {table} WHERE {quoted} IS NOT NULL AND NOT ({test}) LIMIT 1"
        if connection.exec_driver_sql(query).first() is not None:
            raise NotDirect(f"the column '{column.name}' has values of several types")


def json_value(value: Any) -> Any:
    """A value as in JSON of Spark: timestamps in UTC with milliseconds, special numbers as text."""
    if isinstance(value, datetime):
        zoned = value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
        return zoned.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


def as_objects(names: Sequence[str], found: DirectAnswer) -> Iterator[dict[str, Any]]:
    return (dict(zip(names, row, strict=True)) for row in found.rows)
