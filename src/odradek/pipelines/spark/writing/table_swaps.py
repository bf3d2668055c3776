"""Replaces a whole table of a warehouse by another in a transaction."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import sqlalchemy as sa

from odradek.pipelines.spark.writing.databases import connect, database_errors
from odradek.pipelines.spark.writing.warehouse import BATCH_TABLE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from sqlalchemy.engine import Connection

NO_TABLES: Mapping[str, str] = {}


@contextmanager
def changing(url: str) -> Iterator[Connection]:
    engine = connect(url)
    try:
        with database_errors(engine.url), engine.begin() as connection:
            yield connection
    finally:
        engine.dispose()


def last_batch(url: str, query: str) -> int | None:
    """The last batch of a query that reached the database."""
    with changing(url) as connection:
        if not sa.inspect(connection).has_table(BATCH_TABLE):
            return None
        batches = sa.table(BATCH_TABLE, sa.column("query"), sa.column("batch"))
        found = connection.execute(sa.select(batches.c.batch).where(batches.c.query == query)).scalar()
        return None if found is None else int(found)


def drop_table(url: str, name: str) -> None:
    with changing(url) as connection:
        connection.exec_driver_sql(f"DROP TABLE IF EXISTS {quoted(connection, name)}")


def swap_tables(url: str, old: str, new: str, others: Mapping[str, str] = NO_TABLES) -> int:
    """Renames the new table to the old name and returns its row count; empties the old table if there is no new one.

    `others` are more old and new names, for the same transaction."""
    with changing(url) as connection:
        for each, replacement in others.items():
            swap(connection, each, replacement)
        if not swap(connection, old, new):
            return 0
        return int(connection.execute(sa.select(sa.func.count()).select_from(sa.table(old))).scalar_one())


def swap(connection: Connection, old: str, new: str) -> bool:
    """Replaces a table; False if there is neither."""
    found = sa.inspect(connection)
    if found.has_table(new):
        connection.exec_driver_sql(f"DROP TABLE IF EXISTS {quoted(connection, old)}")
        connection.exec_driver_sql(f"ALTER TABLE {quoted(connection, new)} RENAME TO {quoted(connection, old)}")
    elif found.has_table(old):
        connection.exec_driver_sql(f"DELETE FROM {quoted(connection, old)}")
    else:
        return False
    return True


def quoted(connection: Connection, name: str) -> str:
    """For `exec_driver_sql`: `text` would take a colon in a name for the start of a parameter."""
    return connection.dialect.identifier_preparer.quote(name)
