"""A rehearsal of a plan, by the engines of the plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.pipelines.planning.rules import plan_again
from odradek.pipelines.spark.engines.batch_planned import run_batch
from odradek.pipelines.spark.engines.standard_planned import StandardEngine
from odradek.pipelines.spark.rehearsal.streams import Rehearsal

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from pyspark.sql import SparkSession

    from odradek.pipelines.planning.plan import Plan
    from odradek.pipelines.spark.computing.counts import BatchReport
    from odradek.pipelines.spark.engines.running import Running
    from odradek.pipelines.spark.rehearsal.local_pipeline import FolderCluster


class PlannedRehearsal(Rehearsal):
    """A run of a plan whose ends are in `folder`."""

    def __init__(self, session: SparkSession, plan: Plan, folder: Path) -> None:
        super().__init__(session, plan.pipeline, folder)
        self._plan = plan

    def _run_batch(self, cluster: FolderCluster) -> BatchReport:
        return run_batch(self._session, self._plan, cluster)

    def _started(self, cluster: FolderCluster, only: Collection[str] | None) -> Running:
        pipeline = self._with_clock()
        plan = self._plan if pipeline is self._plan.pipeline else plan_again(pipeline)
        engine = StandardEngine(self._session, plan, cluster, self._count)
        return engine.start(until_caught_up=True, only=only)

    def _is_stream(self, step: str) -> bool:
        """Also of an end, which refuses the rows that it cannot store in each batch."""
        table = self._plan.tables.get(step.lower())
        return table is None or table.path.is_stream
