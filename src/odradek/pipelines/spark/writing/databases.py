"""Connections to SQL databases: their URLs, how SQLite and PostgreSQL are set up, and errors that say what to do."""

from __future__ import annotations

import os
import posixpath
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from odradek.pipelines.definition.model import TableTarget
from odradek.pipelines.definition.secrets import without_url_passwords
from odradek.pipelines.operating.backoff import Retry
from odradek.pipelines.spark.sessions.failures import PipelineError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy.engine import Connection, Engine

    from odradek.pipelines.definition.model import Pipeline

BUSY_S = 60.0
DATABASES = ("sqlite", "postgresql")
# SQLite's names of transient errors: another writer, a full disk, a disk that fails to respond.
SQLITE_TRANSIENT = ("SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_FULL", "SQLITE_IOERR")
# Messages of a server that rejects the URL; the client has no error codes for failed connections.
WRONG_URL = ("does not exist", "authentication failed", "no pg_hba.conf entry", "no password supplied")
POSTGRESQL_IDENTITY = "SELECT pg_postmaster_start_time(), current_database(), current_schema()"


class WarehouseRefused(PipelineError):
    """The table cannot store the rows."""

    retry = Retry.NEVER


class WarehouseUnavailable(PipelineError):
    """The database is unreachable, busy or full; a retry may succeed."""

    retry = Retry.LIKELY


def database_url(pipeline: Pipeline, url: str | None) -> str:
    """The URL with the path of a SQLite file resolved from the definition's folder."""
    chosen = url or pipeline.warehouse or f"sqlite:///{pipeline.name}.db"
    parsed = parsed_url(chosen)
    if parsed.get_backend_name() != "sqlite" or parsed.database in {None, "", ":memory:"}:
        return chosen
    path = posixpath.normpath(pipeline.below(parsed.database or ""))
    return parsed.set(database=path).render_as_string(hide_password=False)


def check_databases(pipeline: Pipeline) -> None:
    """Checks that every database with tables or views can be reached, and has one URL: the number of a batch is stored
    in its database, so that the rows for a second URL would count as written."""
    urls = [each.target.url for each in pipeline.sinks if isinstance(each.target, TableTarget)]
    wanted = [*urls, *(each.url for each in pipeline.views)]
    first: dict[str, str] = {}
    for url in dict.fromkeys(database_url(pipeline, each) for each in wanted):
        before = first.setdefault(check_database(url), url)
        if before != url:
            shown_urls = " and ".join(shown_url(parsed_url(each)) for each in (before, url))
            raise WarehouseRefused(
                f"{shown_urls} are one database; write the same URL, so that batches have one number"
            )


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
        # A reader sees one snapshot and does not block the writer; upgrading a read transaction to write may fail.
        begin = "BEGIN" if is_reader else "BEGIN IMMEDIATE"
        sa.event.listen(engine, "connect", prepare_reader if is_reader else prepare_sqlite)
        sa.event.listen(engine, "begin", lambda connection: connection.exec_driver_sql(begin))
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


@contextmanager
def reading(url: str) -> Iterator[Connection]:
    """A read-only connection, for queries while the stream runs."""
    engine = connect(url, is_reader=True)
    try:
        with database_errors(engine.url), engine.connect() as connection:
            yield connection
    finally:
        engine.dispose()
