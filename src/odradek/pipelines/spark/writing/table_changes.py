"""Applies rows and change data to tables of SQLite and PostgreSQL, within a transaction of the caller.

The changes of a batch of change data are staged in a temporary table, and a few statements apply them all. What a
change does is decided by its sequence and by what is stored, never by the batch that it arrives in:

- Current state: a change counts unless the table, or the table of deletions, has a greater sequence for its key.
- History: every sequence of a key is a row of the table or of the table of deletions. A row is valid until the next
  greater one of either. A sequence is replaced, and never removed, so that no valid period grows again.
- Of changes with one sequence, a deletion counts, and of others the one with the greatest other columns.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from pyspark.sql import functions as F  # noqa: N812 - its usual name
from pyspark.sql import types as T  # noqa: N812 - its usual name
from sqlalchemy.dialects import postgresql, sqlite

from odradek.pipelines.spark.writing.databases import WarehouseRefused
from odradek.pipelines.spark.writing.stored_values import columns_of, value_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import timedelta

    from pyspark.sql import DataFrame
    from sqlalchemy.engine import Connection

CHUNK_ROWS = 500
IS_DELETED = "odradek_is_deleted"
VALID_FROM, VALID_TO, IS_CURRENT = "valid_from", "valid_to", "is_current"
DELETIONS = "odradek_deletions_"  # before the name of the table
DELETED_AT = "odradek_deleted_at"  # when a deletion was applied, by the clock of this machine
ARRIVING = "odradek_arriving"
LONGEST_NAME = 63  # of PostgreSQL


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


@dataclass(frozen=True, slots=True)
class ChangeData:
    """Changes of a table; the last column of a row says whether it is a deletion."""

    table: str
    schema: T.StructType  # of the changes, with the column IS_DELETED at the end
    rows: Iterable[tuple[Any, ...]]
    key: tuple[str, ...]
    sequence: str
    keeps_history: bool = False
    remember: timedelta | None = None  # how long deletions are kept; None: for ever
    ties: tuple[str, ...] | None = None  # columns that decide between changes of one sequence; None: the last to arrive

    @property
    def names(self) -> list[str]:
        """The columns of a row, without the mark of deletions."""
        return list(self.schema.names[:-1])

    @property
    def identity(self) -> tuple[str, ...]:
        """The columns that tell changes from each other that are both kept."""
        return (*self.key, self.sequence) if self.keeps_history else self.key

    @property
    def order_by(self) -> tuple[str, ...]:
        """The columns by which one of the changes with an identity is chosen."""
        ties = () if self.ties is None else (IS_DELETED, *self.ties)
        return ties if self.keeps_history else (self.sequence, *ties)


def with_deletions(frame: DataFrame, deletes: str | None) -> DataFrame:
    """The changes of a batch, each with the mark whether it is a deletion."""
    is_deleted = F.lit(False) if deletes is None else F.coalesce(F.expr(deletes), F.lit(False))
    return frame.withColumn(IS_DELETED, is_deleted)


def is_internal(table: str) -> bool:
    return table.startswith(DELETIONS)


def deletions_name(table: str) -> str:
    name = DELETIONS + table
    if len(name) <= LONGEST_NAME:
        return name
    return DELETIONS + hashlib.sha256(table.encode()).hexdigest()[:16]


def table_columns(change: ChangeData) -> list[sa.Column[Any]]:
    """The columns of the table. A row of a history is identified by its key and the start of its validity."""
    key = (*change.key, VALID_FROM) if change.keeps_history else change.key
    fields = list(change.schema.fields[:-1])
    if change.keeps_history:
        kind = change.schema[change.sequence].dataType
        fields += [T.StructField(VALID_FROM, kind), T.StructField(VALID_TO, kind)]
        fields += [T.StructField(IS_CURRENT, T.BooleanType())]
    return columns_of(fields, key)


def deletion_columns(change: ChangeData) -> list[sa.Column[Any]]:
    fields = [change.schema[name] for name in (*change.key, change.sequence)]
    at = sa.Column(DELETED_AT, sa.DateTime(timezone=True), nullable=False)
    return [*columns_of(fields, change.identity), at]


def apply_change_data(connection: Connection, table: sa.Table, deletions: sa.Table, change: ChangeData) -> None:
    columns = columns_of(change.schema.fields, change.identity)
    staged = sa.Table(ARRIVING, sa.MetaData(), *columns, prefixes=["TEMPORARY"])
    staged.create(connection, checkfirst=False)
    rows = TableChange(change.table, change.schema, with_sequence(change), change.identity, change.order_by)
    apply_change(connection, staged, rows)
    applying = Applying(connection, table, deletions, staged, change)
    applying.discard_outdated()
    if change.keeps_history:
        applying.apply_history()
    else:
        applying.apply_current()
    staged.drop(connection, checkfirst=False)


def with_sequence(change: ChangeData) -> Iterator[tuple[Any, ...]]:
    """The rows; rejects one without a sequence, which has no place among the others."""
    index = change.schema.names.index(change.sequence)
    for row in map(tuple, change.rows):
        if row[index] is None:
            raise WarehouseRefused(
                f"table {change.table}: the sequence {change.sequence} is null in a change; remove such rows with an "
                f"expectation: {{check: {change.sequence} is not null, otherwise: quarantine}}"
            )
        yield row


@dataclass(frozen=True, slots=True)
class Applying:
    """The statements that apply staged changes."""

    connection: Connection
    table: sa.Table
    deletions: sa.Table
    staged: sa.Table
    change: ChangeData

    def discard_outdated(self) -> None:
        """Removes staged changes that do not count: of what is stored, another one of their identity comes after."""
        sequence, ties = self.change.sequence, self.change.ties
        for kept in (self.table, self.deletions):
            found = [] if self.change.keeps_history else [self._after(kept.c[sequence], self.staged.c[sequence])]
            if ties is not None:
                is_row = self.staged.c[IS_DELETED].is_(sa.false())
                is_same = sa.and_(kept.c[sequence] == self.staged.c[sequence], is_row)
                named = () if kept is self.deletions else ties  # a deletion comes after all rows of its sequence
                greater = comes_after(kept.c, self.staged.c, named, self.connection.dialect.name, or_equal=not named)
                found.append(sa.and_(is_same, greater))
            if found:
                self._run(self.staged.delete().where(sa.exists().where(self._same_key(kept), sa.or_(*found))))

    def apply_current(self) -> None:
        for kept in (self.table, self.deletions):
            self._run(kept.delete().where(self._is_staged(kept, self.change.key)))
        self._insert({})
        if self.change.remember is not None:
            limit = datetime.now(UTC) - self.change.remember
            self._run(self.deletions.delete().where(self.deletions.c[DELETED_AT] < limit))

    def apply_history(self) -> None:
        sequence = self.change.sequence
        self._run(self.table.delete().where(self._is_staged(self.table, (*self.change.key, VALID_FROM))))
        self._run(self.deletions.delete().where(self._is_staged(self.deletions, self.change.identity)))
        self._insert({VALID_FROM: self.staged.c[sequence], IS_CURRENT: sa.true()})
        own = self.table.c
        is_earlier = sa.or_(own[VALID_TO].is_(None), self._after(own[VALID_TO], self.staged.c[sequence]))
        self._run(
            self.table.update()
            .where(
                self._is_staged(self.table, self.change.key), sa.exists().where(self._same_key(self.table), is_earlier)
            )
            .values({VALID_TO: self._next_sequence()})
        )
        is_closed = sa.and_(own[IS_CURRENT].is_(sa.true()), own[VALID_TO].is_not(None))
        self._run(
            self.table.update()
            .where(self._is_staged(self.table, self.change.key), is_closed)
            .values({IS_CURRENT: sa.false()})
        )

    def _next_sequence(self) -> Any:
        """The least sequence of the key after the start of a row, among rows and deletions."""
        start = self.table.c[VALID_FROM]
        later = self.table.alias("later")
        points = [
            sa.select(self._ordered(each.c[name]).label("point"))
            .where(self._same_key(self.table, each), self._after(each.c[name], start))
            .correlate(self.table)
            for each, name in ((later, VALID_FROM), (self.deletions, self.change.sequence))
        ]
        found = sa.union_all(*points).subquery("points")
        return sa.select(sa.func.min(found.c.point)).scalar_subquery()

    def _insert(self, more: dict[str, Any]) -> None:
        """Inserts staged rows into the table, and staged deletions into theirs."""
        is_deleted = self.staged.c[IS_DELETED]
        names = self.change.names
        values = [*(self.staged.c[name] for name in names), *more.values()]
        rows = sa.select(*values).where(is_deleted.is_(sa.false()))
        self._run(self.table.insert().from_select([*names, *more], rows))
        named = (*self.change.key, self.change.sequence)
        at = sa.literal(datetime.now(UTC), sa.DateTime(timezone=True))
        gone = sa.select(*(self.staged.c[name] for name in named), at).where(is_deleted.is_(sa.true()))
        self._run(self.deletions.insert().from_select([*named, DELETED_AT], gone))

    def _run(self, statement: Any) -> None:
        self.connection.execute(statement)

    def _same_key(self, one: Any, other: Any = None) -> Any:
        compared = self.staged if other is None else other
        return sa.and_(*(one.c[name] == compared.c[name] for name in self.change.key))

    def _is_staged(self, kept: sa.Table, names: tuple[str, ...]) -> Any:
        """Whether these columns have the values of a staged change; IN lets SQLite use the index of the large table."""
        spelled = [self.change.sequence if name == VALID_FROM else name for name in names]
        found = sa.select(*(self.staged.c[name] for name in spelled))
        columns = [kept.c[name] for name in names]
        return columns[0].in_(found) if len(columns) == 1 else sa.tuple_(*columns).in_(found)

    def _after(self, one: Any, other: Any) -> Any:
        return self._ordered(one) > self._ordered(other)

    def _ordered(self, column: Any) -> Any:
        return in_order_of_spark(column, self.connection.dialect.name)
