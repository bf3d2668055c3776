"""The epochs of runs in a database: a run that delivers exactly once writes no table after a later run has started.

`odradek_runs` has the epoch of the last run of each flow. A run claims its epoch when it starts. Each transaction of a
batch compares the epoch and locks its row until the commit, so that none of an earlier run is committed after that. A
claim waits for such a transaction, but not for ever: that of a machine which was cut off stays open until the server
notices.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa

from odradek.pipelines.operating.backoff import Healing
from odradek.pipelines.spark.sessions.failures import PipelineError
from odradek.pipelines.spark.writing.transactional_writer import TakenOver

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection

RUN_TABLE = "odradek_runs"
LOCK_NOT_AVAILABLE = "55P03"  # PostgreSQL's SQLSTATE


class RunReplaced(PipelineError):
    """A later run of the same pipeline writes."""

    healing = Healing.NEVER


class RunEpochs:
    """The epochs in one database, by run: the flow of a pipeline on a cluster."""

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


def is_lock_timeout(error: sa.exc.SQLAlchemyError) -> bool:
    """Whether PostgreSQL gave up waiting for a lock."""
    return getattr(getattr(error, "orig", None), "sqlstate", None) == LOCK_NOT_AVAILABLE
