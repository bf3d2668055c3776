"""Writes to SQL databases: one transaction changes all tables of a batch and stores the batch's id.

A batch that is replayed after a failure finds its id and changes nothing. Spark numbers batches per checkpoint, so the
number is stored with the query id of the checkpoint.
"""

from __future__ import annotations

import functools
import os
import threading
from collections import deque
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from odradek.pipelines.definition.secrets import without_url_passwords
from odradek.pipelines.operating.backoff import Healing
from odradek.pipelines.spark.sessions.failures import PipelineError
from odradek.pipelines.spark.sinks.change_data import (
    ChangeData,
    apply_change_data,
    deletion_columns,
    deletions_name,
    table_columns,
)
from odradek.pipelines.spark.sinks.column_values import column_type, loses_values
from odradek.pipelines.spark.sinks.run_epochs import RUN_TABLE, RunEpochs, is_lock_timeout
from odradek.pipelines.spark.sinks.table_changes import TableChange, WarehouseRefused, apply_change

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sqlalchemy.engine import Connection, Engine

BATCH_TABLE = "odradek_batches"
BUSY_S = 60.0
DATABASES = ("sqlite", "postgresql")


# SQLite's names of transient errors: another writer, a full disk, a disk that fails to respond.
SQLITE_TRANSIENT = ("SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_FULL", "SQLITE_IOERR")
# Messages of a server that rejects the URL; the client has no error codes for failed connections.
WRONG_URL = ("does not exist", "authentication failed", "no pg_hba.conf entry", "no password supplied")

POSTGRESQL_IDENTITY = "SELECT pg_postmaster_start_time(), current_database(), current_schema()"


class WarehouseUnavailable(PipelineError):
    """The database is unreachable, busy or full; a retry may succeed."""

    healing = Healing.LIKELY


@dataclass(frozen=True, slots=True)
class BatchNumber:
    """The number of a batch, the query id of its checkpoint, and of a run that delivers exactly once its epoch."""

    query: str
    number: int
    epoch: int = 0
    run: str = ""  # the flow of a pipeline on a cluster, whose runs the epoch counts


