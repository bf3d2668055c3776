"""Writes to SQL databases: one transaction changes all tables of a batch and stores the batch's number.

A batch that is replayed after a failure finds its number and changes nothing. Spark numbers batches per checkpoint, so
the number is stored with the query id of the checkpoint.

A run that delivers exactly once writes no table after a later run has started. It claims its epoch when it starts.
Each transaction of a batch compares the epoch and locks its row until the commit, so that none of an earlier run is
committed after that. A claim waits for such a transaction, but not for ever: that of a machine which was cut off stays
open until the server notices.
"""

from __future__ import annotations

import functools
import threading
from collections import deque
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from odradek.pipelines.operating.backoff import Retry
from odradek.pipelines.spark.sessions.failures import PipelineError
from odradek.pipelines.spark.writing.databases import (
    BUSY_S,
    WarehouseRefused,
    WarehouseUnavailable,
    connect,
    database_errors,
    shown_url,
)
from odradek.pipelines.spark.writing.stored_values import columns_of, loses_values
from odradek.pipelines.spark.writing.table_changes import (
    ChangeData,
    TableChange,
    apply_change,
    apply_change_data,
    deletion_columns,
    deletions_name,
    table_columns,
)
from odradek.pipelines.spark.writing.transactional_writer import TakenOver

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy.engine import Connection

BATCH_TABLE = "odradek_batches"
RUN_TABLE = "odradek_runs"
LOCK_NOT_AVAILABLE = "55P03"  # PostgreSQL's SQLSTATE


class RunReplaced(PipelineError):
    """A later run of the same pipeline writes."""

    retry = Retry.NEVER


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
                removed = () if isinstance(change, ChangeData) else change.replaced
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
            # PostgreSQL gave up waiting for a lock.
            if getattr(getattr(error.__cause__, "orig", None), "sqlstate", None) != LOCK_NOT_AVAILABLE:
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
        return [self._table(change.table, columns_of(change.schema.fields, change.key))]

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


class RunEpochs:
    """The epochs of the last runs in one database, by run: the flow of a pipeline on a cluster."""

    def __init__(self) -> None:
        self._metadata = sa.MetaData()  # of its own: the table is created for runs that claim an epoch only
        self._runs = sa.Table(
            RUN_TABLE,
            self._metadata,
            sa.Column("run", sa.String(255), primary_key=True),
            sa.Column("epoch", sa.BigInteger, nullable=False),
        )

    def create(self, connection: Connection) -> None:
        self._metadata.create_all(connection)

    def last(self, connection: Connection, run: str, *, is_locked: bool = False) -> int:
        """The epoch of the last run; 0 if there was none. With `is_locked`, its row is locked until the commit."""
        query = sa.select(self._runs.c.epoch).where(self._runs.c.run == run)
        return int(connection.execute(query.with_for_update() if is_locked else query).scalar() or 0)

    def claim(self, connection: Connection, run: str, epoch: int, wait_s: float) -> None:
        """Stores the epoch of a run, after `create`; raises if another has claimed it.

        Waits this long for the open batch of an earlier run; SQLite has the limit of its connection."""
        if connection.dialect.name == "postgresql":
            connection.execute(sa.text(f"SET LOCAL lock_timeout = {round(wait_s * 1000)}"))
        last = self.last(connection, run, is_locked=True)
        if last >= epoch:
            raise RunReplaced(str(TakenOver(run)))
        if last:
            connection.execute(self._runs.update().where(self._runs.c.run == run).values(epoch=epoch))
        else:
            connection.execute(self._runs.insert().values(run=run, epoch=epoch))

    def refuse_replaced(self, connection: Connection, run: str, epoch: int) -> None:
        if self.last(connection, run, is_locked=True) > epoch:
            raise RunReplaced(str(TakenOver(run)))
