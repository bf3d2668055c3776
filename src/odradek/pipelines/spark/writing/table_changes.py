"""Applies rows to a table of a SQL database, within a transaction of the caller."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from odradek.pipelines.spark.writing.databases import WarehouseRefused
from odradek.pipelines.spark.writing.stored_values import value_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pyspark.sql import types as T  # noqa: N812 - its usual name
    from sqlalchemy.engine import Connection

CHUNK_ROWS = 500


@dataclass(frozen=True, slots=True)
class TableChange:
    """Rows for a table. With a key, a row replaces the one of its key; with `order_by`, unless that one has greater
    values in these columns.

    `replaced` are keys whose rows are deleted first. With `is_whole`, the rows, if there are any, replace all rows of
    the table.
    """

    table: str
    schema: T.StructType
    rows: Iterable[tuple[Any, ...]]
    key: tuple[str, ...] = ()
    order_by: tuple[str, ...] = ()
    replaced: Iterable[tuple[Any, ...]] = ()
    is_whole: bool = False


def apply_change(connection: Connection, table: sa.Table, change: TableChange) -> None:
    delete_replaced(connection, table, change)
    rows = database_rows(change.schema.fields, change.rows, connection.dialect.name)
    if change.is_whole:
        rows = after_removal(connection, table, rows)
    while chunk := list(islice(rows, CHUNK_ROWS)):
        refuse_null_keys(chunk, change)
        statement = upsert(connection.dialect.name, table, change) if change.key else table.insert()
        connection.execute(statement, chunk)


def after_removal(connection: Connection, table: sa.Table, rows: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The rows; before the first of them, the rows of the table are removed."""
    for number, row in enumerate(rows):
        if number == 0:
            connection.execute(table.delete())
        yield row


def database_rows(
    fields: Sequence[T.StructField], rows: Iterable[Any], dialect: str, prefix: str = ""
) -> Iterator[dict[str, Any]]:
    """The rows as parameters of a statement, whose names begin with the prefix."""
    named = [(prefix + each.name, value_of(each.dataType, dialect)) for each in fields]
    for row in map(tuple, rows):
        yield {name: make(value) for (name, make), value in zip(named, row, strict=True)}


def delete_replaced(connection: Connection, table: sa.Table, change: TableChange) -> None:
    """Deletes the rows of the replaced keys; without a key columns, the one key is that of all rows."""
    fields = [change.schema[name] for name in change.key]
    conditions = [table.c[name] == sa.bindparam(f"old_{name}", type_=table.c[name].type) for name in change.key]
    keys = database_rows(fields, change.replaced, connection.dialect.name, "old_")
    while chunk := list(islice(keys, CHUNK_ROWS)):
        connection.execute(table.delete().where(*conditions), chunk)


def refuse_null_keys(rows: Sequence[dict[str, Any]], change: TableChange) -> None:
    """Rejects rows with a null in their key, because no database matches them in an upsert."""
    for name in change.key:
        if any(row[name] is None for row in rows):
            raise WarehouseRefused(
                f"table {change.table}: the key column {name} is null in a row; remove such rows with an "
                f"expectation: {{check: {name} is not null, otherwise: quarantine}}"
            )


def upsert(dialect: str, table: sa.Table, change: TableChange) -> Any:
    insert = (sqlite if dialect == "sqlite" else postgresql).insert(table)
    changed = {name: insert.excluded[name] for name in change.schema.names if name not in change.key}
    if not changed:
        return insert.on_conflict_do_nothing(index_elements=list(change.key))
    may_replace = comes_after(insert.excluded, table.c, change.order_by, dialect, or_equal=True)
    return insert.on_conflict_do_update(
        index_elements=list(change.key), set_=changed, where=may_replace if change.order_by else None
    )


def comes_after(one: Any, other: Any, names: Sequence[str], dialect: str, *, or_equal: bool = False) -> Any:
    """Whether the values of one row are greater than those of another, the first column first. Null is the least value,
    and text is compared by its bytes, as Spark does."""
    result: Any = sa.true() if or_equal else sa.false()
    for name in reversed(names):
        greater, lesser = (in_order_of_spark(each[name], dialect) for each in (one, other))
        is_after = sa.or_(greater > lesser, sa.and_(lesser.is_(None), greater.is_not(None)))
        result = sa.or_(is_after, sa.and_(greater.is_not_distinct_from(lesser), result))
    return result


def in_order_of_spark(column: Any, dialect: str) -> Any:
    is_text = dialect == "postgresql" and isinstance(column.type, sa.String)
    return column.collate("C") if is_text else column