class Warehouse:
    """One database."""

    def __init__(self, url: str, claim_wait_s: float = BUSY_S) -> None:
        self.engine = connect(url)
        self._claim_wait_s = claim_wait_s
        self._metadata = sa.MetaData()
        self._epochs = RunEpochs()
        self._lock = threading.Lock()  # SQLite allows one writer at a time
        self._batches = sa.Table(
            BATCH_TABLE,
            self._metadata,
            sa.Column("query", sa.String(64), primary_key=True),
            sa.Column("batch", sa.BigInteger, nullable=False),
        )

    def write(self, batch: BatchNumber | None, changes: Sequence[TableChange | ChangeData]) -> bool:
        """Applies all changes or none; False if the batch was written before. Without a number nothing is skipped."""
        with self._lock, database_errors(self.engine.url):
            tables = [self._tables(change) for change in changes]
            self._metadata.create_all(self.engine)
            with self.engine.begin() as connection:
                if batch is not None and batch.run:
                    self._epochs.refuse_replaced(connection, batch.run, batch.epoch)
                is_new = batch is None or self._is_new(connection, batch)
                for change, (table, *others) in zip(changes, tables, strict=True) if is_new else ():
                    if isinstance(change, ChangeData):
                        apply_change_data(connection, table, others[0], change)
                    else:
                        apply_change(connection, table, change)
        if not is_new:
            for change in changes:
                removed = () if isinstance(change, ChangeData) else change.deletions
                deque(chain(removed, change.rows), maxlen=0)  # Spark fails a stateful batch that is not read to its end
        return is_new

    def last_epoch(self, run: str) -> int:
        """The epoch of the last run; 0 if there was none. Creates the table of epochs."""
        with self._lock, database_errors(self.engine.url), self.engine.begin() as connection:
            self._epochs.create(connection)
            return self._epochs.last(connection, run)

    def claim(self, run: str, epoch: int) -> None:
        """Stops earlier runs: their next batch is refused. WarehouseUnavailable if the batch of one stays open."""
        try:
            with self._lock, database_errors(self.engine.url), self.engine.begin() as connection:
                self._epochs.claim(connection, run, epoch, self._claim_wait_s)
        except WarehouseUnavailable as error:
            if not isinstance(error.__cause__, sa.exc.SQLAlchemyError) or not is_lock_timeout(error.__cause__):
                raise
            raise WarehouseUnavailable(
                f"{shown_url(self.engine.url)}: an earlier run has had a batch open for more than "
                f"{self._claim_wait_s:g} s, and holds the row '{run}' of {RUN_TABLE}; stop it, or, if its machine is "
                "gone, end its session on the server (pg_terminate_backend)"
            ) from error

    def forget(self, *tables: str) -> None:
        """Drops the cached table definitions, so that changes by others are seen."""
        with self._lock:
            for name in (*tables, *map(deletions_name, tables)):
                known = self._metadata.tables.get(name)
                if known is not None:
                    self._metadata.remove(known)

    def _is_new(self, connection: Connection, batch: BatchNumber) -> bool:
        """Stores the number of the batch; False if it is stored already."""
        mine = self._batches.c.query == batch.query
        last = connection.execute(sa.select(self._batches.c.batch).where(mine)).scalar()
        if last is not None and last >= batch.number:
            return False
        if last is None:
            connection.execute(self._batches.insert().values(query=batch.query, batch=batch.number))
        else:
            connection.execute(self._batches.update().where(mine).values(batch=batch.number))
        return True

    def _tables(self, change: TableChange | ChangeData) -> list[sa.Table]:
        """The table, and for change data that of its deletions; creates those that do not exist."""
        if isinstance(change, ChangeData):
            table = self._table(change.table, table_columns(change))
            return [table, self._table(deletions_name(change.table), deletion_columns(change))]
        columns = [
            sa.Column(each.name, column_type(each.dataType), primary_key=each.name in change.key)
            for each in change.schema.fields
        ]
        return [self._table(change.table, columns)]

    def _table(self, name: str, columns: Sequence[sa.Column[Any]]) -> sa.Table:
        known = self._metadata.tables.get(name)
        if known is None and sa.inspect(self.engine).has_table(name):
            known = sa.Table(name, self._metadata, autoload_with=self.engine)
        if known is None:
            return sa.Table(name, self._metadata, *columns)
        missing = [each.name for each in columns if each.name not in known.c]
        if missing:
            raise WarehouseRefused(f"table {name} has no column {', '.join(missing)}; add it, or use a new table")
        for each in columns:
            present = known.c[each.name].type
            if loses_values(present, each.type, self.engine.dialect.name):
                raise WarehouseRefused(
                    f"table {name}: its column {each.name} of type {present} would cut values of type {each.type}; "
                    "change its type, cast the values in a step, or use a new table"
                )
        return known


@functools.cache
def warehouse(url: str) -> Warehouse:
    """The process-wide warehouse of a URL."""
    return Warehouse(url)


def parsed_url(url: str) -> sa.URL:
    try:
        parsed = sa.make_url(url)
        if "@" in (parsed.host or ""):
            raise ValueError("the password has an @, and its end would be shown as a part of the host")
    except (sa.exc.ArgumentError, ValueError):  # ValueError: also if the port is not a number
        raise WarehouseRefused(
            f"'{without_secrets(url)}' is not a database URL; write sqlite:///name.db, or "
            "postgresql://user:password@host/name, with %40 for an @ in a password"
        ) from None
    names = {"postgres": "postgresql+psycopg", "postgresql": "postgresql+psycopg"}
    return parsed.set(drivername=names.get(parsed.drivername, parsed.drivername))


