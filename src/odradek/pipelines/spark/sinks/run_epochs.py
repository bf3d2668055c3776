"""The epochs of runs in a database: a run that delivers exactly once writes no table after a later run has started.

`odradek_runs` has the epoch of the last run of each flow. A run claims its epoch when it starts. Each transaction of a
batch compares the epoch and locks its row until the commit, so that none of an earlier run is committed after that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa

from odradek.pipelines.spark.failures import PipelineError
from odradek.pipelines.spark.transactional_writer import TakenOver

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection

RUN_TABLE = "odradek_runs"


class RunReplaced(PipelineError):
    """A later run of the same pipeline writes."""


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

    def last(self, connection: Connection, run: str) -> int:
        """The epoch of the last run, whose row is locked; 0 if there was none."""
        query = sa.select(self._runs.c.epoch).where(self._runs.c.run == run).with_for_update()
        return int(connection.execute(query).scalar() or 0)

    def claim(self, connection: Connection, run: str, epoch: int) -> None:
        """Stores the epoch of a run, after `create`; raises if another has claimed it."""
        last = self.last(connection, run)
        if last >= epoch:
            raise RunReplaced(str(TakenOver(run)))
        if last:
            connection.execute(self._runs.update().where(self._runs.c.run == run).values(epoch=epoch))
        else:
            connection.execute(self._runs.insert().values(run=run, epoch=epoch))

    def refuse_replaced(self, connection: Connection, run: str, epoch: int) -> None:
        if self.last(connection, run) > epoch:
            raise RunReplaced(str(TakenOver(run)))
