"""Applies rows to a table of a SQL database, within a transaction of the caller."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from odradek.pipelines.operating.backoff import Healing
from odradek.pipelines.spark.sessions.failures import PipelineError
from odradek.pipelines.spark.sinks.column_values import value_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pyspark.sql import types as T  # noqa: N812 - its usual name
    from sqlalchemy.engine import Connection

CHUNK_ROWS = 500


class WarehouseRefused(PipelineError):
    """The table cannot store the rows."""

    healing = Healing.NEVER


@dataclass(frozen=True, slots=True)
class TableChange:
    """Rows for a table. With a key, a row replaces the one of its key; with `order_by`, unless that one is newer.

    `deletions` are rows of the same columns, of which the key counts, and with `order_by` also that column: the row of
    the key is removed unless it is newer. They are applied before the rows, so a key must not be in both.

    With `is_whole`, the rows, if there are any, replace all rows of the table.
    """

    table: str
    schema: T.StructType
    rows: Iterable[tuple[Any, ...]]
    key: tuple[str, ...] = ()
    order_by: str | None = None
    deletions: Iterable[tuple[Any, ...]] = ()
    is_whole: bool = False


def apply_change(connection: Connection, table: sa.Table, change: TableChange) -> None:
    delete_rows(connection, table, change)
    rows = database_rows(change, change.rows, connection.dialect.name)
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


def database_rows(change: TableChange, rows: Iterable[Any], dialect: str) -> Iterator[dict[str, Any]]:
    names = change.schema.names
    values = [value_of(each.dataType, dialect) for each in change.schema.fields]
    for row in map(tuple, rows):
        yield {name: make(value) for name, make, value in zip(names, values, row, strict=True)}


def delete_rows(connection: Connection, table: sa.Table, change: TableChange) -> None:
    dialect = connection.dialect.name
    named = [*change.key, *([] if change.order_by is None else [change.order_by])]
    given = {name: sa.bindparam(f"old_{name}", type_=table.c[name].type) for name in named}
    conditions = [table.c[name] == given[name] for name in change.key]
    if change.order_by is not None:
        conditions.append(is_not_newer(table.c[change.order_by], given[change.order_by], dialect))
    rows = ({f"old_{name}": row[name] for name in named} for row in database_rows(change, change.deletions, dialect))
    while chunk := list(islice(rows, CHUNK_ROWS)):
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
    return insert.on_conflict_do_update(
        index_elements=list(change.key),
        set_=changed,
        where=None
        if change.order_by is None
        else is_not_newer(table.c[change.order_by], insert.excluded[change.order_by], dialect),
    )


def is_not_newer(present: Any, arriving: Any, dialect: str) -> Any:
    """Whether a row may be replaced: null is the least value, and text is compared by its bytes, as Spark does."""
    if dialect == "postgresql" and isinstance(present.type, sa.String):
        present, arriving = present.collate("C"), arriving.collate("C")
    return sa.or_(present.is_(None), arriving >= present)