def connect(url: str, *, is_reader: bool = False) -> Engine:
    parsed = parsed_url(url)
    is_sqlite = parsed.get_backend_name() == "sqlite"
    if parsed.get_backend_name() not in DATABASES:
        raise WarehouseRefused(
            f"{shown_url(parsed)}: tables and views are in SQLite or PostgreSQL, not in {parsed.get_backend_name()}"
        )
    try:
        engine = sa.create_engine(parsed, connect_args={"timeout": BUSY_S} if is_sqlite else {})
    except ModuleNotFoundError as error:
        advice = "pip install 'odradek[postgresql]'" if error.name == "psycopg" else f"install {error.name}"
        raise WarehouseRefused(f"{shown_url(parsed)}: the Python package {error.name} is missing; {advice}") from None
    if engine.dialect.name == "postgresql":
        sa.event.listen(engine, "connect", prepare_postgresql)
    if is_sqlite:
        sa.event.listen(engine, "connect", prepare_reader if is_reader else prepare_sqlite)
        sa.event.listen(engine, "begin", begin_snapshot if is_reader else begin_immediate)
    return engine


def check_database(url: str) -> str:
    """Checks that the database can be reached and written to; returns what identifies it, whatever the URL."""
    engine = connect(url)
    try:
        with database_errors(engine.url), engine.begin() as connection:
            if engine.dialect.name == "sqlite":
                return os.path.realpath(engine.url.database or "")
            if engine.dialect.name == "postgresql":
                return repr(connection.execute(sa.text(POSTGRESQL_IDENTITY)).one())
            return url
    finally:
        engine.dispose()


@contextmanager
def database_errors(url: sa.URL) -> Iterator[None]:
    """Converts database errors to `WarehouseUnavailable` (a retry may succeed) or `WarehouseRefused`, with the URL."""
    try:
        yield
    except sa.exc.SQLAlchemyError as error:
        reason = " ".join(str(getattr(error, "orig", None) or error).split())
        kind = WarehouseUnavailable if is_unavailable(error) else WarehouseRefused
        raise kind(f"{shown_url(url)}: {reason}") from error


def is_unavailable(error: sa.exc.SQLAlchemyError) -> bool:
    """Whether the error is transient; SQLite raises the same type for a missing table and for a full disk."""
    if not isinstance(error, sa.exc.DBAPIError):
        return isinstance(error, sa.exc.TimeoutError)
    of_sqlite = getattr(error.orig, "sqlite_errorname", None)
    if of_sqlite is not None:
        return str(of_sqlite).startswith(SQLITE_TRANSIENT)
    is_operational = isinstance(error, sa.exc.OperationalError | sa.exc.InterfaceError)
    return error.connection_invalidated or (is_operational and not any(each in str(error.orig) for each in WRONG_URL))


def without_secrets(url: str) -> str:
    """A URL that cannot be parsed, without the part before its host, which may contain a password, and without `?…`."""
    before, at, after = url.partition("?")[0].rpartition("@")
    return f"{'***' if before else ''}{at}{after}"


def shown_url(url: sa.URL) -> str:
    return without_url_passwords(url.render_as_string(hide_password=True))


def prepare_sqlite(connection: Any, _record: object) -> None:
    """Sets up SQLite: WAL, so that readers do not wait for the writer, explicit transactions, and full sync.

    A commit must survive a power failure, because Spark then records the batch as done and does not replay it.
    """
    connection.isolation_level = None
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")


def prepare_postgresql(connection: Any, _record: object) -> None:
    """Sets the time zone of the session: columns without time zone get the time of UTC, whatever that of the server."""
    cursor = connection.cursor()  # only connections of psycopg 3 have execute()
    cursor.execute("SET TIME ZONE 'UTC'")
    cursor.close()
    connection.commit()


def prepare_reader(connection: Any, _record: object) -> None:
    connection.isolation_level = None


def begin_snapshot(connection: Connection) -> None:
    """Starts a read transaction, which sees one snapshot and does not block the writer."""
    connection.exec_driver_sql("BEGIN")


def begin_immediate(connection: Connection) -> None:
    """Starts a write transaction: upgrading a read transaction to write may fail."""
    connection.exec_driver_sql("BEGIN IMMEDIATE")


@contextmanager
def reading(url: str) -> Iterator[Connection]:
    """A read-only connection, for queries while the stream runs."""
    engine = connect(url, is_reader=True)
    try:
        with database_errors(engine.url), engine.connect() as connection:
            yield connection
    finally:
        engine.dispose()
