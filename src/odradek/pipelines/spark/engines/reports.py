"""Tells of each batch from Spark's own progress of a query, with what was counted in one pass.

Queries are asked from time to time. A listener in Python would be told at once, but Spark converts every event field by
field, which took a quarter of the processor time of the rigs pipeline.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException

from odradek.pipelines.spark.one_pass.passing import OBSERVED
from odradek.pipelines.spark.progress import BatchReport

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql.streaming.query import StreamingQuery

    from odradek.pipelines.spark.one_pass.passing import Pass

ASK_EVERY_S = 0.5
NO_BATCH = -1


class Reports:
    """Of the flows that run in one pass; the others report for themselves."""

    def __init__(self, passes: Mapping[str, Pass], report: Callable[[BatchReport], None]) -> None:
        self._passes = passes
        self._report = report
        self._told: dict[str, int] = {}  # the last batch that was told, by the run of its query
        self._next_s = 0.0

    def turn(self, queries: Mapping[str, StreamingQuery], *, is_last: bool = False) -> None:
        """Cheap when it is called too often."""
        now_s = time.monotonic()
        if now_s < self._next_s and not is_last:
            return
        self._next_s = now_s + ASK_EVERY_S
        for flow, query in queries.items():
            if flow in self._passes:
                try:
                    self._ask(flow, query)
                except PySparkException:
                    continue  # it is ending, and whoever waits for it hears why

    def _ask(self, flow: str, query: StreamingQuery) -> None:
        told = self._told.setdefault(str(query.runId), NO_BATCH)
        last = query.lastProgress
        if last is None or last.batchId <= told:
            return
        is_next = told != NO_BATCH and last.batchId == told + 1
        for progress in [last] if is_next else query.recentProgress:
            if progress.batchId > self._told[str(query.runId)] and "addBatch" in progress.durationMs:
                self._told[str(query.runId)] = progress.batchId
                self._report(self._report_of(flow, progress))

    def _report_of(self, flow: str, progress: Any) -> BatchReport:
        counts = progress.observedMetrics.get(OBSERVED)
        rejected, violations = self._passes[flow].counted({} if counts is None else counts.asDict())
        seconds = progress.batchDuration / 1000
        return BatchReport(flow, progress.batchId, progress.numInputRows, rejected, violations, seconds)
